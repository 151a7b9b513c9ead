"""What the callback makes of the events of a run, from its first play to its last line."""

from __future__ import annotations

import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest
from ansible import context
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.callback.default import CallbackModule as Default

from ansible_collections.gaudi3.scale.plugins.callback.progress import CallbackModule

OPTIONS = {
    "width": 80, "details": "verbose", "changes": True, "history": False, "display_ok_hosts": True,
    "result_format": "yaml", "pretty_results": None, "show_per_host_start": False, "display_failed_stderr": False,
    "check_mode_markers": False, "silence": 0,
}  # fmt: skip
GROUPS = {"all": ["g-1", "m-1"], "gaudi": ["g-1"], "monitoring": ["m-1"]}


class Display:
    """Keeps what is shown."""

    verbosity = 0
    columns = 80

    def __init__(self) -> None:
        self.lines: list[str] = []

    def display(self, text: str, **_how: Any) -> None:
        self.lines += text.splitlines()

    def warning(self, text: str) -> None:
        self.lines.append(f"warning: {text}")

    def vv(self, text: str) -> None:
        self.lines.append(f"vv: {text}")


class Manager:
    _loader = DataLoader()

    def get_vars(self, play: Any = None, host: Any = None, **_more: Any) -> dict[str, Any]:
        if host is None:
            return {"groups": GROUPS, "ansible_play_hosts_all": ["g-1", "m-1"]}
        return {"ansible_host": "10.0.0.2", "ansible_port": 2222}


def play(name: str, file: str) -> Any:
    return SimpleNamespace(get_variable_manager=Manager, get_path=lambda: f"{file}:3", get_name=lambda: name)


def playbook(file: str, *plays: Any) -> Any:
    return SimpleNamespace(_file_name=file, get_plays=lambda: list(plays))


def task(name: str, action: str = "ansible.builtin.command", **more: Any) -> Any:
    given = {
        "delegate_to": None, "_parent": None, "_uuid": name, "no_log": False, "loop": None,
        "ignore_unreachable": False, "tags": [], **more,
    }  # fmt: skip
    return SimpleNamespace(get_name=lambda: f"role : {name}", name=name, action=action, **given)


def result(host: str, of: Any, **answer: Any) -> Any:
    return SimpleNamespace(task=of, host=SimpleNamespace(get_name=lambda: host, name=host), result=answer)


@pytest.fixture
def callback(monkeypatch: pytest.MonkeyPatch) -> CallbackModule:
    made = CallbackModule()
    monkeypatch.setattr(made, "_display", Display())
    monkeypatch.setattr(made, "get_option", OPTIONS.__getitem__)
    monkeypatch.setattr(sys, "argv", ["ansible-playbook", "-i", "mine", "site.yml", "--check"])
    return made


def test_a_run_is_a_line_for_each_phase_and_its_failures_once_more(callback: CallbackModule) -> None:
    callback.v2_playbook_on_start(playbook("/c/site.yml"))
    callback.v2_playbook_on_play_start(play("Look", "/c/drivers.yml"))
    write, say = task("Write"), task("Say", "ansible.builtin.debug")
    callback.v2_playbook_on_task_start(write, False)
    callback.v2_runner_on_ok(result("g-1", write, changed=True, warnings=["Beware"]))
    callback.v2_runner_on_skipped(result("m-1", write, skipped=True))
    callback.v2_runner_on_ok(result("g-1", say, msg="Of \x1b[2J all"))
    callback.v2_runner_item_on_ok(result("g-1", say, msg=["one", "two"]))
    callback.v2_on_file_diff(result("g-1", write, changed=True, diff={"before": "a\n", "after": "b\n"}))
    callback.v2_runner_on_failed(result("g-1", write, msg="never mind"), ignore_errors=True)
    inner = SimpleNamespace(event=SimpleNamespace(msg="s3cret", chain=None))
    hidden = result("g-1", task("Hide"), censored="the output has been hidden", failed=True)
    hidden.exception = SimpleNamespace(event=SimpleNamespace(msg="s3cret too", chain=inner))
    callback.v2_runner_on_failed(hidden)
    callback.v2_runner_on_unreachable(result("m-1", write, msg="ssh: connect to host: Connection refused"))
    counts = {"g-1": {"failures": 1, "unreachable": 0}, "m-1": {"failures": 0, "unreachable": 1}}
    callback.v2_playbook_on_stats(SimpleNamespace(processed=counts, summarize=counts.__getitem__))
    shown = "\n".join(callback._display.lines)
    assert "s3cret" not in shown and "never mind" not in shown
    assert "warning: Beware" in shown and r"Of \x1b[2J all" in shown and "one\ntwo" in shown
    assert "g-1: Write\n--- before\n+++ after\n@@ -1 +1 @@\n-a\n+b" in shown
    assert "drivers     gaudi (1)                  1 changed, 1 failed" in shown
    assert "monitoring (1)             1 unreachable" in shown
    last = shown[shown.index("Stopped after") :]
    assert "drivers: Hide\n    on g-1" in last and "nothing listens on its port 2222" in last
    assert last.splitlines()[-1].strip() == "ansible-playbook -i mine site.yml --check"


def test_a_run_without_a_host_says_so(callback: CallbackModule) -> None:
    callback.v2_playbook_on_start(playbook("/c/site.yml"))
    callback.v2_playbook_on_no_hosts_matched()
    callback.v2_playbook_on_stats(SimpleNamespace(processed={}, summarize=dict))
    # Where a line is folded depends on the path of the inventory.
    shown = " ".join(" ".join(callback._display.lines).split())
    assert shown.startswith("Nothing was done: no host of the inventory (")


def test_a_list_is_said_once_for_all_hosts_and_a_failure_has_it_once(callback: CallbackModule) -> None:
    callback.v2_playbook_on_start(playbook("/c/site.yml"))
    callback.v2_playbook_on_play_start(play("Look", "/c/site.yml"))
    say, fail = task("Say", "ansible.builtin.debug"), task("Fail")
    for host in ("g-1", "m-1"):
        for msg in (["one", "two"], ["one", "two"], [host, 3]):
            callback.v2_runner_item_on_ok(result(host, say, msg=msg))
    answers: dict[str, list[Any]] = {"g-1": ["it", "failed"], "m-1": [["nested", 4], {"a": 1}]}
    for host, answer in answers.items():
        failed = result(host, fail, msg=answer, failed=True)
        failed.exception = SimpleNamespace(event=SimpleNamespace(msg=str(answer), chain=None))
        callback.v2_runner_on_failed(failed)
    callback.v2_runner_on_ok(result("g-1", say, answer=7, changed=False))
    assert callback._display.lines.pop().strip() == "answer: 7"
    assert callback._display.lines == [
        *("one", "two", "one", "two", "g-1", "3", "m-1", "3"),
        *("FAILED  g-1: Fail", " " * 8 + "it", " " * 8 + "failed"),
        *("FAILED  m-1: Fail", " " * 8 + "nested", " " * 8 + "4", " " * 8 + "{'a': 1}"),
    ]


def ended(callback: CallbackModule, **counts: dict[str, int]) -> list[str]:
    """What is shown at the end of a playbook, with Ansible's counts up to it."""
    begun = len(callback._display.lines)
    every = {host.replace("_", "-"): {"failures": 0, "unreachable": 0, **each} for host, each in counts.items()}
    callback.v2_playbook_on_stats(SimpleNamespace(processed=every, summarize=every.__getitem__))
    return list(callback._display.lines[begun:])


@pytest.mark.parametrize("where", ["task", "loop"])
def test_a_host_that_is_ignored_has_not_failed(callback: CallbackModule, where: str) -> None:
    callback.v2_playbook_on_start(playbook("/c/site.yml"))
    callback.v2_playbook_on_play_start(play("Look", "/c/site.yml"))
    message = {"msg": "ssh: connect to host 10.0.0.2 port 2222: Connection refused", "unreachable": True}
    answer = message if where == "task" else {"msg": "All items completed", "results": [{"msg": "x"}, message]}
    callback.v2_runner_on_unreachable(result("m-1", task("Ask", ignore_unreachable=True), **answer))
    assert callback._display.lines == []
    callback.v2_runner_on_unreachable(result("g-1", task("Ask"), **answer))
    assert "10.0.0.2 is there, and nothing listens on its port 2222" in " ".join(
        line.strip() for line in callback._display.lines
    )
    last = ended(callback, g_1={"unreachable": 1}, m_1={"ignored": 1})
    assert last[1].endswith("monitoring (1)             1 unreachable (ignored)      0:00")
    assert "    on g-1" in last and not any("m-1" in line for line in last)


def test_a_host_that_a_task_is_delegated_to_is_the_one_that_does_not_answer(callback: CallbackModule) -> None:
    callback.v2_playbook_on_start(playbook("/c/site.yml"))
    callback.v2_playbook_on_play_start(play("Look", "/c/site.yml"))
    for delegated in ("m-2", "{{ item }}"):
        silent = result("g-1", task("Ask", delegate_to=delegated), msg="ssh: it is Tuesday")
        silent._task_fields = {"delegate_to": delegated}
        callback.v2_runner_on_unreachable(silent)
    lines = callback._display.lines
    assert lines[1].strip() == "The task is delegated to m-2, which does not answer."
    assert sum("delegated" in line for line in lines) == 1


def test_what_a_host_said_is_hidden_with_no_log(callback: CallbackModule) -> None:
    callback.v2_playbook_on_start(playbook("/c/site.yml"))
    callback.v2_playbook_on_play_start(play("Look", "/c/site.yml"))
    callback.v2_runner_on_unreachable(result("g-1", task("Ask"), censored="hidden", msg="s3cret"))
    shown = " ".join(line.strip() for line in callback._display.lines)
    assert "s3cret" not in shown and "hidden, as it may hold a secret (no_log)." in shown


def test_playbooks_of_one_command_are_told_apart(callback: CallbackModule, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "CLIARGS", {"args": ("a.yml", "b.yml", "c.yml"), "check": True})
    monkeypatch.setattr(sys, "argv", ["ansible-playbook", "a.yml", "b.yml", "c.yml", "--che"])
    runs = []
    for name, changed in (("a", True), ("b", False)):
        callback.v2_playbook_on_start(playbook(f"/{name}/site.yml"))
        callback.v2_playbook_on_play_start(play("Look", f"/{name}/site.yml"))
        callback.v2_runner_on_ok(result("g-1", task("Write"), changed=changed))
        runs.append(ended(callback, g_1={}))
    assert runs[0][-1].endswith("2 hosts, 1 change to make.") and runs[1][-1].endswith("2 hosts, no change to make.")
    assert callback._run is not None and callback._run.past is not None
    assert callback._run.past.what.startswith("/b/site.yml") and len(callback._run.past.phases) == 1
    # What is to be typed then is said behind the last, and of the whole command.
    callback.v2_playbook_on_start(playbook("/c/site.yml"))
    callback.v2_playbook_on_play_start(play("Look", "/c/site.yml"))
    assert ended(callback, g_1={})[-2:] == ["Next, to make them:", "  ansible-playbook a.yml b.yml c.yml"]


def test_a_failure_that_an_earlier_playbook_had_is_none_of_the_next(callback: CallbackModule) -> None:
    for name in ("a", "b"):
        callback.v2_playbook_on_start(playbook(f"/{name}.yml"))
        callback.v2_playbook_on_play_start(play("Look", f"/{name}.yml"))
        last = ended(callback, g_1={"failures": 1})
        assert any(line.startswith("Stopped") for line in last) is (name == "a")


@pytest.mark.parametrize(
    ("given", "tags", "nothing"),
    [
        ({"tags": ["nosuch"]}, ["always"], "--tags nosuch leaves"), ({"tags": ["x"]}, ["always", "x"], ""),
        ({"tags": ["all"], "skip_tags": ["b", "a"]}, ["always"], "--skip-tags a,b leaves"),
        ({"tags": ["always"]}, ["always"], ""), ({"tags": ["tagged"]}, ["x"], ""), ({"tags": ["all"]}, ["always"], ""),
        ({"tags": ["all"], "start_at_task": "No such"}, ["always"], "--start-at-task 'No such' leaves"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("verbose", [0, 1])
def test_tags_that_leave_nothing_to_do_are_named(
    callback: CallbackModule, monkeypatch: pytest.MonkeyPatch, given: Any, tags: list[str], nothing: str, verbose: int
) -> None:
    monkeypatch.setattr(context, "CLIARGS", {**given, "args": ("site.yml",)})
    monkeypatch.setattr(callback._display, "verbosity", verbose)
    for event in ("v2_playbook_on_start", "v2_playbook_on_play_start", "v2_runner_on_ok", "v2_playbook_on_stats"):
        monkeypatch.setattr(Default, event, lambda *_given: None)
    callback.v2_playbook_on_start(playbook("/c/site.yml"))
    callback.v2_playbook_on_play_start(play("Look", "/c/site.yml"))
    callback.v2_runner_on_ok(result("g-1", task("Write", tags=tags)))
    last = ended(callback, g_1={})
    assert any(nothing in line for line in last) if nothing else not any("Nothing was done" in line for line in last)
    assert ("  ansible-playbook site.yml --list-tags" in last) is bool(nothing)


def test_a_task_that_takes_long_is_named_with_its_phase(
    callback: CallbackModule, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Once in each span of silence, and never again when the run has ended."""
    monkeypatch.setattr(callback, "get_option", {**OPTIONS, "silence": 0.1}.__getitem__)
    plays = [play("Look", "/c/preflight.yml"), play("Install", "/c/drivers.yml"), play("Train", "/c/train.yml")]
    callback.v2_playbook_on_start(playbook("/c/site.yml", *plays))
    callback.v2_playbook_on_play_start(plays[1])
    callback.v2_playbook_on_task_start(task("Load the driver"), False)
    end, shown = time.monotonic() + 20, ""
    while shown.count("\n") < 2 and time.monotonic() < end:
        time.sleep(0.02)
        shown += capfd.readouterr().out
    assert shown.splitlines()[:2] == [" " * 12 + "drivers (2 of 3): Load the driver, 0:00"] * 2
    # Short tasks one after another say nothing either.
    for _number in range(20):
        callback.v2_playbook_on_task_start(task("Load a part"), False)
        time.sleep(0.05)
    assert "Load a part" in capfd.readouterr().out
    callback.v2_playbook_on_task_start(task("Ask", "ansible.builtin.pause"), False)
    capfd.readouterr()
    time.sleep(0.3)
    assert capfd.readouterr().out == ""
    callback.v2_playbook_on_task_start(task("Load it again"), False)
    callback.v2_playbook_on_stats(SimpleNamespace(processed={}, summarize=dict))
    capfd.readouterr()
    time.sleep(0.3)
    assert capfd.readouterr().out == ""
