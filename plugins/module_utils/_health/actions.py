# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What can be done about a fault, from doing nothing to a new card, and how bad a fault is."""

from __future__ import annotations

NONE = "none"
WATCH = "watch"
RETRY = "retry"
FREE = "free"
CONFIGURE = "configure"
RESET = "reset"
RELOAD = "reload"
REBOOT = "reboot"
ISOLATE = "isolate"
REPLACE = "replace"

#: Each action, and what it means; from the least to the most.
ACTIONS = {
    NONE: "nothing has to be done",
    WATCH: "look at it again: one such reading is no fault",
    RETRY: "wait, and read again; of a port: take the ports of the idle node down and up, and wait a minute",
    FREE: "end the process that holds the card: it belongs to a user",
    CONFIGURE: "correct the host's configuration or packages, as the named page says",
    RESET: "reset the card (hl-smi -r -i BDF), which has to be free",
    RELOAD: "unload the driver and load it again",
    REBOOT: "reboot the node",
    ISOLATE: "take the node out of service",
    REPLACE: "take the node out of service and have the part replaced",
}
#: Actions that take the node away from jobs.
DRAINING = frozenset({RESET, RELOAD, REBOOT, ISOLATE, REPLACE})

INFO, WARNING, ERROR, CRITICAL = "info", "warning", "error", "critical"
SEVERITIES = (INFO, WARNING, ERROR, CRITICAL)
_ORDER = list(ACTIONS)


def strongest(actions: list[str]) -> str:
    """The action that includes the others; NONE of no actions."""
    return max(actions, key=_ORDER.index, default=NONE)


def worst(severities: list[str]) -> str:
    """The highest severity; INFO of none."""
    return max(severities, key=SEVERITIES.index, default=INFO)
