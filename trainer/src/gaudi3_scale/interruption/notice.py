"""What a source of notices says."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from gaudi3_scale.distributed.exchange import record

BUDGET = "budget"
"""The source of the notice on which a job leaves whose budget is spent."""


@record
@dataclass(frozen=True)
class Notice:
    """Word that this process is to leave."""

    source: str
    """SIGTERM, SIGUSR1, file, aws, gcp, azure, launcher or budget."""
    reason: str
    """For use inside a sentence."""
    deadline: float | None = None
    """When the process will be killed, in seconds since 1970; None = nobody said."""
    ends: float = field(init=False, repr=False, compare=False)
    """The same by `time.monotonic()`, from when it was heard: a clock that is set later changes nothing."""

    def __post_init__(self) -> None:
        left = float("inf") if self.deadline is None else self.deadline - time.time()
        object.__setattr__(self, "ends", time.monotonic() + left)

    def remaining(self) -> float:
        """Seconds left."""
        return self.ends - time.monotonic()
