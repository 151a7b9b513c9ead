"""What the callback makes of the events of a run, from its first play to its last line."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.callback.progress import CallbackModule

OPTIONS = {
    "width": 80, "details": "verbose", "changes": True, "history": False, "display_ok_hosts": True,
    "result_format": "yaml", "pretty_results": None, "show_per_host_start": False, "display_failed_stderr": False,
    "check_mode_markers": False,
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
    def get_vars(self, play: Any = None, host: Any = None, **_more: Any) -> dict[str, Any]:
        if play is not None:
            return {"groups": GROUPS, "ansible_play_hosts_all": ["g-1", "m-1"]}
        return {"ansible_host": "10.0.0.2", "ansible_port": 2222, "ansible_user": "{{ who }}"}


def play(name: str, file: str) -> Any:
    return SimpleNamespace(get_variable_manager=Manager, get_path=lambda: f"{file}:3", get_name=lambda: name)


def task(name: str, action: str = "ansible.builtin.command", **more: Any) -> Any:
    given = {"delegate_to": None, "_parent": None, "_uuid": name, "no_log": False, "loop": None, **more}
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
    callback.v2_playbook_on_start(SimpleNamespace(_file_name="/c/site.yml"))
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
    callback.v2_playbook_on_start(SimpleNamespace(_file_name="/c/site.yml"))
    callback.v2_playbook_on_no_hosts_matched()
    callback.v2_playbook_on_stats(SimpleNamespace(processed={}, summarize=dict))
    # Where a line is folded depends on the path of the inventory.
    shown = " ".join(" ".join(callback._display.lines).split())
    assert shown.startswith("Nothing was done: no host of the inventory (")
