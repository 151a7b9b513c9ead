# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What a check finds: the component, the kind, how bad it is, what to do, and the evidence."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from .actions import DRAINING, ERROR, NONE, SEVERITIES

NODE_FAULT, USER_FAULT, CHECK_ERROR = "node fault", "user fault", "check error"
NODE = "node"


@dataclass(frozen=True)
class Finding:
    """What one check says of one component after one reading. It is a verdict once later readings confirm it."""

    check: str
    component: str
    kind: str
    severity: str
    action: str
    evidence: str

    @property
    def key(self) -> tuple[str, str]:
        """What makes two findings the same one."""
        return (self.check, self.component)

    @property
    def drains(self) -> bool:
        """Whether the node has to be taken away from jobs. A user's fault and a check's own error never do that."""
        bad = SEVERITIES.index(self.severity) >= SEVERITIES.index(ERROR)
        return self.kind == NODE_FAULT and self.action in DRAINING and bad

    @property
    def message(self) -> str:
        """The finding in one sentence."""
        todo = "" if self.action == NONE else f" (action: {self.action})"
        return f"{self.component}: {self.evidence}{todo}, found by {self.check}"

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for a module's result and for the record."""
        return {**asdict(self), "drains": self.drains, "message": self.message}
