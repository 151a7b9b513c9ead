"""Run the blocks of a page in their order and compare what they print with what the page shows.

python -m tests.walks docs/use/plan.md          one page, with what it printed
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from .markdown import RUN, Block
from .outputs import difference
from .places import Place, place
from .plan import Walk
from .session import Session, Timeout


@dataclass
class Outcome:
    """What a walk came to."""

    blocks: int
    run: int = 0
    compared: int = 0
    elsewhere: dict[str, str] = field(default_factory=dict)
    """The test that runs each block that is run elsewhere, by its place."""
    marked: dict[str, str] = field(default_factory=dict)
    """The reason of each block that is not run, by its place."""
    faults: list[str] = field(default_factory=list)
    printed: list[tuple[str, str]] = field(default_factory=list)
    """What each block printed, by its place."""

    def row(self) -> dict[str, str | int]:
        """For the table of the proof."""
        reasons = "; ".join(sorted(set(self.marked.values())))
        marked = f"{len(self.marked)}: {reasons}" if self.marked else ""
        elsewhere = (
            f"{len(self.elsewhere)}: {', '.join(sorted(set(self.elsewhere.values())))}" if self.elsewhere else ""
        )
        counts: dict[str, str | int] = {"blocks": self.blocks, "run": self.run, "compared": self.compared}
        return {**counts, "elsewhere": elsewhere, "marked": marked}


def go(walk: Walk, blocks: Sequence[Block]) -> Outcome:
    """Run a page's blocks on the machine of its walk, in a folder that is removed."""
    at = Path(tempfile.mkdtemp(prefix="walk-"))
    try:
        with place(walk, at) as made:
            return run(walk, blocks, made, at / "notes")
    finally:
        shutil.rmtree(at, ignore_errors=True)


def run(walk: Walk, blocks: Sequence[Block], made: Place, notes: Path) -> Outcome:
    """Run them in a place; the first that fails ends the walk, as those after it build on it."""
    wanted = [block for block in blocks if block.language in RUN]
    outcome = Outcome(len(wanted), marked={each.place: each.reason for each in wanted if each.reason})
    with ExitStack() as stack:
        sessions: dict[str, Session] = {}

        def session(language: str) -> Session:
            if language not in sessions:
                sessions[language] = stack.enter_context(Session(language, made.folder, notes, made.environment))
            return sessions[language]

        try:
            if walk.before:
                held, printed = session("sh").run(walk.before, walk.minutes * 60)
                if not held:
                    outcome.faults.append(f"{walk.page}: what is laid out before it failed:\n{printed}")
                    return outcome
            for block in wanted:
                if not block.is_run:
                    continue
                if test := walk.test_of(block):
                    outcome.elsewhere[block.place] = test
                    continue
                code = walk.shell(block.code) if block.language == "sh" else walk.replaced(block.code)
                held, printed = session(block.language).run(code, walk.minutes * 60)
                outcome.printed.append((block.place, printed))
                if not held:
                    outcome.faults.append(f"{block.place} failed:\n{code}\nwhat it printed:\n{printed}")
                    return outcome
                outcome.run += 1
                if block.output is not None:
                    outcome.compared += 1
                    found = difference(walk.replaced(block.output), printed)
                    outcome.faults += [f"{block.place}: {found}"] if found else []
        except Timeout as error:
            outcome.faults.append(f"{walk.page}: {error}")
    return outcome
