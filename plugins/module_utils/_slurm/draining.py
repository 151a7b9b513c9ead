# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""When a node of Slurm is drained and when it is given back: by its fence, and by what an examination found.

An examination that hangs, fails or says something that cannot be read decides nothing. Of many nodes that would be
drained at the same time the fault is more likely in what examines them, so that only some are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._printable import printable

#: Beginning of the reason of a node that was drained here; nobody else's is given back.
OURS = "gaudi3.scale: "
LONGEST = 200
DRAIN, RESUME, NOTHING = "drain", "resume", "nothing"
#: One node of the cluster may always be drained, and of a larger one this part.
MOST = 0.25
_STATE = re.compile(r"(?:^|\s)State=(\S+)")
_REASON = re.compile(r"(?:^|\s)Reason=(.*?)(?:\s\[[^\[\]]*\])?\s*(?:Comment=.*)?$", re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """What is to be done with the node, and why."""

    action: str
    reason: str = ""


@dataclass(frozen=True)
class NodeState:
    """A node as Slurm has it."""

    states: frozenset[str] = frozenset()
    reason: str = ""

    @classmethod
    def of(cls, shown: str) -> NodeState:
        """Of what ``scontrol show node NAME`` printed."""
        state, reason = _STATE.search(shown), _REASON.search(shown)
        states = re.split(r"[+*~#!%$@^-]+", state[1]) if state is not None else []
        return cls(frozenset(each for each in states if each), reason[1].strip() if reason is not None else "")

    @property
    def is_drained(self) -> bool:
        """Whether it takes no new jobs."""
        return bool(self.states & {"DRAIN", "DRAINED", "DRAINING"})

    @property
    def is_ours(self) -> bool:
        """Whether it was drained here."""
        return self.is_drained and self.reason.startswith(OURS)


def reason_of(report: Any) -> str | None:
    """Why an examination would have the node drained; empty for a sound one, None where it says nothing readable."""
    if not isinstance(report, Mapping) or not isinstance(report.get("drains"), bool):
        return None
    if not report["drains"]:
        return ""
    entries = report.get("verdicts")
    found = [each for each in entries if isinstance(each, Mapping)] if isinstance(entries, list) else []
    said = [each["message"] for each in found if each.get("drains") is True and isinstance(each.get("message"), str)]
    return printable("; ".join(said)) if said else None


def step(state: NodeState, fence: Mapping[str, Any] | None, found: str | None, drained: int, nodes: int) -> Step:
    """What follows from the node's fence and an examination's verdict; ``drained`` nodes of ``nodes`` are so by us."""
    why = str(fence.get("reason") or "it is out of service") if fence is not None else found
    if why:
        reason = printable(f"{OURS}{why}".replace('"', "'"), LONGEST)
        if state.is_drained:
            return Step(DRAIN, reason) if state.is_ours and state.reason != reason else Step(NOTHING)
        if fence is None and drained >= max(1, int(nodes * MOST)):
            return Step(NOTHING, f"{drained} of {nodes} nodes are drained already, and this one stays: {why}")
        return Step(DRAIN, reason)
    if why is not None and state.is_ours:
        return Step(RESUME)
    return Step(NOTHING)
