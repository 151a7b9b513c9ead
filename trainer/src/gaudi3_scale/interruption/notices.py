"""What was heard: the first notice counts, a second signal or the deadline ends the process at once."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from gaudi3_scale.config.interruption import InterruptionConfig
from gaudi3_scale.errors import TrainerError
from gaudi3_scale.interruption.exit_code import EXIT_CODE
from gaudi3_scale.interruption.notice import Notice
from gaudi3_scale.interruption.patience import LEAVING_FILE, patience
from gaudi3_scale.interruption.signals import Signals

SECOND = 1.0
"""Seconds within which signals count as one: a launcher passes on what the whole process group already got."""
MARGIN = 3.0
"""Seconds before the sender's own patience ends in which the process is gone by itself."""
TICK = 0.5

PATIENCE = 0.2
"""Seconds from the making of a file to its words."""


class Interrupted(TrainerError):
    """The job left because it was asked to; started again, it goes on."""

    exit_code = EXIT_CODE


class Notices:
    """Listens from `start` on. Reading `notice` costs nothing; it is set by threads of this class."""

    def __init__(
        self, config: InterruptionConfig, leader: bool = True, log: Callable[[str], None] | None = None
    ) -> None:
        """Only the node's leader watches the file and the cloud: what they say holds for the whole node."""
        self.notice: Notice | None = None
        self._config = config
        self._leader = leader
        self._log = log or _to_stderr
        self._lock = threading.Lock()
        self._first_signal = 0.0
        self._touched_before = _touched(config.file)
        # Under torchrun the launcher's end is a notice too: nobody would restart or stop what it leaves behind.
        self._launcher = os.getppid() if "TORCHELASTIC_RUN_ID" in os.environ else None
        self._last_file_look = 0.0
        self._signals = Signals(self._signalled, self._tick, min(TICK, config.poll))
        self.before_leaving: Callable[[str], None] = lambda why: None
        """Called, in another thread, before the process ends at once: the place to write down why."""

    def start(self) -> None:
        """Begin to listen, signals included if this is the main thread."""
        main = threading.current_thread() is threading.main_thread()
        self._signals.start("signal" in self._config.sources and main)
        if self._leader:
            from gaudi3_scale.interruption.cloud_notice import watch

            watch(self._config, self.tell, self._log)

    def stop(self) -> None:
        """No longer listen to signals."""
        self._signals.stop()

    def tell(self, notice: Notice) -> None:
        """Here is a notice; the first one counts, and of several the earliest deadline."""
        if notice.source != "peer" and LEAVING_FILE in os.environ:
            with contextlib.suppress(OSError):
                Path(os.environ[LEAVING_FILE]).touch()
        with self._lock:
            if self.notice is None:
                self.notice = notice
            elif notice.remaining() < self.notice.remaining():
                self.notice = Notice(self.notice.source, self.notice.reason, notice.deadline)

    def grace(self) -> float:
        """Seconds a process has, where nobody says more."""
        if self._config.grace:
            return self._config.grace
        return max(1.0, patience() - MARGIN)

    def leave(self, why: str) -> NoReturn:
        """End the process now, from any thread, whatever the others do; committed checkpoints are whole."""
        try:
            self.before_leaving(why)
            self._log(f"leaving at once, {why}; started again, the job goes on from its newest checkpoint")
        finally:
            os._exit(EXIT_CODE)

    def _signalled(self, number: signal.Signals) -> None:
        now = time.monotonic()
        if not self._first_signal:
            self._first_signal = now
            self.tell(Notice(number.name, f"{number.name} was sent to this process", time.time() + self.grace()))
        elif now - self._first_signal > SECOND:
            self.leave(f"as a second signal ({number.name}) asks")

    def _tick(self) -> None:
        notice = self.notice
        if notice is not None and notice.remaining() <= 0:
            self.leave("since the deadline of the notice has come")
        if self._launcher is not None and os.getppid() != self._launcher:
            self._launcher = None
            self.tell(Notice("launcher", "the launcher of this process is gone", time.time() + self.grace()))
        if self._leader and self._config.file is not None:
            now = time.monotonic()
            if now - self._last_file_look >= self._config.poll:
                self._last_file_look = now
                self._look_at(self._config.file)

    def _look_at(self, path: Path) -> None:
        """One that was there before the process began is an earlier job's notice."""
        try:
            if _touched(path) in (None, self._touched_before):
                return
            words = _first_line(path)
            if not words:
                # A shell makes the file before it writes the words.
                time.sleep(PATIENCE)
                words = _first_line(path)
        except OSError:
            return
        self.tell(Notice("file", f"{path} was touched" + (f" ({words})" if words else ""), time.time() + self.grace()))


def _first_line(path: Path) -> str:
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.readline(200).strip()


def _touched(path: Path | None) -> int | None:
    """When a file was changed, to be compared with itself only: clocks differ, and are set. None if there is none."""
    try:
        return path.stat().st_mtime_ns if path is not None else None
    except OSError:
        return None


def _to_stderr(text: str) -> None:
    print(f"gaudi3-train: {text}", file=sys.stderr, flush=True)
