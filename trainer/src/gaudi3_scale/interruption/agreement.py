"""All ranks leave at the same step, though only one of them got the notice.

Each asks while the step computes and reads the answer when the step is over: by then the gradients have met, so the
answer is there, and nobody waits for it. A few numbers are exchanged, over gloo on host memory. Where steps are short,
not each of them asks: all ranks need to meet no more often than every `INTERVAL`.
"""

from __future__ import annotations

import time
from typing import Any

from gaudi3_scale.interruption.notice import Notice
from gaudi3_scale.interruption.notices import Notices

FAR = 1e9
"""Stands for "no deadline", in seconds."""
INTERVAL = 0.5
"""Seconds between two questions: little beside the 30 seconds of the shortest notice of a cloud."""
MOST_STEPS = 16
"""Steps between two questions, at most: steps may suddenly take longer than those that were measured."""
SETTLING = 10
"""The first questions are asked at each step: compilation and first reads tell nothing of how long a step takes."""


class Agreement:
    """To be asked and answered by every rank in the same order."""

    def __init__(self, notices: Notices, group: Any = None, world_size: int = 1) -> None:
        """`group` is a gloo process group of all ranks; a rank that is alone needs none."""
        self._notices = notices
        self.group = group if world_size > 1 else None
        self._values: Any = None
        self._work: Any = None
        self._sent_at = 0.0
        self._asked_at = 0.0
        """By `time.monotonic()`, when this rank asked last at a step."""
        self._every = 1
        self._steps = 0
        self._asked = 0

    def ask(self) -> None:
        """Tell the others at the steps that are due, without waiting for them, whether this rank has a notice."""
        if self.group is None:
            return
        self._steps += 1
        if self._steps < self._every:
            return
        now = time.monotonic()
        seconds = 0.0 if self._asked < SETTLING else (now - self._asked_at) / self._steps
        self._asked_at, self._steps, self._asked = now, 0, self._asked + 1
        self._send(seconds)

    def answer(self) -> bool:
        """Did anyone have a notice when asked? The earliest deadline is everyone's from here on."""
        if self.group is None:
            return self._notices.notice is not None
        work, self._work = self._work, None
        if work is None:
            return False
        work.wait()
        told, left, seconds = self._values.tolist()
        if seconds:
            # The slowest rank's measure, which all have now: the same steps are due on every rank.
            self._every = max(1, min(MOST_STEPS, int(INTERVAL / seconds)))
        if not told:
            return False
        deadline = None if -left >= FAR else time.time() - left - (time.monotonic() - self._sent_at)
        self._notices.tell(Notice("peer", "another process was told to leave", deadline))
        return True

    def now(self) -> bool:
        """Ask and wait for the answer."""
        if self.group is not None:
            self._send(0.0)
        return self.answer()

    def _send(self, seconds: float) -> None:
        import torch
        import torch.distributed as dist

        notice = self._notices.notice
        left = -FAR if notice is None else -max(-FAR, min(FAR, notice.remaining()))
        self._values = torch.tensor([0.0 if notice is None else 1.0, left, seconds], dtype=torch.float64)
        self._sent_at = time.monotonic()
        self._work = dist.all_reduce(self._values, dist.ReduceOp.MAX, group=self.group, async_op=True)
