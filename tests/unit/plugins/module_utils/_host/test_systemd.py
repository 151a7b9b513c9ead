"""systemctl show, read."""

from __future__ import annotations

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._host.systemd import UnitState, parse_show, show_argv

RUNNING = """ExecMainCode=0
InvocationID=2f1d
ExecMainStatus=0
Result=success
LoadState=loaded
ActiveState=active
SubState=running
"""
UNKNOWN = """ExecMainCode=0
ExecMainStatus=0
Result=success
LoadState=not-found
ActiveState=inactive
SubState=dead
"""


def test_the_command_asks_for_what_is_read() -> None:
    assert show_argv("/bin/systemctl", "a.service") == [
        "/bin/systemctl",
        "show",
        "a.service",
        "--property=LoadState,ActiveState,SubState,Result,ExecMainCode,ExecMainStatus,InvocationID",
    ]


def test_a_running_unit() -> None:
    unit = parse_show(RUNNING)
    assert unit == UnitState("loaded", "active", "running", "success", 0, False, invocation="2f1d")
    assert unit.up and not unit.failed


def test_a_unit_that_was_never_there_is_down() -> None:
    unit = parse_show(UNKNOWN)
    assert not unit.up and not unit.failed
    assert unit.load_state == "not-found"


@pytest.mark.parametrize("state", ["activating", "deactivating", "reloading"])
def test_a_process_may_be_alive_between_states(state: str) -> None:
    assert parse_show(RUNNING.replace("ActiveState=active", f"ActiveState={state}")).up


@pytest.mark.parametrize(
    ("code", "status", "result", "ending"),
    [
        ("1", "1", "exit-code", "exit status 1"),
        ("1", "0", "success", "exit status 0"),
        ("2", "9", "signal", "killed by signal 9"),
        ("3", "11", "core-dump", "killed by signal 11"),
        ("0", "0", "resources", "systemd result 'resources'"),
    ],
)
def test_how_a_run_ended(code: str, status: str, result: str, ending: str) -> None:
    text = f"ActiveState=failed\nExecMainCode={code}\nExecMainStatus={status}\nResult={result}\n"
    unit = parse_show(text)
    assert unit.failed and not unit.up
    assert unit.ending == ending


def test_output_of_something_else_is_refused() -> None:
    with pytest.raises(ValueError, match="'no such thing': systemd must be running on this node"):
        parse_show("no such thing\n")
