"""What roles need of the controller's Python is asked for before anything changes."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pytest

from .jinja import ROOT, evaluate, holds, load

PLAY = load("playbooks/preflight.yml")[1]


def task(module: str, name: str) -> dict[str, Any]:
    (found,) = (each for each in PLAY["tasks"] if module in each and name in each["name"])
    return found


QUESTION = task("ansible.builtin.command", "controller")
REFUSAL = task("ansible.builtin.assert", "controller")


def variables(monitoring: int, answers: list[str], **of_head: Any) -> dict[str, Any]:
    """A site with so many monitoring hosts, and what the controller's Pythons lack."""
    known: dict[str, Any] = {
        "groups": {"gaudi": ["gaudi-1", "gaudi-2"], "monitoring": [f"mon-{number}" for number in range(monitoring)]},
        "hostvars": {"gaudi-1": of_head, "gaudi-2": {}},
        "ansible_playbook_python": "/usr/bin/python3",
        "_preflight_lacking": {
            "results": [{"item": {"python": "/usr/bin/python3"}, "stdout": said} for said in answers]
        },
    }
    return {**PLAY.get("vars", {}), **known}


@pytest.mark.parametrize(
    ("monitoring", "of_head", "asked"),
    [
        (1, {}, [("/usr/bin/python3", ["bcrypt", "cryptography"]), ("/usr/bin/python3", ["hatchling"])]),
        (0, {}, [("/usr/bin/python3", ["hatchling"])]),
        (1, {"trainer_wheel": "/w.whl"}, [("/usr/bin/python3", ["bcrypt", "cryptography"])]),
        (0, {"trainer_build_python": "/opt/python"}, [("/opt/python", ["hatchling"])]),
        (0, {"trainer_state": "absent"}, []),
    ],
)
def test_only_what_the_site_needs_is_asked_for(monitoring: int, of_head: dict[str, Any], asked: list[Any]) -> None:
    found = evaluate(QUESTION["loop"], **variables(monitoring, [], **of_head))
    assert [(each["python"], each["packages"]) for each in found] == asked
    assert QUESTION["check_mode"] is False and QUESTION["changed_when"] is False


def test_the_question_prints_what_is_missing() -> None:
    item = {"python": sys.executable, "packages": ["json", "no_such_package", "no_other"]}
    argv = evaluate(QUESTION["ansible.builtin.command"]["argv"], item=item, **variables(0, []))
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["no_such_package", "no_other"]


def test_what_is_missing_is_refused_with_the_remedy() -> None:
    complete, lacking = variables(1, ["", ""]), variables(1, ["bcrypt", "hatchling"])
    assert holds([REFUSAL["ansible.builtin.assert"]["that"]], **complete)
    assert evaluate(REFUSAL["ansible.builtin.assert"]["fail_msg"], **complete)  # worked out in any case
    assert PLAY["vars"]["ansible_become"] is False
    assert not holds([REFUSAL["ansible.builtin.assert"]["that"]], **lacking)
    said = " ".join(evaluate(REFUSAL["ansible.builtin.assert"]["fail_msg"], **lacking).split())
    assert said == (
        "The controller's Python lacks bcrypt, hatchling, which passwords and the trainer's wheel need: run "
        "'/usr/bin/python3 -m pip install bcrypt hatchling'."
    )


def test_an_execution_environment_brings_what_is_asked_for() -> None:
    environment = load("meta/execution-environment.yml")
    assert environment["version"] == 3
    files = environment["dependencies"]
    assert files == {"python": "meta/ee-requirements.txt", "system": "meta/ee-bindep.txt"}
    lines = (ROOT / files["python"]).read_text().splitlines()
    brought = [re.split("[<>=]", line)[0] for line in lines if not line.startswith("#")]
    asked = [name for kind in ("secrets", "wheel") for name in PLAY["vars"][f"_preflight_{kind}"]["packages"]]
    assert brought == asked
    # The same versions as in the environment that the tests run in.
    pinned = (ROOT / "requirements/controller.in").read_text().splitlines()
    assert [line for line in pinned if re.split("[<>=]", line)[0] in brought] == [
        line for line in lines if not line.startswith(("#", "cryptography"))
    ]
