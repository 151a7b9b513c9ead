"""Which nodes may start a job: passports are checked on the controller, versions on the node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from health_machine import Nodes, nodes

from ansible_collections.gaudi3.scale.plugins.module_utils._health import admission, passport
from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi.command import HlSmi
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.files import JobError
from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies import train

NOW, KEY = 1_767_225_600, bytes(range(32))


@pytest.fixture(scope="module", name="made")
def the_nodes() -> Iterator[Nodes]:
    with nodes() as made:
        yield made


@pytest.fixture(name="folder")
def a_folder(tmp_path: Path) -> Path:
    (tmp_path / "passports.key").write_text(KEY.hex() + "\n")
    return tmp_path


def issue(folder: Path, versions: dict[str, str], node: str = "gaudi-1") -> None:
    health = {"verdicts": [], "errors": [], "suspects": [], "versions": versions}
    issued = passport.issue(node, health, (), "quick", NOW, passport.DAY_S)
    (folder / f"{node}.passport.json").write_text(passport.sign(issued, KEY))


def controller(folder: Path, now: int = NOW + 60, **more: Any) -> dict[str, Any]:
    return {**more, **admission.of_the_controller({"folder": str(folder), **more}, "gaudi-1", now)}


def test_a_node_with_what_it_was_tested_with_is_admitted_and_another_is_not(folder: Path, made: Nodes) -> None:
    node = made.loaded("HL-325L")
    tool = HlSmi("hl-smi", node._run)
    present = passport.versions_of(node.read("quick"))
    # sysfs is this machine's here, which has no driver.
    present["driver"] = "unknown"
    issue(folder, present)
    assert admission.of_the_node(controller(folder), tool) == ""
    issue(folder, {**present, "driver": "1.22.0-5f8fa9f"})
    assert admission.of_the_node(controller(folder), tool) == "driver was 1.22.0-5f8fa9f and is unknown"
    node.hung = True
    assert admission.of_the_node(controller(folder), tool) == "board was HL-325L and is none"


def test_what_is_wrong_with_a_passport_is_said_without_asking_the_node(folder: Path) -> None:
    def problem(**more: Any) -> str:
        return admission.of_the_node(controller(folder, **more), None)

    assert problem() == "there is none"
    issue(folder, {"driver": "1.23.0-2eae87a"})
    assert problem(now=NOW + passport.DAY_S + 7200) == "it expired 2 hours ago"
    assert problem(depth="standard") == "its depth is quick where standard is asked for"
    path = folder / "gaudi-1.passport.json"
    path.write_text(path.read_text().replace("2eae87a", "0000000"))
    assert problem() == "its signature is not of this key"
    (folder / "passports.key").write_text("short")
    assert "is not 64 hex digits" in problem()


def test_a_site_without_passports_is_warned_of_none_and_refused_where_it_wants_them(tmp_path: Path) -> None:
    assert controller(tmp_path, mode="shadow") == {"mode": "off"}
    assert controller(tmp_path, mode="enforce")["problem"] == f"there is no key of passports in {tmp_path}"


@pytest.mark.parametrize("mode", ["off", "shadow", "enforce"])
def test_what_gaudi_train_does_about_it(mode: str, tmp_path: Path) -> None:
    warned: list[str] = []
    asked = {"mode": mode, "executable": "hl-smi", "timeout": 5, "problem": "there is none", "versions": {}}
    module: Any = SimpleNamespace(
        params={"passports": asked}, warn=warned.append, get_bin_path=lambda _name: None, tmpdir=str(tmp_path)
    )
    if mode == "enforce":
        with pytest.raises(JobError, match="no valid passport, as there is none: examine it with the playbook"):
            train.ask_for_the_passport(module)
    else:
        train.ask_for_the_passport(module)
    assert bool(warned) == (mode == "shadow")
