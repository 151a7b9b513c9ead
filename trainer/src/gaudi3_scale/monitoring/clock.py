"""How long a process needs for work in which it waits for no other.

A step takes equally long on all processes, since they wait for each other in its collectives. What tells a slow one
apart is its forward pass, which has no collective with replicated models; with sharded ones all wait for the slowest in
the forward pass, too, so that little of a straggler is seen there.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from gaudi3_scale.hpu import device as devices

if TYPE_CHECKING:
    import torch


class ForwardClock:
    """Times forward passes: by the device's own timer where it has one, else by the host's clock."""

    def __init__(self, device: torch.device) -> None:
        self._marks: tuple[Any, Any] = (devices.timer(device), devices.timer(device))
        self._began: float | None = None
        self._seconds = 0.0
        self._passes = 0

    def start(self) -> None:
        """The batch is here."""
        if self._marks[0] is not None:
            self._marks[0].record()
        self._began = time.perf_counter()

    def stop(self) -> None:
        """The loss is computed, or handed to the device."""
        if self._began is None:
            return
        if self._marks[1] is not None:
            self._marks[1].record()
        self._seconds += time.perf_counter() - self._began
        self._passes += 1
        self._began = None

    def read(self) -> float:
        """Mean seconds of the passes since the last call, by a timer those of the last one; 0 = there was none.

        To be called when the device has done its work, so that nothing is waited for.
        """
        seconds, passes = self._seconds, self._passes
        self._seconds, self._passes = 0.0, 0
        if not passes:
            return 0.0
        begin, end = self._marks
        return float(begin.elapsed_time(end)) / 1e3 if begin is not None else seconds / passes
