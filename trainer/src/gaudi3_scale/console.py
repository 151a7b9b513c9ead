"""What a job prints: plain lines for a journal or a file, a progress bar besides on a terminal."""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path
from typing import Any

from gaudi3_scale.next_command import command_line
from gaudi3_scale.status import Progress

BAR_SECONDS = 0.5


def time_left(progress: Progress) -> str:
    """How long the steps that are left take at the rate so far, as "about 12 min"; empty where no rate is known.

    Tokens per step are those of the steps so far.
    """
    steps, rate = progress.max_steps - progress.step, progress.tokens_per_second
    if steps <= 0 or not progress.step or not rate or not progress.tokens:
        return ""
    return f"about {roughly(steps * progress.tokens / progress.step / rate)}"


def roughly(seconds: float) -> str:
    """An estimated duration: 40 s, 12 min, 2 h 10 min."""
    if seconds < 55:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if hours else f"{minutes} min"


class Console:
    """Speaks for one process; a silent one says nothing."""

    def __init__(self, speaks: bool, bar: bool) -> None:
        """`bar` asks for a progress bar, which is drawn only on a terminal."""
        self._speaks = speaks
        self._bar: Any = None
        self._task: Any = None
        self._wants_bar = speaks and bar and sys.stdout.isatty()
        self._drawn = 0.0

    @property
    def draws(self) -> bool:
        """May bars be drawn?"""
        return self._wants_bar

    def log(self, text: str) -> None:
        """One line; one that nobody can read, as when the disk under a log is full, is lost."""
        with contextlib.suppress(OSError):
            if self._bar is not None:
                self._bar.console.print(text, highlight=False, markup=False)
            elif self._speaks:
                print(text, flush=True)

    def start(self, progress: Progress) -> None:
        """Training begins."""
        if self._wants_bar:
            from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), auto_refresh=False)
            self._task = self._bar.add_task("", total=progress.max_steps, completed=progress.step)
            self._bar.start()

    def stepped(self, step: int, now: float) -> None:
        """Move the bar, twice a second at most."""
        if self._bar is not None and now - self._drawn > BAR_SECONDS:
            self._drawn = now
            self._bar.update(self._task, completed=step, refresh=True)

    def logged(self, progress: Progress) -> None:
        """The line of a logged step."""
        simulated = " (simulated)" if progress.simulated else ""
        speed = f" {progress.tokens_per_second:,.0f} tokens/s{simulated}" if progress.tokens_per_second else ""
        mfu = f" MFU {100 * progress.mfu:.1f} %" if progress.mfu is not None else ""
        loss = "unknown" if progress.loss is None else f"{progress.loss:.3f}"
        accuracy = progress.figures.get("rewards/accuracies")
        loss += "" if accuracy is None else f" accuracy {accuracy:.2f}"
        left = time_left(progress)
        self.log(f"step {progress.step}/{progress.max_steps} loss {loss}{speed}{mfu}{f', {left} left' if left else ''}")

    def stop(self) -> None:
        """Training is over, one way or the other."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def summary(self, progress: Progress, then: str = "", folder: Path = Path()) -> None:
        """The last lines: what was done in the folder, and the checkpoint with what to type next (`next_command`)."""
        took = time.time() - progress.started_at
        resumed = f", resumed from step {progress.resumed_from_step}" if progress.resumed_from_step else ""
        held_out = f", held-out {progress.validation_loss:.3f}" if progress.validation_loss is not None else ""
        if progress.goodput is not None:
            share, total = 100 * progress.goodput["ratio"], progress.goodput["total_seconds"]
            where = command_line("goodput", str(folder))
            self.log(f"goodput {share:.1f} % of {total:.0f} s; {where} shows where the rest went")
        if progress.cost is not None:
            tokens = progress.cost["per_million_tokens"]
            each = f", {tokens:,.4g} per million tokens" if tokens is not None else ""
            self.log(f"cost {progress.cost['spent']:,.2f} {progress.cost['currency']}{each}")
        first, last = progress.first_loss or 0.0, progress.loss or 0.0
        self.log(
            f"finished {progress.step} steps ({progress.tokens:,} tokens) with {progress.world_size} process(es) on "
            f"{progress.device_label} in {took:.0f} s{resumed}: loss {first:.3f} -> {last:.3f}{held_out}, "
            f"{progress.baseline_words}"
        )
        if progress.checkpoint is not None:
            self.log(f"checkpoint {progress.checkpoint}{f'; {then}' if then else ''}")
