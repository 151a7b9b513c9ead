"""What a person sees: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from gaudi3_deploy.plan import Plan

LINES_EVERY = 10.0


class Teller:
    """Progress of an apply, told to a terminal or a log."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._total = self._done = 0
        self._under_way: dict[str, str] = {}
        self._last = 0.0

    def total(self, resources: int) -> None:
        """The plan changes this many resources."""
        self._total, self._done = resources, 0
        self._under_way.clear()
        if self._console.is_terminal:
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns, console=self._console, transient=True)
            self._task = self._bar.add_task("terraform", total=resources)
            self._bar.start()

    def began(self, address: str, action: str) -> None:
        """Work on a resource has begun."""
        self._under_way[address] = action
        self._show()

    def done(self, address: str, failed: bool) -> None:
        """Work on it has ended."""
        self._under_way.pop(address, None)
        self._done += not failed
        self._show()

    def log(self, text: str) -> None:
        """A sentence of its own."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def stop(self) -> None:
        """Give the terminal back."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _show(self) -> None:
        now = ", ".join(list(self._under_way)[:3]) + (" ..." if len(self._under_way) > 3 else "")
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._done, description=now or "terraform")
        elif time.monotonic() - self._last > LINES_EVERY or self._done == self._total:
            self._last = time.monotonic()
            self.log(f"{self._done}/{self._total} resources" + (f", at work on {now}" if now else ""))


def tell_warnings(console: Console, planned: Plan) -> None:
    """What the configuration's own checks say."""
    for sentence in planned.warnings:
        console.print(f"warning: {sentence}", highlight=False, markup=False, soft_wrap=True)


def tell_plan(console: Console, planned: Plan) -> None:
    """What would be done, by its kind."""
    tell_warnings(console, planned)
    if not planned.changed:
        console.print("nothing to change", highlight=False)
        return
    for verb, addresses in (
        ("take over", planned.adopt),
        ("create", planned.create),
        ("change", planned.update),
        ("replace", planned.replace),
        ("destroy", planned.delete),
    ):
        if addresses:
            more = f" and {len(addresses) - 8} more" if len(addresses) > 8 else ""
            console.print(
                f"{verb} {len(addresses)}: {', '.join(addresses[:8])}{more}",
                highlight=False,
                markup=False,
                soft_wrap=True,
            )
    if not any(planned.changes().values()):
        console.print("only outputs change", highlight=False)
