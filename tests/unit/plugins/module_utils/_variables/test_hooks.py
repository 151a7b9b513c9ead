"""A site's own steps are found by their names, and a name that is none is refused before anything is done."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ansible_collections.gaudi3.scale.plugins.module_utils._variables.hooks import (
    differing_problem,
    hook_file,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._variables.hooks import hooks_problem as problem_of


def hooks_problem(folder: object) -> str:
    return problem_of(folder, lambda path: yaml.safe_load(Path(path).read_text(encoding="utf-8")))


def test_a_step_is_found_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "before_drivers.yml").write_text("")
    assert hook_file(str(tmp_path), "before_drivers") == str(tmp_path / "before_drivers.yml")
    assert hook_file(str(tmp_path), "after_drivers") == hook_file("", "before_drivers") == ""
    (tmp_path / "after_train.yml").mkdir()
    assert hook_file(str(tmp_path), "after_train") == ""


def test_a_folder_is_relative_to_where_the_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks/after_train.yml").write_text("")
    monkeypatch.chdir(tmp_path)
    assert hook_file("hooks", "after_train") == str(tmp_path / "hooks/after_train.yml")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert hook_file("~/hooks", "after_train") == str(tmp_path / "hooks/after_train.yml")


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    assert hooks_problem("") == hooks_problem(None) == hooks_problem(str(tmp_path)) == ""
    assert hooks_problem(f"{tmp_path}/none") == (
        f"gaudi_hooks_dir is {tmp_path}/none, and {tmp_path}/none is no folder: make or correct it."
    )
    assert hooks_problem(["a"]) == "gaudi_hooks_dir is ['a']: give the path of a folder."


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("before_driver.yml", "before_drivers.yml"),
        ("before_drivers.yaml", "before_drivers.yml"),
        ("after_training.yml", "after_train.yml"),
        ("before_preflight.yml", "before_"),
    ],
)
def test_a_step_of_no_phase_is_refused_with_the_name_that_is_meant(name: str, meant: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("")
    said = hooks_problem(str(tmp_path))
    assert said.startswith(f"{tmp_path}/{name} is a step of no phase: name it {meant}")
    assert said.endswith("the phases are tuning, drivers, fabric, firewall, pytorch, monitoring, train, verify.")


def test_other_files_may_lie_beside_them(tmp_path: Path) -> None:
    (tmp_path / "common.yml").write_text("")
    (tmp_path / "README.md").write_text("")
    assert hooks_problem(str(tmp_path)) == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ""),
        ("---\n", ""),
        ("- name: x\n  ansible.builtin.debug:\n", ""),
        ("- hosts: all\n", "has a play in it: give its tasks alone"),
        ("- ansible.builtin.import_playbook: x.yml\n", "has a play in it: give its tasks alone"),
        ("name: x\n", "is no list of tasks: write it as"),
        ("- x\n", "is no list of tasks: write it as"),
        ("- [", "cannot be read (while parsing"),
    ],
)
def test_a_step_is_read_before_anything_is_done(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "after_fabric.yml"
    file.write_text(text)
    found = hooks_problem(str(tmp_path))
    assert found.startswith(f"{file} {said}") if said else found == ""


def test_a_step_that_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "after_train.yml").symlink_to("nowhere")
    assert hooks_problem(str(tmp_path)).startswith(f"{tmp_path}/after_train.yml is no file, so that its steps")


def test_all_hosts_have_one_folder() -> None:
    assert (
        differing_problem({})
        == differing_problem({"a": "x", "b": "x"})
        == differing_problem({"a": "", "b": None})
        == ""
    )
    said = differing_problem({"a": "x", "b": "x", "c": ""})
    assert said.startswith("gaudi_hooks_dir is x on a, b and not set on c: give all hosts the same folder")
