"""gaudi_fence: the fence before the jobs stop, a second run, jobs that go on as spares, and the history."""

from __future__ import annotations

import errno
import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._health import fence, history
from ansible_collections.gaudi3.scale.plugins.modules import gaudi_fence

SYSTEMCTL = """#!/bin/sh
state={folder}/$2
case $1 in
show)
  echo LoadState=loaded; echo ActiveState=$(cat $state 2>/dev/null || echo inactive)
  echo SubState=dead; echo Result=success; echo ExecMainCode=1; echo ExecMainStatus=75; echo InvocationID=;;
stop)
  grep -qs $2 {folder}/stays && {{ echo busy >&2; exit 1; }}
  echo inactive > $state; ls {health}/fence.json >> {folder}/calls; echo stop $2 >> {folder}/calls;;
start) [ -e {folder}/refuses ] && {{ echo no >&2; exit 1; }}; echo active > $state; echo start $2 >> {folder}/calls;;
esac
"""


class Node:
    def __init__(self, run_module: Any, folder: Path) -> None:
        self._run = run_module
        self.folder, self.health = folder / "units", folder / "health"
        self.jobs = folder / "jobs"
        for each in (self.folder, self.jobs):
            each.mkdir()
        self.systemctl = folder / "systemctl"
        self.systemctl.write_text(SYSTEMCTL.format(folder=self.folder, health=self.health))
        self.systemctl.chmod(0o755)

    def job(self, name: str, port: int, state: str = "active", is_head: bool = False, **more: Any) -> None:
        (self.folder / f"gaudi-train-{name}.service").write_text(state)
        control = self.jobs / ".control" / name
        control.mkdir(parents=True)
        (self.jobs / name).mkdir()
        specification = {"head_address": "127.0.0.1", "rdzv_port": port, "nodes": ["a", "b", "c"], **more}
        (control / "job.json").write_text(json.dumps({"specification": specification, "share": {"is_head": is_head}}))

    def fence(self, state: str, **more: Any) -> dict[str, Any]:
        result: dict[str, Any] = self._run(
            gaudi_fence,
            state=state,
            folder=str(self.health),
            runtime=str(self.health.parent / "run"),
            jobs_dir=str(self.jobs),
            unit_dir=str(self.folder),
            systemctl_executable=str(self.systemctl),
            journalctl_executable="/bin/true",
            **more,
        )
        return result

    @property
    def calls(self) -> list[str]:
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture(name="node")
def a_node(run_module: Any, tmp_path: Path) -> Node:
    return Node(run_module, tmp_path)


def test_a_node_goes_out_and_comes_back_as_a_spare_of_the_jobs_that_still_run(node: Node) -> None:
    with socket.create_server(("127.0.0.1", 0)) as rendezvous, socket.create_server(("127.0.0.1", 0)) as other:
        closed = other.getsockname()[1]
        other.close()
        node.job("demo", rendezvous.getsockname()[1])
        node.job("over", closed, spares=1)
        node.job("idle", closed, "inactive")
        planned = node.fence("out", reason="accel1: broken", step="reset", check=True)
        assert (planned["changed"], planned["jobs"], node.health.exists()) == (True, ["demo", "over"], False)
        out = node.fence("out", reason="accel1: broken", step="reset", by="healing", diff=True)
        assert (out["changed"], out["jobs"]) == (True, ["demo", "over"])
        assert '"step": "reset"' in out["diff"]["after"]
        path = str(node.health / "fence.json")
        stops = ["stop gaudi-train-demo.service", "stop gaudi-train-over.service"]
        assert node.calls == [path, stops[0], path, stops[1]], "the fence is there before a job is stopped"
        assert node.fence("out", reason="accel1: broken", step="reset")["changed"] is False
        assert node.fence("out", reason="accel1: broken", step="reload")["changed"] is True
        found = fence.read(str(node.health))
        assert found is not None
        assert (found["by"], found["jobs"], found["step"]) == ("healing", ["demo", "over"], "reload")
        assert node.fence("in_service", check=True)["jobs"] == ["demo"]
        back = node.fence("in_service", reason="it is healthy again")
        assert (back["changed"], back["jobs"], back["ended"]) == (True, ["demo"], [])
    assert node.calls[-1] == "start gaudi-train-demo.service"
    assert node.fence("in_service")["changed"] is False
    entries = history.entries(str(node.health))
    assert [(each["what"], each["step"]) for each in entries] == [
        ("out", "reset"),
        ("out", "reload"),
        ("in service", ""),
    ]


def test_what_cannot_have_gone_on_without_the_node_is_started_with_it(node: Node) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        closed = other.getsockname()[1]
    node.job("all-work", closed)
    node.job("led", closed, spares=1, is_head=True)
    node.job("fewer-do", closed, min_nodes=2)
    node.fence("out", reason="accel1: broken")
    assert node.fence("in_service", check=True)["ended"] == ["all-work", "led"]
    back = node.fence("in_service")
    assert (back["jobs"], back["ended"]) == (["all-work", "led"], ["all-work", "led"])
    assert node.calls[-2:] == ["start gaudi-train-all-work.service", "start gaudi-train-led.service"]


def test_what_ended_with_a_node_is_started_again_where_it_did_not_finish(node: Node) -> None:
    for name, state in (("ended", "failed"), ("running", "active"), ("stopped", "failed"), ("other", "failed")):
        node.job(name, 1, state)
    record = node.jobs / ".control/stopped/job.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "stopped_at": 1767225600.0}))
    names = {name: ["b"] for name in ("ended", "running", "stopped", "elsewhere")}
    planned = node.fence("in_service", resume=names, check=True)
    assert (planned["changed"], planned["jobs"], node.calls) == (True, ["ended"], [])
    assert node.fence("in_service", resume=names)["jobs"] == ["ended"]
    assert node.calls == ["start gaudi-train-ended.service"]
    assert node.fence("in_service", resume=names)["changed"] is False


def test_a_spare_node_waits_again_for_a_job_that_ended_before_it_was_needed(node: Node) -> None:
    node.job("led", 1, "inactive", spares=1)
    (node.jobs / "led/status.json").write_text('{"schema": 1, "state": "spare", "updated_at": 1767225600.5}')
    assert node.fence("in_service", resume={"led": ["a"]})["jobs"] == ["led"]
    assert node.calls == ["start gaudi-train-led.service"]


def test_a_node_cannot_have_a_job_started_that_is_not_its_own(node: Node) -> None:
    """One that is given back may name any job; the others know from their own record whose it is."""
    node.job("own", 1, "failed")
    node.job("broken", 1, "failed")
    (node.jobs / ".control/broken/job.json").write_text('{"specification": {"nodes": "hostile"}}')
    asked = {name: ["hostile"] for name in ("own", "broken")}
    assert node.fence("in_service", resume={**asked, "own": "hostile"})["jobs"] == []
    assert node.fence("in_service", resume=asked)["jobs"] == []
    assert node.calls == []
    assert node.fence("in_service", resume={"own": ["hostile", "b"]})["jobs"] == ["own"]


def test_a_job_that_does_not_start_again_is_named(node: Node) -> None:
    with socket.create_server(("127.0.0.1", 0)) as rendezvous:
        node.job("demo", rendezvous.getsockname()[1])
        node.fence("out", reason="accel1: broken")
        (node.folder / "refuses").touch()
        failed = node.fence("in_service")
    assert failed["msg"].startswith("'systemctl start gaudi-train-demo.service' failed (no): look into its log")


def test_a_job_that_does_not_stop_keeps_no_other_from_being_stopped(node: Node) -> None:
    for name in ("first", "second", "third"):
        node.job(name, 1)
    (node.folder / "stays").write_text("gaudi-train-first.service gaudi-train-second.service")
    failed = node.fence("out", reason="accel1: broken", step="reset", by="healing")
    assert failed["msg"] == (
        "'systemctl stop gaudi-train-first.service' failed (busy): look into its log with 'journalctl -u "
        "gaudi-train-first.service', and run again. So did gaudi-train-second.service."
    )
    assert "stop gaudi-train-third.service" in node.calls and fence.read(str(node.health))


def test_a_systemd_that_does_not_answer_is_said(node: Node) -> None:
    node.job("demo", 1)
    node.systemctl.write_text("#!/bin/sh\nexit 1\n")
    # A job of which nothing is known is stopped like one that runs, behind the fence.
    assert node.fence("out")["msg"].startswith("'systemctl stop gaudi-train-demo.service' failed ()")
    assert (node.health / "fence.json").exists()


@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_node_whose_disk_takes_no_fence_is_fenced_in_memory_and_its_jobs_stop(
    node: Node, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    real = gaudi_fence.ensure_file

    def refuses(module: Any, path: str, content: str | None, mode: int = 0o644) -> Any:
        if path.startswith(str(node.health)) and content is not None:
            raise OSError(number, os.strerror(number))
        return real(module, path, content, mode)

    def fails(*_arguments: Any) -> None:
        raise OSError(number, os.strerror(number))

    node.job("demo", 1)
    monkeypatch.setattr(gaudi_fence, "ensure_file", refuses)
    monkeypatch.setattr(history, "append", fails)
    out = node.fence("out", reason="accel1: broken", step="reset", by="healing")
    assert (out["jobs"], out["changed"]) == (["demo"], True)
    assert node.calls[-1] == "stop gaudi-train-demo.service"
    assert [each.rpartition(": ")[2] for each in out["unwritten"]] == [os.strerror(number)] * 2
    memory = node.health.parent / "run"
    found = fence.read(str(node.health), str(memory))
    assert found is not None
    assert (found["by"], found["step"], found["jobs"]) == ("healing", "reset", ["demo"])
    assert node.fence("out", reason="accel1: broken", step="reset", by="healing")["changed"] is False
    monkeypatch.undo()
    assert node.fence("in_service", by="healing")["changed"] is True
    assert fence.read(str(node.health), str(memory)) is None


def test_a_folder_in_the_place_of_the_fence_keeps_no_job_running(node: Node) -> None:
    node.job("demo", 1)
    (node.health / "fence.json").mkdir(parents=True)
    out = node.fence("out", reason="accel1: broken")
    assert (out["jobs"], out["unwritten"]) == (["demo"], [f"{node.health}/fence.json: Is a directory"])
    assert node.calls[-1] == "stop gaudi-train-demo.service"
    assert (node.health.parent / "run" / fence.RUNTIME_FENCE).is_file()


def test_where_no_fence_can_be_written_at_all_the_jobs_stop_and_the_module_fails(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_arguments: Any) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    node.job("demo", 1)
    monkeypatch.setattr(gaudi_fence, "ensure_file", fails)
    monkeypatch.setattr(history, "append", fails)
    failed = node.fence("out", reason="accel1: broken")
    assert "so only the jobs that ran were stopped (demo)" in failed["msg"]
    assert node.calls[-1] == "stop gaudi-train-demo.service"


@pytest.mark.parametrize(
    "text", ['{"by": "person", "jobs": ["demo"]}', "[]", "not JSON", '{"jobs": 5, "by": ["healing"]}']
)
def test_healing_leaves_alone_what_a_person_decided(node: Node, text: str) -> None:
    node.job("demo", 1)
    node.health.mkdir()
    path = node.health / "fence.json"
    path.write_text(text)
    for state in ("out", "in_service"):
        assert node.fence(state, by="healing", reason="x", step="reset")["changed"] is False
    assert (path.read_text(), node.calls) == (text, [])
    assert node.fence("in_service")["changed"] is True


def test_an_idle_node_alone_is_taken_out_for_a_test(node: Node) -> None:
    node.job("demo", 1)
    asked = {"reason": "job demo: Rank 1 waits.", "step": "examine", "by": "healing", "only_idle": True}
    left = node.fence("out", **asked)
    assert (left["changed"], left["busy"], left["jobs"]) == (False, True, [])
    assert node.calls == [] and not node.health.exists(), "its job goes on, and was not in danger"
    (node.folder / "gaudi-train-demo.service").write_text("inactive")
    assert node.fence("out", **asked, check=True)["changed"] is True
    out = node.fence("out", **asked)
    assert (out["changed"], out["busy"]) == (True, False)
    assert json.loads((node.health / "fence.json").read_text())["step"] == "examine"


def test_a_job_that_starts_while_the_fence_is_written_keeps_its_node(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.job("demo", 1, "inactive")
    written = gaudi_fence.ensure_file

    def starts_meanwhile(module: Any, path: str, text: Any, *more: Any, **others: Any) -> Any:
        if text is not None:
            (node.folder / "gaudi-train-demo.service").write_text("active")
        return written(module, path, text, *more, **others)

    monkeypatch.setattr(gaudi_fence, "ensure_file", starts_meanwhile)
    left = node.fence("out", step="examine", by="healing", only_idle=True)
    assert (left["changed"], left["busy"]) == (False, True)
    assert node.calls == [] and not (node.health / "fence.json").exists()
    assert not (node.health / "history.jsonl").exists()


def test_a_fence_for_a_test_that_was_cut_off_goes_where_a_job_runs(node: Node) -> None:
    node.job("demo", 1, "inactive")
    asked = {"step": "examine", "by": "healing", "only_idle": True}
    node.fence("out", **asked)
    (node.folder / "gaudi-train-demo.service").write_text("active")
    planned = node.fence("out", **asked, check=True)
    assert (planned["changed"], (node.health / "fence.json").exists()) == (True, True)
    left = node.fence("out", **asked)
    assert (left["changed"], left["busy"], (node.health / "fence.json").exists()) == (True, True, False)
    node.fence("out", reason="accel1: broken", step="reset", by="healing")
    (node.folder / "gaudi-train-demo.service").write_text("active")
    left = node.fence("out", **asked)
    assert (left["changed"], left["busy"], (node.health / "fence.json").exists()) == (False, True, True)
