"""What a job's user may write into status.json and job.json, and that it stops nobody who looks at jobs."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._host.systemd import UnitState
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.files import Control
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.launch_command import NodeShare
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.node import JobNode
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.spec import JobSpec
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.state import state_of
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.status import FIELDS, Status, progress_line
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.unit import unit_text

ROOT = Path(__file__).parents[5]
#: JSON texts of values that no field should have, some of which Python reads as numbers.
ODD = [
    "true", "null", "{}", "[]", '""', '"x"', '"\\u001b[2J"', '"\\ud800"', "-1", "1e400", "-1e400", "NaN", "Infinity",
    "1" * 400, "-" + "1" * 400, "1" * 5000, "1." + "1" * 5000, '"' + "x" * 20000 + '"', "[" * 500 + "]" * 500,
    '{"a": ' * 300 + "1" + "}" * 300, '{"spent": "x"}', '{"how": 1}', "1.5",
]  # fmt: skip


def systemctl(argv: list[str]) -> tuple[int, str, str]:
    return (
        (0, f"ActiveState={'active' if 'running' in argv[2] else 'inactive'}\n", "")
        if argv[1] == "show"
        else (0, "", "")
    )


@pytest.fixture
def node(tmp_path: Path) -> JobNode:
    (tmp_path / "units").mkdir()
    for name in ("odd", "running"):
        (tmp_path / "jobs" / name).mkdir(parents=True)
        (tmp_path / f"units/gaudi-train-{name}.service").touch()
    return JobNode(systemctl, str(tmp_path / "jobs"), str(tmp_path / "units"), "systemctl", "journalctl")


@pytest.mark.parametrize("value", ODD, ids=range(len(ODD)))
def test_an_odd_value_of_any_field_hides_no_job(value: str, node: JobNode, tmp_path: Path) -> None:
    text = "{" + ", ".join(f'"{name}": {value}' for name in [*FIELDS, "unknown"]) + "}"
    (tmp_path / "jobs/odd/status.json").write_text(text)
    control = tmp_path / "jobs/.control/odd"
    control.mkdir(parents=True)
    for names in (("started_at", "stopped_at", "specification", "share"), ("spec_sha256", "config_sha256")):
        (control / "job.json").write_text("{" + ", ".join(f'"{name}": {value}' for name in names) + "}")
        assert node.running() == ["running"]
        for name in node.names():
            found = node.observe(name)
            json.dumps(found.as_dict("/"), allow_nan=False).encode("ascii")
            node.log(name, 1, found.record.get("started_at"), found.run)
            if found.status is not None:
                assert "unknown" not in found.status.values
                assert (progress_line("a", found.status) or "").isprintable()
    node.stop("odd")
    assert node.observe("odd").situation.stopped_on_purpose is True


@pytest.mark.parametrize("name", FIELDS)
def test_each_field_alone_is_read_by_its_kind(name: str) -> None:
    for value in ODD:
        try:
            given = json.loads(value)
        except ValueError:
            continue
        status = Status.of({"state": "running", "step": 1, name: given})
        assert status is not None
        json.dumps(status.as_dict(), allow_nan=False)
        assert (progress_line("a", status) or "").isprintable()
        assert len(json.dumps(status.as_dict())) < 30000


def test_all_that_the_trainer_writes_of_its_progress_is_read() -> None:
    tree = ast.parse((ROOT / "trainer/src/gaudi3_scale/status.py").read_text())
    (shown,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "SHOWN"
    )
    assert [name for name in FIELDS if name in shown] == list(shown)


def test_one_place_reads_what_a_jobs_user_writes() -> None:
    """A place that opened these files by itself would have its own idea of what is in them."""
    readers = {
        str(path.relative_to(ROOT))
        for folder in ("plugins", "deploy/src")
        for path in (ROOT / folder).rglob("*.py")
        if re.search(r"[\"'/](status|job|metrics|anomalies|goodput)\.jsonl?\b[\"']", path.read_text())
    }
    assert readers == {
        "plugins/module_utils/_jobs/status.py",  # reads it
        "plugins/module_utils/_backup/status.py",  # of a backup, of the same name
        "plugins/module_utils/_jobs/files.py",  # reads job.json through record.py
        "plugins/module_utils/_jobs/launch_command.py",  # names it to the launcher
        "plugins/module_utils/_jobs/unit.py",  # names it to grep, which runs as the user of the job
    }
    for page in [*ROOT.glob("playbooks/**/*.*"), *ROOT.glob("roles/**/*.*")]:
        if page.suffix in (".yml", ".j2"):
            text = page.read_text()
            answers = re.findall(r"(?:_verify_job|_trainer_found)\.jobs\b(.*)", text)
            whole = "gaudi3.scale.site_summary(jobs," in text  # which reads the jobs of all nodes by their kinds
            assert whole or all("gaudi3.scale.job_answers" in rest for rest in answers), page


IDS = ["0" * 31 + each for each in "123"]
DOWN = UnitState("loaded", "inactive", "dead", "success", 0, False)


@pytest.mark.parametrize("word", ["spare", "interrupted"])
def test_a_run_that_systemd_forgot_is_known_whatever_the_clock_said(word: str) -> None:
    """systemd forgets the run of a unit that ended well, with 75 as well."""
    record = {"started_at": 1e9, "invocations": IDS[:1]}

    def state(invocation: str, at: float) -> str:
        return state_of(DOWN, True, record, Status.of({"state": word, "updated_at": at, "invocation": invocation}))

    assert state(IDS[0], 1.0) == word, "the clock was set back"
    assert state(IDS[1], 2e9) == "stopped", "an earlier run, while the clock was ahead"
    assert state("", 2e9) == "stopped", "times count no more where a run is known"


def test_the_unit_keeps_its_run_whoever_starts_it(tmp_path: Path) -> None:
    spec = JobSpec(name="demo", config={}, nodes=("a",), head_address="10.0.0.1")
    directory = tmp_path / "50 %/demo"
    unit = unit_text(spec, NodeShare(str(directory)))
    (line,) = re.findall("^ExecStartPre=-\\+(.*)$", unit, re.MULTILINE)
    # As systemd.service(5) reads it: $$ and %% stand for one, %H for the host's name.
    command = line.replace("$$", "$").replace("%%", "\0").replace("%H", "gaudi-1").replace("\0", "%")
    control = tmp_path / "50 %/.control/demo"
    control.mkdir(parents=True)
    for run in IDS:
        subprocess.run(shlex.split(command), env={"INVOCATION_ID": run}, check=True)
    assert [path.name for path in control.iterdir()] == ["invocation.gaudi-1"]
    (control / "invocation.gaudi-2").write_text(IDS[0] + "\n")
    (control / "invocation.gaudi-3").write_text("nonsense\n")
    (control / "invocation.gaudi-4.part").write_text(IDS[1] + "\n")
    assert Control(str(directory)).record() == {"invocations": [IDS[0], IDS[2]]}


def test_a_log_is_of_one_run_and_can_be_shown(tmp_path: Path) -> None:
    asked: list[str] = []

    def journal(argv: list[str]) -> tuple[int, str, str]:
        asked.extend(argv)
        return 0, "second\x1b[2J\nfirst\n", ""

    found = JobNode(journal, str(tmp_path), str(tmp_path), "systemctl", "journalctl").log("demo", 2, 1e9, IDS[0])
    assert found == ["first", r"second\x1b[2J"]
    assert asked[-4:] == [f"_SYSTEMD_INVOCATION_ID={IDS[0]}", "+", f"INVOCATION_ID={IDS[0]}", "_PID=1"]
    assert not [word for word in asked if word.startswith("--since")]


def test_what_was_killed_for_its_memory_is_the_launchers_to_restart() -> None:
    spec: Any = JobSpec(name="demo", config={}, nodes=("a",), head_address="10.0.0.1")
    lines = unit_text(spec, NodeShare("/srv/jobs/demo")).splitlines()
    assert "OOMPolicy=continue" in lines and "KillMode=mixed" in lines


def test_who_held_up_a_job_is_read_as_data() -> None:
    hang = {"sentence": "Rank 3 on n waits.", "kind": "loader", "certain": True, "ranks": [3], "nodes": ["n"]}
    found = Status.of({"state": "failed", "hang": {**hang, "more": 1}})
    assert found is not None and found.values["hang"] == {**hang, "more": 1}
    found = Status.of({"state": "failed", "hang": {**hang, "at": 1e9}})
    assert found is not None and found.values["hang"]["at"] == 1e9
    for odd in ({"ranks": "3"}, {"ranks": [3, "x"]}, {"nodes": [7]}, {"certain": "yes"}, {"sentence": None}):
        found = Status.of({"state": "failed", "hang": {**hang, **odd}})
        assert found is not None and found.values.get("hang") is None, odd
    found = Status.of({"hang": {**hang, "ranks": [*range(500)], "nodes": ["a\x1b[2J"] * 50}})
    assert found is not None
    read = found.values["hang"]
    assert len(read["ranks"]) == 64 and len(read["nodes"]) == 16 and read["nodes"][0].isprintable()
