# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What ``systemctl show`` says about one unit."""

from __future__ import annotations

from dataclasses import dataclass

PROPERTIES = ("LoadState", "ActiveState", "SubState", "Result", "ExecMainCode", "ExecMainStatus", "InvocationID")

#: States in which a process of the unit may be alive.
UP_STATES = ("active", "activating", "reloading", "deactivating")


@dataclass(frozen=True)
class UnitState:
    """One unit's state, in systemd's own words."""

    load_state: str
    active_state: str
    sub_state: str
    result: str
    #: Exit status, or signal number when the main process was killed.
    exit_status: int
    killed: bool
    #: Whether the main process ended by itself; no, when systemd does not remember one.
    exited: bool = False
    #: Of the last run, as the unit's processes have it in their environment; empty when systemd does not remember one.
    invocation: str = ""

    @property
    def up(self) -> bool:
        """Whether a process of the unit may be alive."""
        return self.active_state in UP_STATES

    @property
    def failed(self) -> bool:
        """Whether systemd remembers that the unit's last run failed."""
        return self.active_state == "failed"

    @property
    def ending(self) -> str:
        """How the last run ended, for use inside a sentence."""
        if self.killed:
            return f"killed by signal {self.exit_status}"
        if self.result in ("success", "exit-code"):
            return f"exit status {self.exit_status}"
        return f"systemd result {self.result!r}"


def show_argv(systemctl: str, unit: str) -> list[str]:
    """The command whose output :func:`parse_show` reads."""
    return [systemctl, "show", unit, "--property=" + ",".join(PROPERTIES)]


def parse_show(text: str) -> UnitState:
    """Read the ``KEY=value`` lines of ``systemctl show``.

    A unit which systemd has never heard of is shown too, as not-found and inactive.
    """
    values: dict[str, str] = {}
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals:
            values[key.strip()] = value.strip()
    if "ActiveState" not in values:
        raise ValueError(
            f"systemctl show printed no ActiveState but {text.strip()[:200]!r}: systemd must be running on this node."
        )
    status = values.get("ExecMainStatus", "")
    return UnitState(
        load_state=values.get("LoadState", ""),
        active_state=values["ActiveState"],
        sub_state=values.get("SubState", ""),
        result=values.get("Result", ""),
        exit_status=int(status) if status.isdigit() else 0,
        # waitid's si_code: 1 exited, 2 killed, 3 killed and dumped core.
        killed=values.get("ExecMainCode", "") in ("2", "3"),
        exited=values.get("ExecMainCode", "") == "1",
        invocation=values.get("InvocationID", ""),
    )
