"""What a source of notices says."""

from __future__ import annotations

import time
from dataclasses import dataclass

from gaudi3_scale.exchange import record


@record
@dataclass(frozen=True)
class Notice:
    """Word that this process is to leave."""

    source: str
    """SIGTERM, SIGUSR1, file, aws, gcp, azure or launcher."""
    reason: str
    """For use inside a sentence."""
    deadline: float | None = None
    """When the process will be killed, in seconds since 1970; None = nobody said."""

    def remaining(self) -> float:
        """Seconds left."""
        return float("inf") if self.deadline is None else self.deadline - time.time()
