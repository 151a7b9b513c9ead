"""Proofs: series of cases that take too long for every run of the tests.

`proofs.toml` lists them. `make proof-NAME` runs all cases and writes a table into `proofs/`. A case that held is on
record, so that an interrupted proof goes on where it was; the record is void once the sources change. Where each case
takes minutes and has sources of its own, its row is void with those alone, and names the commit at which it held. A
case that cannot be run on a machine stands in the table as not run, with the reason, and is tried again by the next
proof. `make test` runs a sample of the cases, drawn by the proof's seed.
"""

from __future__ import annotations

import datetime
import fcntl
import hashlib
import json
import os
import platform
import random
import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import pytest

from . import proofs

_Test = TypeVar("_Test")
ROOT = Path(__file__).resolve().parents[2]
SEED = 20261122
NOT_RUN = "not run"
"""Key of the reason in the row of a case that this machine cannot run."""


class Proof:
    """The cases of proof ``name`` by stratum; the list has the sources that the result depends on.

    The sample has one of each stratum, or is ``sample`` where most cases are too dear for one to be drawn.
    """

    def __init__(
        self,
        name: str,
        strata: Mapping[str, Sequence[str]],
        seed: int = SEED,
        sample: Collection[str] = (),
        sources: Sequence[str] = (),
        own: Callable[[str], str] | None = None,
    ) -> None:
        """``sources`` are those of a proof that is not in the list; ``own`` has what voids the row of one case."""
        self.name = name
        self.cases = [case for cases in strata.values() for case in cases]
        self.seed = seed
        draw = random.Random(f"{name}-{seed}")
        self.sample = set(sample) or {draw.choice(list(cases)) for cases in strata.values()}
        self.sources = sources or proofs.read()[name].sources
        self.own = own
        self.record = ROOT / ".cache" / "proofs" / f"{name}.json"

    @property
    def is_running(self) -> bool:
        """Whether the whole proof is asked for, not its sample."""
        return os.environ.get("GAUDI3_PROOF") == self.name

    def parameters(self, items: Mapping[str, Any]) -> list[Any]:
        """Test parameters by case; those beyond the sample are marked `proof`, which `make test` leaves out."""
        assert sorted(items) == sorted(self.cases)
        return [pytest.param(item, id=case, marks=self.marks(case)) for case, item in items.items()]

    def marks(self, case: str) -> list[pytest.MarkDecorator]:
        """Of the test of a case: `proof`, unless it is in the sample."""
        assert case in self.cases
        return [] if case in self.sample else [pytest.mark.proof]

    def sampled(self, case: str) -> Callable[[_Test], _Test]:
        """A decorator of the one test that is ``case``, which `make test` leaves out unless it is in the sample."""

        def mark(test: _Test) -> _Test:
            for each in self.marks(case):
                each(test)
            return test

        return mark

    def key(self) -> str:
        """Digest of the sources, the same in every checkout: without what tools leave beside them."""
        digest = hashlib.sha256(str(self.seed).encode())
        for folder in [] if self.own else self.sources:
            top = ROOT / folder
            for path in [top] if top.is_file() else sorted(top.rglob("*")):
                if path.is_file() and not any(map(_is_left_behind, path.relative_to(ROOT).parts)):
                    digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
        return digest.hexdigest()

    def held(self) -> dict[str, dict[str, Any]]:
        """The row of each case that held with these sources."""
        rows: dict[str, dict[str, Any]] = dict(self._kept().get("rows", {}))
        return {case: row for case, row in rows.items() if not self.own or self._is_current(case, row)}

    def _is_current(self, case: str, row: Mapping[str, Any]) -> bool:
        named = row["commit"].split()[0]
        return case in self.cases and row["own"] == self._own(case) and proofs.is_in_history(ROOT, named)

    def _own(self, case: str) -> str:
        return hashlib.sha256(self.own(case).encode()).hexdigest() if self.own else ""

    def failures(self) -> dict[str, int]:
        """How often cases failed with these sources, whether or not they held in a run after that."""
        return dict(self._kept().get("failures", {}))

    def _kept(self) -> dict[str, Any]:
        try:
            kept: dict[str, Any] = json.loads(self.record.read_text())
        except (OSError, ValueError):
            return {}
        return kept if kept["key"] == self.key() else {}

    def skip_if_held(self, case: str) -> None:
        """In a proof, do not run again what held."""
        if self.is_running and NOT_RUN not in self.held().get(case, {NOT_RUN: ""}):
            pytest.skip("held before, with the same sources")

    def note(self, case: str, row: dict[str, Any]) -> None:
        """Put down that ``case`` held; with the last of them the proof is whole."""
        self._put(rows={case: {**row, "commit": commit(), "own": self._own(case)} if self.own else row})

    def failed(self, case: str) -> None:
        """In a proof, put down that ``case`` failed: the table says so, where it holds later."""
        if self.is_running:
            self._put(failures={case: 1})

    def _put(self, rows: Mapping[str, Any] | None = None, failures: Mapping[str, int] | None = None) -> None:
        self.record.parent.mkdir(parents=True, exist_ok=True)
        # Parts of a proof may run at the same time.
        with self.record.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            before = self.failures()
            more = {case: before.get(case, 0) + count for case, count in (failures or {}).items()}
            kept = {"key": self.key(), "rows": {**self.held(), **(rows or {})}, "failures": {**before, **more}}
            draft = self.record.with_suffix(".new")
            draft.write_text(json.dumps(kept, indent=1) + "\n")
            draft.replace(self.record)

    def cannot_run(self, case: str, reason: str) -> NoReturn:
        """Put down why ``case`` is not run on this machine, and skip it."""
        if self.is_running:
            self.note(case, {NOT_RUN: reason})
        pytest.skip(reason)

    def write_table(
        self, title: str, text: str, columns: Sequence[str], kind: Callable[[str], str] | None = None
    ) -> None:
        """Write `proofs/NAME.md`, once every case has held or cannot be run: a row for each, in their order.

        With ``kind`` a row for each kind of case, with the sums of its cases' numbers, or the largest of a column whose
        name begins with longest.
        """
        rows = self.held()
        if not self.is_running or set(rows) != set(self.cases):
            return
        page = ROOT / proofs.PAGES / f"{self.name}.md"
        columns = [*columns, "commit"] if self.own else columns
        at = proofs.oldest(ROOT, [row["commit"] for row in rows.values()]) if self.own else commit()
        today = f"{datetime.datetime.now(tz=datetime.UTC):%Y-%m-%d}"
        left = sum(NOT_RUN in row for row in rows.values())
        said = (
            f"{len(rows) - left} of {len(rows)} cases held, {left} not run" if left else f"all {len(rows)} cases held"
        )
        again = [f"{case} ({count})" for case, count in self.failures().items() if NOT_RUN not in rows[case]]
        if again:
            said += f"; {len(again)} failed before they held (how often): {', '.join(again)}"
        lines = [
            f"# {title}",
            "",
            f"Written by `make proof-{self.name}` on {today}, commit {at}, seed {self.seed},",
            f"with Python {platform.python_version()} on {os.cpu_count()} CPU cores: {said}.",
            "",
            text.strip(),
            "",
            "| case | " + " | ".join(columns) + " |",
            "|---" * (len(columns) + 1) + "|",
        ]
        ordered = {case: rows[case] for case in self.cases}
        for case, row in (_sums(ordered, kind) if kind else ordered).items():
            if NOT_RUN in row:
                cells = _not_run(row[NOT_RUN], columns)
            else:
                cells = [str(row.get(column, "")) for column in columns]
            lines.append(f"| {case} | " + " | ".join(cells) + " |")
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text("\n".join(lines) + "\n")


def _sums(rows: Mapping[str, Mapping[str, Any]], kind: Callable[[str], str]) -> dict[str, dict[str, Any]]:
    """The rows by kind, in their order; a case that was not run keeps its own."""
    summed: dict[str, dict[str, Any]] = {}
    for case, row in rows.items():
        if NOT_RUN in row:
            summed[case] = dict(row)
            continue
        total = summed.setdefault(kind(case), {})
        for column, number in row.items():
            before = total.get(column, 0)
            total[column] = max(before, number) if column.startswith("longest") else before + number
    return summed


def in_turn(cases: Sequence[str], number: int) -> list[str]:
    """So many of the cases, the next ones with each commit: a sample for cases that are all too dear to be drawn."""
    first = _commits() * number
    return [cases[(first + each) % len(cases)] for each in range(number)]


def _commits() -> int:
    counted = subprocess.run(
        ["git", "rev-list", "--count", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return int(counted.stdout) if counted.returncode == 0 else 0


def _is_left_behind(part: str) -> bool:
    return part.startswith(".") or part == "__pycache__" or part.endswith(".egg-info")


def _not_run(reason: str, columns: Sequence[str]) -> list[str]:
    return [f"not run: {reason}", *[""] * (len(columns) - 1)]


def commit() -> str:
    """The commit that is checked out, and whether files differ from it; not the proofs' own pages."""
    head = subprocess.run(
        ["git", "rev-parse", "--short=10", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    dirty = subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=no", "--", f":!{proofs.PAGES}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return (head.stdout.strip() or "unknown") + (" with changes" if dirty.stdout.strip() else "")
