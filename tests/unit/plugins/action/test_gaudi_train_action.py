"""Waiting for a job: what is shown, and when it ends."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from ansible_collections.gaudi3.scale.plugins.action import gaudi_train as action


def job(state: str, step: int = 0, **status: Any) -> dict[str, Any]:
    said = {"step": step, "max_steps": 20, "loss": 3.0, "tokens_per_second": 5120.0, "device": "cpu", **status}
    return {"name": "demo", "state": state, "status": said, "ending": "exit status 1", "log": ["the end"]}


class Play:
    """One task on one host, whose node answers from a list."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lines: list[str] = []
        self.slept: list[float] = []
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.now = 0.0
        monkeypatch.setattr(action.display, "display", self.lines.append)
        monkeypatch.setattr(action.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(action.time, "sleep", self.sleep)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def run(
        self,
        answers: list[dict[str, Any]],
        *,
        host: str = "gaudi-1",
        check: bool = False,
        changed: bool = True,
        **arguments: Any,
    ) -> dict[str, Any]:
        """Run the task; the first answer is the module's, the others are looks at the job."""
        queue = list(answers)
        task = MagicMock(args={"name": "demo", "state": "finished", **arguments}, check_mode=check, async_val=0)
        plugin = action.ActionModule(task, MagicMock(), MagicMock(), MagicMock(), MagicMock(), MagicMock())

        def execute(module_name: str, module_args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
            self.asked.append((module_name.rpartition(".")[2], module_args))
            answer = queue.pop(0) if len(queue) > 1 else queue[0]
            if "failed" in answer:
                return answer
            if module_name.endswith("_info"):
                return {"changed": False, "jobs": [answer]}
            return {"changed": changed, "job": {key: answer[key] for key in answer if key != "log"}}

        plugin._execute_module = execute
        result: dict[str, Any] = plugin.run(task_vars={"inventory_hostname": host})
        return result


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Play:
    return Play(monkeypatch)


def test_progress_is_shown_when_it_changed(play: Play) -> None:
    result = play.run([job("running", 1), job("running", 1), job("running", 9), job("finished", 20)], poll_interval=2)
    assert play.lines == [
        "gaudi-1: step 1/20, loss 3.000, 5,120 tokens/s (cpu)",
        "gaudi-1: step 9/20, loss 3.000, 5,120 tokens/s (cpu)",
        "gaudi-1: step 20/20, loss 3.000, 5,120 tokens/s (cpu)",
    ]
    assert play.slept == [2, 2, 2]
    assert "failed" not in result
    assert (result["changed"], result["job"]["state"]) == (True, "finished")
    assert "log" not in result and "log" not in result["job"]


def test_a_job_that_was_started_is_waited_for(play: Play) -> None:
    result = play.run([job("running", 1), job("finished", 20)], state="ended")
    assert (result["job"]["state"], len(play.slept)) == ("finished", 1)
    result = play.run([job("absent")], state="ended")
    assert result["msg"] == "There is no job demo on this node to wait for: start it with state=started."


def test_the_node_is_asked_with_the_jobs_own_places(play: Play) -> None:
    play.run([job("running"), job("finished", 20)], jobs_dir="/data/jobs", lines=7, config={})
    assert play.asked[1] == ("gaudi_train_info", {"name": "demo", "jobs_dir": "/data/jobs", "lines": 0})


def test_a_job_that_was_finished_says_nothing(play: Play) -> None:
    result = play.run([job("finished", 20)], changed=False)
    assert (play.lines, play.slept, result["changed"]) == ([], [], False)


@pytest.mark.parametrize("options", [{"state": "started"}, {"state": "stopped"}, {"check": True}])
def test_nothing_is_waited_for_unless_it_is_asked(play: Play, options: dict[str, Any]) -> None:
    play.run([job("running", 1)], **options)
    assert len(play.asked) == 1


def test_a_failed_job_is_told_with_its_last_words(play: Play) -> None:
    result = play.run([job("running", 3), job("failed", 4, error="the dataset is empty.")], lines=7)
    assert result["failed"] is True
    assert result["msg"] == (
        "Job demo failed on this node at step 4 of 20: the dataset is empty; the last lines of its log are in 'log'."
    )
    assert result["log"] == ["the end"]
    assert play.asked[-1][1]["lines"] == 7


def test_a_trainer_which_could_not_say_why(play: Play) -> None:
    result = play.run([job("running"), {**job("failed"), "status": None}])
    assert result["msg"] == (
        "Job demo failed on this node before its first step: its unit ended with exit status 1; the last lines of its "
        "log are in 'log'."
    )


def test_a_job_that_was_stopped_meanwhile(play: Play) -> None:
    result = play.run([job("running", 3), job("stopped", 4)])
    assert result["failed"] is True
    assert result["msg"] == (
        "Job demo is stopped on this node at step 4 of 20, but not finished: run the task again to continue it."
    )


def test_an_interrupted_job_says_why_and_goes_on_when_it_is_run_again(play: Play) -> None:
    result = play.run(
        [job("running", 3), job("interrupted", 4, interruption="SIGTERM was sent to this process (rank 0)")]
    )
    assert result["failed"] is True
    assert result["msg"] == (
        "Job demo is interrupted on this node at step 4 of 20, but not finished (SIGTERM was sent to this process "
        "(rank 0)): run the task again to continue it."
    )


@pytest.mark.parametrize(
    ("status", "where"),
    [(None, ""), ({"state": "failed"}, ""), ({"step": 7, "max_steps": None}, " at step 7")],
)
def test_a_script_of_ones_own_need_not_say_how_far_it_is(status: dict[str, Any] | None, where: str, play: Play) -> None:
    own = {"name": "demo", "state": "failed", "status": status, "ending": "exit status 1", "command": ["/srv/train.py"]}
    result = play.run([{**own, "state": "running", "status": None}, {**own, "log": []}])
    assert result["msg"] == (
        f"Job demo failed on this node{where}: its unit ended with exit status 1; the last lines of its log are in "
        "'log'."
    )
    result = play.run([{**own, "state": "running", "log": []}], timeout=1)
    assert result["msg"].startswith(f"Job demo still runs{where} after 1 seconds of waiting, and was left running")


def test_a_spare_node_that_was_not_needed_is_done(play: Play) -> None:
    result = play.run([job("running"), {**job("spare"), "status": {"state": "spare"}}])
    assert "failed" not in result and result["job"]["state"] == "spare"


def test_timeout_leaves_the_job_running_and_says_so(play: Play) -> None:
    result = play.run([job("running", 3)], timeout=10, poll_interval=4)
    assert play.slept == [4, 4, 4]
    assert result["failed"] is True
    assert result["msg"] == (
        "Job demo still runs at step 3 of 20 after 10 seconds of waiting, and was left running: run the task again to "
        "wait on, or raise 'timeout'."
    )
    assert {name for name, _arguments in play.asked} == {"gaudi_train", "gaudi_train_info"}


def test_a_unit_that_outlives_the_job_on_its_head_is_not_waited_for_until_the_timeout(play: Play) -> None:
    result = play.run([job("running", 3)], host="gaudi-2", changed=False, poll_interval=10, ended_on="gaudi-1")
    assert play.slept == [10, 10, 10]
    assert result["failed"] is True
    assert result["msg"] == (
        "Job demo ended on gaudi-1, without which it cannot go on, but its unit still runs here: look at gaudi-1 and "
        "run the task again, or stop the job with state=stopped."
    )
    assert "failed" not in play.run([job("running", 3), job("finished", 20)], ended_on="gaudi-1")


def test_a_start_that_was_refused_is_passed_on(play: Play) -> None:
    refused = {"failed": True, "msg": "no"}
    assert play.run([refused]) == refused


def test_a_look_that_fails_ends_the_waiting(play: Play) -> None:
    result = play.run([job("running", 3), {"failed": True, "msg": "gone"}])
    assert (result["failed"], result["msg"], result["job"]["status"]["step"]) == (True, "gone", 3)


def test_nodes_that_have_not_come_are_named(play: Play) -> None:
    peers = {"gaudi-2": ["10.0.0.2"], "gaudi-3": ["10.0.0.3"]}

    def waiting(*names: str) -> dict[str, Any]:
        return {**job("running"), "status": None, "missing": list(names)}

    result = play.run([waiting(), waiting("gaudi-2", "gaudi-3"), waiting("gaudi-3")], peers=peers, timeout=20)
    assert play.lines == ["gaudi-1: waits for gaudi-2, gaudi-3", "gaudi-1: waits for gaudi-3"]
    assert play.asked[1] == ("gaudi_train_info", {"name": "demo", "lines": 0, "peers": peers})
    assert result["msg"] == (
        "Job demo still runs and waits for gaudi-3 after 20 seconds of waiting, and was left running: run the task "
        "again to wait on, or raise 'timeout'."
    )


def test_a_secret_is_refused_before_it_gets_to_the_node(play: Play) -> None:
    """There, the module's call would stand in the journal with it, and be read by all who read that."""
    result = play.run([job("running", 1)], environment={"A": "1", "HF_TOKEN": "hunter2"})
    assert result["failed"] and not result.get("changed") and play.asked == []
    assert result["msg"] == (
        "Environment variable 'HF_TOKEN' looks like a secret, and every user of the node can read a unit's "
        "environment: put it into a file with mode 0600 and name that in environment_files."
    )
    assert "hunter2" not in str(result)


def secret_given(play: Play, **arguments: Any) -> Any:
    play.asked.clear()
    play.run([job("running")], state="started", **{"nodes": ["a", "b"], **arguments})
    assert "secrets_dir" not in play.asked[0][1], "the node has nothing to do with it"
    return play.asked[0][1].get("secret")


def test_all_nodes_of_a_job_get_the_same_secret_and_other_jobs_another(play: Play, tmp_path: Path) -> None:
    place: dict[str, Any] = {"secrets_dir": str(tmp_path / "secrets")}
    first = play.run([job("running")], state="started", nodes=["a", "b"], changed=False, **place)
    assert not first["changed"], "what is kept on the controller is no change of the node, as check mode says"
    one = secret_given(play, **place)
    assert re.fullmatch("[0-9a-f]{64}", one) and secret_given(play, **place) == one
    assert secret_given(play, name="other", **place) not in (one, None)
    kept = tmp_path / "secrets" / "trainer_job_secret"
    assert kept.stat().st_mode & 0o777 == 0o600 and kept.read_text().strip() not in (one, "")


def test_a_secret_that_is_handed_over_is_kept_nowhere_and_given_to_no_node(play: Play, tmp_path: Path) -> None:
    given = "x" * 32
    made = secret_given(play, secret=given, secrets_dir=str(tmp_path / "secrets"))
    assert re.fullmatch("[0-9a-f]{64}", made) and not (tmp_path / "secrets").exists()
    result = play.run([job("running")], nodes=["a", "b"], secret="short-one")
    assert result["msg"].startswith("trainer_job_secret has 9 letters, but must have at least 32")
    assert "short-one" not in result["msg"]


@pytest.mark.parametrize("arguments", [{"check": True}, {"nodes": ["a"]}, {"state": "stopped"}, {"state": "ended"}])
def test_no_secret_is_made_where_none_is_needed(play: Play, tmp_path: Path, arguments: dict[str, Any]) -> None:
    play.run([job("stopped")], **{"nodes": ["a", "b"], "secrets_dir": str(tmp_path / "secrets"), **arguments})
    assert "secret" not in play.asked[0][1] and not (tmp_path / "secrets").exists()


def test_a_folder_in_the_inventory_is_refused(play: Play, tmp_path: Path) -> None:
    task = MagicMock(
        args={"name": "demo", "nodes": ["a", "b"], "secrets_dir": str(tmp_path / "s")}, check_mode=False, async_val=0
    )
    plugin = action.ActionModule(task, MagicMock(), MagicMock(), MagicMock(), MagicMock(), MagicMock())
    said = plugin.run(task_vars={"ansible_inventory_sources": [str(tmp_path)]})
    assert said["failed"] and "lies in the inventory" in said["msg"] and not (tmp_path / "s").exists()


@pytest.mark.parametrize("answer", [{"changed": False}, {"skipped": True}, {"job": 5}, {"job": {"name": "demo"}}])
def test_an_answer_without_a_job_is_refused_in_a_sentence_with_the_nodes_name(
    play: Play, monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any]
) -> None:
    task = MagicMock(args={"name": "demo", "state": "started"}, check_mode=True, async_val=0, delegate_to=None)
    plugin = action.ActionModule(task, MagicMock(), MagicMock(), MagicMock(), MagicMock(), MagicMock())
    monkeypatch.setattr(plugin, "_execute_module", lambda **_asked: dict(answer))
    for place, name in ((None, "gaudi-1"), ("gaudi-2", "gaudi-2")):
        task.delegate_to = place
        result = plugin.run(task_vars={"inventory_hostname": "gaudi-1"})
        assert result["failed"] is True and "job" not in result
        assert result["msg"].startswith(f"{name} answers with ") and result["msg"].count(". ") == 0
    assert play.asked == []


def test_settings_with_which_a_node_sets_variables_are_refused(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """The addresses in a job's options are those of other nodes."""
    monkeypatch.setattr(action.constants.config, "get_config_value", lambda name: name == "INJECT_FACTS_AS_VARS")
    refused = play.run([job("running")])
    assert refused["failed"] and refused["msg"].startswith("inject_facts_as_vars is true") and not play.asked
    assert "failed" not in play.run([job("stopped")], state="stopped")


def test_the_trace_of_the_run_is_handed_to_the_job(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, others = (f"00-{each * 32}-{each * 16}-01" for each in "ab")
    for value, given, expected in (
        (ours, {}, ours),
        (ours, {"trace_parent": others}, others),
        ("nonsense", {}, None),
        (None, {}, None),
    ):
        monkeypatch.delenv("TRACEPARENT", raising=False)
        if value is not None:
            monkeypatch.setenv("TRACEPARENT", value)
        play.run([job("finished")], **given)
        assert play.asked[-1][1].get("trace_parent") == expected


def of_slurm(state: str, slurm: str, reason: str = "", ending: str | None = None) -> dict[str, Any]:
    place = {"job": 17, "state": slurm, "reason": reason, "nodes": ""}
    return {"name": "demo", "state": state, "status": None, "ending": ending, "slurm": place, "log": ["the end"]}


def test_a_job_of_slurm_is_waited_for_through_the_queue_and_a_controller_that_is_down(play: Play) -> None:
    down = of_slurm("unknown", "", ending="Slurm does not answer: connect failure.")
    states = [of_slurm("queued", "PENDING", "Resources"), down, of_slurm("running", "RUNNING"), job("finished", 20)]
    result = play.run(states, state="ended")
    assert play.lines[0] == "gaudi-1: queued in Slurm as job 17 (Resources)"
    assert result["job"]["state"] == "finished" and len(play.slept) == 3
    late = play.run([of_slurm("queued", "PENDING")], state="ended", timeout=10)
    assert late["msg"].startswith("Job demo is still queued in Slurm after 10 seconds of waiting, and was left running")
    late = play.run([down], state="ended", timeout=10)
    assert late["msg"].startswith("Job demo has an unknown state (Slurm does not answer: connect failure) after 10")
    failed = play.run([of_slurm("failed", "TIMEOUT", ending="TIMEOUT")], state="ended")
    assert "job 17 of Slurm ended with TIMEOUT" in failed["msg"] and failed["log"] == ["the end"]


def test_a_job_of_slurm_needs_no_secret_of_the_controllers(play: Play) -> None:
    play.run([of_slurm("queued", "PENDING")], state="started", launcher="slurm", nodes=["a", "b"])
    assert "secret" not in play.asked[0][1]
