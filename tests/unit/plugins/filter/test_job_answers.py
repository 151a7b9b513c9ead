"""Odd answers of a node on the controller: one sentence about that node, and the others go on."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from ansible_collections.gaudi3.scale.plugins.action import gaudi_train as action
from ansible_collections.gaudi3.scale.plugins.filter.job_answers import job_answers
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs import problems
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.card_choice import job_modules

ROOT = Path(__file__).parents[4]
ESCAPE = "\x1b[2J\u202e"
ODD: list[Any] = ["x" + ESCAPE, -1, 10**400, True, 1.5, [], [[]], [None], {"a": {}}, [{"path": 1}], float("nan")]
OFFER = {"processes": 2, "cards": 2, "modules": [0, 1], "held": [], "uid": 990, "shares": None}
NODE: dict[str, Any] = {
    "interface": "eth0", "unknown_groups": [], "closed": [], "script": None, "missing": [], "modules": [0, 1],
    "offer": OFFER,
}  # fmt: skip
ASKED = problems.Asked.of(
    {"name": "demo", "nodes": ["a", "b"], "head": "a", "cards": 2, "processes": 2, "user": "u", "jobs_dir": "/j"}
)


@pytest.mark.parametrize("field", [*NODE, *(f"offer.{name}" for name in OFFER)])
def test_an_odd_answer_is_a_problem_of_that_node_alone(field: str) -> None:
    for odd in ODD:
        part = field.partition("offer.")[2]
        seen = {**NODE, "offer": {**OFFER, part: odd}} if part else {**NODE, field: odd}
        for found in (problems.node_problems(ASKED, "b", seen, OFFER), problems.job_problems(ASKED, "b", seen)):
            assert all(each.isprintable() for each in found), found
        assert problems.node_problems(ASKED, "a", NODE, seen["offer"]) == [], "the others go on"
        offers = {"a": OFFER, "b": seen["offer"], "c": OFFER}
        told = job_modules(offers)
        assert told["problem"].isprintable()
    text = "x" + ESCAPE
    seen = {**NODE, "offer": {**OFFER, "modules": text}}
    assert job_modules({"a": OFFER, "b": seen["offer"], "c": OFFER})["modules"] == [0, 1]
    (said,) = problems.node_problems(ASKED, "b", seen, OFFER)
    assert said.startswith(r"b answers the question what it offers the job with offer.modules = x\x1b[2J\u202e, which")


@pytest.mark.parametrize("odd", ODD)
def test_an_answer_that_is_no_description_at_all(odd: Any) -> None:
    found = problems.node_problems(ASKED, "b", odd, odd)
    assert len(found) == 1 and found[0].isprintable()


JOB: dict[str, Any] = {
    "name": "demo", "state": "running", "unit": "u", "directory": "/d", "command": None, "spec_sha256": None,
    "active_state": "active", "sub_state": "running", "result": "success", "exit_status": 0, "ending": "exit status 1",
    "status": {"step": 1, "max_steps": 2, "loss": 1.0, "error": "e", "interruption": "i"}, "missing": [], "log": ["l"],
}  # fmt: skip


def every_text(value: object) -> list[str]:
    if isinstance(value, dict):
        return [each for item in value.items() for part in item for each in every_text(part)]
    if isinstance(value, (list, tuple)):
        return [each for item in value for each in every_text(item)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("field", [*JOB, *(f"status.{name}" for name in JOB["status"])])
@pytest.mark.parametrize("ends", ["running", "failed", "interrupted"])
def test_the_waiting_task_shows_no_text_of_a_node_raw(field: str, ends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    clock = iter(range(1000000))
    monkeypatch.setattr(action.display, "display", shown.append)
    monkeypatch.setattr(action.time, "sleep", lambda _seconds: None)
    monkeypatch.setattr(action.time, "monotonic", lambda: next(clock))
    for odd in [ESCAPE, [ESCAPE], {ESCAPE: ESCAPE}, *ODD]:
        part = field.partition("status.")[2]
        job = {**JOB, "status": {**JOB["status"], part: odd}} if part else {**JOB, field: odd}
        task = MagicMock(args={"name": "demo", "state": "finished", "timeout": 3}, check_mode=False, async_val=0)
        plugin = action.ActionModule(task, *(MagicMock() for _ in range(5)))
        last = job if field == "state" else {**job, "state": ends}
        extra = {"msg": ESCAPE, "diff": [{"before": f"a\n{ESCAPE}", "after": ""}], "warnings": [ESCAPE], ESCAPE: 1}
        first: dict[str, Any] = {"changed": True, "job": job, **extra}
        looks = iter([first, {"jobs": [job], **extra}, *({"jobs": [last], **extra} for _ in range(3))])
        plugin._execute_module = lambda looks=looks, **_arguments: next(looks)
        result = plugin.run(task_vars={"inventory_hostname": "gaudi-1"})
        assert all(line.isprintable() for text in every_text(result) for line in text.split("\n")), result
        assert all(line.isprintable() for line in shown)
        json.dumps(result, allow_nan=field in ("msg",))
    assert field != "log" or shown


@pytest.mark.parametrize("jobs", [*ODD, None, [{"name": ESCAPE, "state": "running"}], [{"name": "a", "state": ESCAPE}]])
def test_what_is_no_job_is_left_out_of_the_summary(jobs: Any) -> None:
    assert job_answers(jobs) == []


def test_what_the_action_plugin_shows_was_read_first() -> None:
    """Each answer goes through `harmless`, and each line that is displayed through `line_of`."""
    tree = ast.parse((ROOT / "plugins/action/gaudi_train.py").read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    asked = [node for node in calls if ast.unparse(node.func) == "self._execute_module"]
    through = [node.args[0] for node in calls if ast.unparse(node.func) == "harmless"]
    assert len(asked) == 2 and all(node in through for node in asked)
    lines = [node for node in calls if ast.unparse(node.func).startswith("display.")]
    assert lines and all(ast.unparse(node.args[0]) == "line" for node in lines)
    set_by = {ast.unparse(n.value) for n in ast.walk(tree) if isinstance(n, ast.Assign) and ast.unparse(n) != ""
              and ast.unparse(n.targets[0]) == "line"}  # fmt: skip
    assert set_by == {
        "line_of(host, job)",
        "f\"{host}: waits for {', '.join(job.missing)}\" if job.missing else progress_line(host, job.status)",
    }


def test_templates_show_what_nodes_say_of_jobs_as_one_line() -> None:
    """Of what is registered or gathered on a node; a job of it was read by `job_answers`, a problem by its filter."""
    pages = [ROOT / "playbooks/verify.yml", ROOT / "playbooks/templates/summary.j2"]
    pages += [*ROOT.glob("roles/trainer/tasks/*.yml"), ROOT / "roles/trainer/vars/main.yml"]
    raw = []
    for page in pages:
        text = page.read_text()
        for spot in re.finditer(
            r"(?<![\w.|(])(gaudi\.|_verify_node\.|_trainer_node\.driver|_trainer_ids(?!:))[^}~]*", text
        ):
            line = text[text.rfind("\n", 0, spot.start()) + 1 : text.find("\n", spot.end())]
            shown = "{{" in line and "set " not in line and "that:" not in line and "when" not in line
            if shown and "printable" not in spot.group():
                raw.append((page.name, spot.group()))
    assert raw == []
