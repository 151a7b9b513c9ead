"""All ranks leave at the same step, though only one of them was told.

Each asks while the step computes and reads the answer when the step is over: by then the gradients have met, so the
answer is there, and nobody waits for it. One number is exchanged, over gloo on host memory.
"""

from __future__ import annotations

import time
from typing import Any

from gaudi3_scale.interruption.notice import Notice
from gaudi3_scale.interruption.notices import Notices

FAR = 1e9
"""Stands for "no deadline", in seconds."""


class Agreement:
    """To be asked and answered by every rank in the same order."""

    def __init__(self, notices: Notices, group: Any = None, world_size: int = 1) -> None:
        """`group` is a gloo process group of all ranks; a rank that is alone needs none."""
        self._notices = notices
        self.group = group if world_size > 1 else None
        self._values: Any = None
        self._work: Any = None
        self._asked_at = 0.0

    def ask(self) -> None:
        """Tell the others, without waiting for them, whether this rank has a notice."""
        if self.group is None:
            return
        import torch
        import torch.distributed as dist

        notice = self._notices.notice
        left = -FAR if notice is None else -max(-FAR, min(FAR, notice.remaining()))
        self._values = torch.tensor([0.0 if notice is None else 1.0, left], dtype=torch.float64)
        self._asked_at = time.time()
        self._work = dist.all_reduce(self._values, dist.ReduceOp.MAX, group=self.group, async_op=True)

    def answer(self) -> bool:
        """Did anyone have a notice when asked? The earliest deadline is everyone's from here on."""
        if self.group is None:
            return self._notices.notice is not None
        work, self._work = self._work, None
        if work is None:
            return False
        work.wait()
        told, left = self._values.tolist()
        if not told:
            return False
        deadline = None if -left >= FAR else self._asked_at - left
        self._notices.tell(Notice("peer", "another process was told to leave", deadline))
        return True

    def now(self) -> bool:
        """Ask and wait for the answer."""
        self.ask()
        return self.answer()
