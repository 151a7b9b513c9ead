"""Signals, heard even while the main thread waits inside a collective.

Python runs a signal's handler in the main thread, between two instructions: one that is blocked in a collective never
gets there. The interpreter's wake-up descriptor is written by the C handler itself, and read by a thread here.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

HEARD = (signal.SIGTERM, signal.SIGUSR1)


class Signals:
    """Passes each signal of `HEARD` to a function, in a thread of its own that also ticks."""

    def __init__(self, heard: Callable[[signal.Signals], None], tick: Callable[[], None], every: float) -> None:
        """`tick` is called about every `every` seconds, in the same thread, so that the two never overlap."""
        self._heard = heard
        self._tick = tick
        self._every = every
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        self._before: dict[int, Any] = {}
        self._thread = threading.Thread(target=self._run, name="interruption", daemon=True)
        self._stopped = False

    def start(self, listen: bool) -> None:
        """Begin; `listen` only in the main thread, elsewhere Python cannot install handlers."""
        if listen:
            self._before = {number: signal.getsignal(number) for number in HEARD}
            signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
            for number in HEARD:
                signal.signal(number, _nothing)
            # A child that is told to end (a loader's worker, say) must not speak through the parent's pipe.
            os.register_at_fork(after_in_child=self._forget)
        self._thread.start()

    def stop(self) -> None:
        """Put the handlers back that were there before."""
        self._stopped = True
        if self._before:
            for number, handler in self._before.items():
                if signal.getsignal(number) is _nothing:
                    signal.signal(number, handler)
            signal.set_wakeup_fd(-1)
        os.write(self._write, b"\0")
        self._thread.join(5)

    def _forget(self) -> None:
        if not self._stopped:
            signal.set_wakeup_fd(-1)
            for number in HEARD:
                signal.signal(number, signal.SIG_DFL)

    def _run(self) -> None:
        while not self._stopped:
            if select.select([self._read], [], [], self._every)[0]:
                for number in os.read(self._read, 64):
                    if number in HEARD and not self._stopped:
                        self._heard(signal.Signals(number))
            if not self._stopped:
                self._tick()


def _nothing(number: int, frame: FrameType | None) -> None:
    """The signal is already on its way through the pipe."""
