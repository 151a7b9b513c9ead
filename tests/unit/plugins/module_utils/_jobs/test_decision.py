"""What identifies a training job, and what is done about one that is there already."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.decision import (
    Decision,
    Situation,
    archive_name,
    decide,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.spec import JobSpec, unit_name

SPEC = JobSpec(name="demo", config={"train": {"max_steps": 20}}, nodes=("a", "b"), head_address="10.0.0.1")
SAME = {"spec_sha256": SPEC.sha256, "config_sha256": SPEC.config_sha256, "has_output": True, "has_setup": True}
OTHER_LAUNCH = {**SAME, "spec_sha256": "1" * 64}
OTHER_CONFIG = {**SAME, "spec_sha256": "1" * 64, "config_sha256": "2" * 64}
RUNNING_ELSEWISE = (
    "Job demo is already running on this node under another specification "
    f"(11111111, asked for {SPEC.sha256[:8]}): stop it first with state=stopped, or choose another name."
)


def test_the_hash_is_the_same_on_every_node_and_day() -> None:
    assert SPEC.sha256 == "4b8e5a96054cc63c03f054540999cbe4a9d19056ac6c549c5d34afe36aa24f05"
    assert SPEC.rdzv_id == "demo-" + SPEC.sha256[:8]
    assert unit_name("demo") == "gaudi-train-demo.service"


def test_the_order_of_keys_does_not_count() -> None:
    one = replace(SPEC, config={"a": 1, "b": {"c": 2, "d": 3}})
    two = replace(SPEC, config={"b": {"d": 3, "c": 2}, "a": 1})
    assert one.sha256 == two.sha256


@pytest.mark.parametrize(
    "change",
    [
        {"config": {"train": {"max_steps": 21}}},
        {"nodes": ("a",)},
        {"nodes": ("b", "a")},
        {"head_address": "10.0.0.2"},
        {"rdzv_port": 29401},
        {"processes_per_node": 2},
        {"max_restarts": 1},
        {"threads": 1},
        {"environment": {"A": "1"}},
        {"environment_files": ("/etc/a.env",)},
        {"user": "someone"},
        {"venv": "/opt/other"},
        {"stop_timeout": 60},
        {"trainer_version": "0.2.0"},
        {"spares": 1},
        {"min_nodes": 1},
        {"command": ("/srv/train.py",), "config": {}},
        {"command": ("/srv/train.py", "--lr=1"), "config": {}},
        {"command": ("train.py",), "chdir": "/srv", "config": {}},
    ],
)
def test_whatever_makes_another_run_makes_another_hash(change: dict[str, Any]) -> None:
    other = replace(SPEC, **change)
    assert other.sha256 != SPEC.sha256
    assert (other.config_sha256 != SPEC.config_sha256) == ("config" in change)


def own(*words: str, chdir: str | None = None) -> JobSpec:
    """A job that runs a command of the user's."""
    return replace(SPEC, config={}, command=words, chdir=chdir)


def test_another_command_is_another_training() -> None:
    trainings = [own("/a/train.py"), own("/a/train.py", "--lr=1"), own("/b/train.py"), own("train.py", chdir="/a")]
    assert len({spec.config_sha256 for spec in [*trainings, replace(SPEC, config={})]}) == 5
    assert own("/a/train.py").config_sha256 == replace(own("/a/train.py"), threads=2).config_sha256


@pytest.mark.parametrize(
    ("words", "chdir", "script"),
    [
        (("/a/train.py", "x.py"), None, "/a/train.py"),
        (("/a/train.py",), "/b", "/a/train.py"),
        (("train.py",), "/b", "/b/train.py"),
        (("src/train.py",), "/b/", "/b/src/train.py"),
    ],
)
def test_the_script_of_a_command(words: tuple[str, ...], chdir: str | None, script: str) -> None:
    spec = own(*words, chdir=chdir)
    spec.check()
    assert spec.script == script
    assert SPEC.script is None


#: Wanted state, state found, specification found -> what is done. Every cell of the table.
CELLS = [
    *[
        (wanted, state, found, decision)
        for wanted in ("started", "finished")
        for state, found, decision in (
            ("absent", {}, Decision("start")),
            ("absent", {**SAME, "has_setup": False}, Decision("start")),
            ("absent", {**OTHER_LAUNCH, "has_setup": False}, Decision("start")),
            ("absent", {**OTHER_CONFIG, "has_setup": False}, Decision("start", archive=True)),
            ("absent", {"has_output": True}, Decision("start", archive=True)),
            ("stopped", SAME, Decision("start")),
            ("stopped", OTHER_LAUNCH, Decision("start")),
            ("stopped", OTHER_CONFIG, Decision("start", archive=True)),
            ("failed", SAME, Decision("start")),
            ("failed", OTHER_LAUNCH, Decision("start")),
            ("failed", OTHER_CONFIG, Decision("start", archive=True)),
            ("running", SAME, Decision("keep")),
            ("running", OTHER_LAUNCH, Decision("refuse", reason=RUNNING_ELSEWISE)),
            ("running", OTHER_CONFIG, Decision("refuse", reason=RUNNING_ELSEWISE)),
            ("interrupted", SAME, Decision("start")),
            ("interrupted", OTHER_CONFIG, Decision("start", archive=True)),
            ("spare", SAME, Decision("keep")),
            ("spare", OTHER_CONFIG, Decision("start", archive=True)),
            ("finished", SAME, Decision("keep")),
            ("finished", OTHER_LAUNCH, Decision("keep")),
            ("finished", OTHER_CONFIG, Decision("start", archive=True)),
        )
    ],
    *[
        ("stopped", state, found, Decision("stop" if state == "running" else "keep"))
        for state in ("absent", "stopped", "failed", "running", "finished")
        for found in (SAME, OTHER_LAUNCH, OTHER_CONFIG)
    ],
    *[
        ("absent", state, found, Decision("remove"))
        for state in ("stopped", "failed", "running", "finished")
        for found in (SAME, OTHER_LAUNCH, OTHER_CONFIG)
    ],
    ("absent", "absent", {}, Decision("keep")),
    ("absent", "absent", {"has_output": True}, Decision("keep")),
    ("absent", "absent", {"has_output": True, "has_setup": True}, Decision("remove")),
    ("absent", "running", {}, Decision("remove")),
]


@pytest.mark.parametrize(("wanted", "state", "found", "decision"), CELLS)
def test_decision(wanted: str, state: str, found: dict[str, Any], decision: Decision) -> None:
    assert decide(wanted, "demo", Situation(state, **found), SPEC) == decision


def test_purge_removes_what_was_kept_before() -> None:
    kept = Situation("absent", has_output=True)
    assert decide("absent", "demo", kept, purge=True) == Decision("remove")
    assert decide("absent", "demo", Situation("absent"), purge=True) == Decision("keep")


def test_a_stopped_job_stays_stopped_where_it_is_not_to_be_resumed() -> None:
    for state in ("stopped", "interrupted"):
        stopped = Situation(state, stopped_on_purpose=True, **SAME)
        assert decide("finished", "demo", stopped, SPEC, resume_stopped=False) == Decision("keep")
        assert decide("finished", "demo", stopped, SPEC) == Decision("start")
        assert decide("ended", "demo", stopped) == Decision("keep")
        rebooted = Situation(state, **SAME)
        assert decide("finished", "demo", rebooted, SPEC, resume_stopped=False) == Decision("start")


def test_a_finished_job_rejoins_where_it_is_not_finished_everywhere() -> None:
    assert decide("finished", "demo", Situation("finished", **SAME), SPEC, rejoin=True) == Decision("start")
    assert decide("finished", "demo", Situation("running", **SAME), SPEC, rejoin=True) == Decision("keep")


def test_only_what_acts_is_a_change() -> None:
    changed = {action: Decision(action).changed for action in ("keep", "refuse", "start", "stop", "remove")}
    assert changed == {"keep": False, "refuse": False, "start": True, "stop": True, "remove": True}


def test_old_output_never_lands_on_older_output() -> None:
    assert archive_name("demo", "abcdef0123", set()) == "demo.abcdef01"
    assert archive_name("demo", "abcdef0123", {"demo.abcdef01", "demo.abcdef01-2"}) == "demo.abcdef01-3"
    assert archive_name("demo", None, set()) == "demo.unknown"
