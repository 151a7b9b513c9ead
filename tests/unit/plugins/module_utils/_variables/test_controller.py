"""What a site needs of its controller's Python, and that it has one head, are said before a host is asked."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.gaudi3.scale.plugins.lookup.first_look import lacking
from ansible_collections.gaudi3.scale.plugins.module_utils._variables.controller import (
    SECRETS,
    WHEEL,
    head_problem,
    packages_needed,
    packages_problem,
    serial_problem,
)

ROOT = Path(__file__).resolve().parents[5]
PYTHON = "/usr/bin/python3"


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (["gaudi-1"], ""),
        ([], "Group gaudi_head has no host: name exactly one node of group gaudi there, the node where training"),
        (
            ["gaudi-1", "gaudi-2"],
            "Group gaudi_head has gaudi-1 and gaudi-2: name exactly one node of group",
        ),
        (["mon"], "Group gaudi_head has mon: name exactly one node of group gaudi there"),
    ],
)
def test_a_site_has_one_head(head: list[str], said: str) -> None:
    found = head_problem(head, ["gaudi-1", "gaudi-2"])
    assert found.startswith(said) and bool(found) is bool(said)


@pytest.mark.parametrize(
    ("monitors", "job", "needed"),
    [
        (True, {}, {PYTHON: ("bcrypt", "cryptography", "hatchling")}),
        (False, {}, {PYTHON: ("hatchling",)}),
        (True, {"trainer_wheel": "/w.whl"}, {PYTHON: ("bcrypt", "cryptography")}),
        (False, {"trainer_build_python": "/opt/python"}, {"/opt/python": ("hatchling",)}),
        (
            True,
            {"trainer_build_python": "/opt/python"},
            {PYTHON: ("bcrypt", "cryptography"), "/opt/python": ("hatchling",)},
        ),
        (False, {"trainer_state": "absent"}, {}),
    ],
)
def test_only_what_the_site_needs_is_asked_for(monitors: bool, job: dict[str, Any], needed: dict[str, Any]) -> None:
    assert packages_needed(monitors, job, PYTHON) == needed


def test_what_is_missing_is_refused_with_the_remedy() -> None:
    needed = packages_needed(True, {}, PYTHON)
    assert packages_problem(needed, lambda _python, _names: []) == ""
    assert packages_problem(needed, lambda _python, names: [names[0], names[2]]) == (
        "The controller's Python lacks bcrypt, hatchling, which passwords and the trainer's wheel need: run "
        "'/usr/bin/python3 -m pip install bcrypt hatchling'."
    )


@pytest.mark.parametrize("python", [sys.executable, "another"])
def test_a_python_is_asked_what_it_lacks(python: str, tmp_path: Path) -> None:
    names = ["json", "no_such_package", "no_other"]
    if python == "another":
        link = tmp_path / "python"
        link.symlink_to(sys.executable)
        python = str(link)
    assert lacking(python, names) == names[1:]
    assert lacking(str(tmp_path / "none"), names) == names


def test_an_execution_environment_brings_what_is_asked_for() -> None:
    environment = yaml.safe_load((ROOT / "meta/execution-environment.yml").read_text())
    assert environment["version"] == 3
    files = environment["dependencies"]
    assert files == {"python": "meta/ee-requirements.txt", "system": "meta/ee-bindep.txt"}
    lines = (ROOT / files["python"]).read_text().splitlines()
    brought = [re.split("[<>=]", line)[0] for line in lines if not line.startswith("#")]
    assert brought == [*SECRETS, *WHEEL]
    # The same versions as in the environment that the tests run in.
    pinned = (ROOT / "requirements/controller.in").read_text().splitlines()
    assert [line for line in pinned if re.split("[<>=]", line)[0] in brought] == [
        line for line in lines if not line.startswith(("#", "cryptography"))
    ]


@pytest.mark.parametrize("value", [1, "1", "25%", [1, "50%"]])
def test_nodes_can_be_taken_so_many_at_a_time(value: object) -> None:
    assert serial_problem({"a": value, "b": value}, ["a", "b"]) == serial_problem({}, ["a", "b"]) == ""


@pytest.mark.parametrize("value", ["x", 0, -1, True, 1.5, None, {"a": 1}, ["x"], [], "1 %"])
def test_what_no_node_can_be_taken_by_is_refused_before_the_first_phase(value: object) -> None:
    said = serial_problem({"a": value}, ["a"])
    assert said.endswith("as a number such as 1, a percentage such as 25%, or a list of these.")


def test_one_value_holds_for_all_nodes() -> None:
    said = serial_problem({"a": 1, "b": 1, "c": "2"}, ["a", "b", "c", "d"])
    assert said == (
        "gaudi_serial is 1 on a, b and 2 on c and not set on d: give all nodes the same, in group_vars/gaudi.yml, or "
        "to one run with -e gaudi_serial=1."
    )
    assert serial_problem({"a": ...}, ["a"]).startswith("gaudi_serial cannot be evaluated on a before hosts are asked")
