"""All rows of a run, in turns, each written as soon as it is measured; a run that was killed goes on."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gaudi3_benchmark import result as results
from gaudi3_benchmark.result import Case, Environment, Result, Row, Running, Settings, remaining
from gaudi3_benchmark.show import row_words
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.hpu.device import Device
from gaudi3_scale.version import VERSION

ATTEMPTS = 2
"""How often a row is begun that ends the process, such as by the kernel's lack of memory."""


@dataclass(frozen=True)
class Request:
    """What to measure: every shape with every batch size and every precision."""

    shapes: Sequence[str]
    batches: Sequence[int]
    precisions: Sequence[str]
    size: int | None = None
    recompute: str = "none"
    config: dict[str, Any] | None = None

    def cases(self, mode: str) -> list[Case]:
        """All of them, checked; a ConfigError for one that cannot be."""
        from gaudi3_benchmark.workloads import check, default_size, shapes
        from gaudi3_scale.precision import PRECISIONS, refusal

        for name in self.precisions:
            if name not in PRECISIONS:
                raise ConfigError(refusal(name))
        made = []
        for shape in self.shapes:
            size = self.size or (default_size(shape) if shape in shapes() else 1)
            for precision in self.precisions:
                for batch in sorted(set(self.batches)):
                    case = Case(
                        shape=shape,
                        size=size,
                        batch_size=batch,
                        precision=precision,
                        recompute=self.recompute,
                        config=self.config or {},
                    )
                    check(case, mode)
                    made.append(case)
        return made


def refuse_many_processes() -> None:
    """A ConfigError under a launcher of several processes."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size > 1:
        raise ConfigError(
            f"gaudi3-benchmark was started as {size} processes, and it measures one device: start it without torchrun."
        )


def begin(cases: Sequence[Case], settings: Settings, environment: Environment) -> Result:
    """A result in which nothing is measured yet."""
    return Result(
        program=f"gaudi3-benchmark {VERSION}",
        began=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        settings=settings,
        environment=environment,
        rows=tuple(Row(case=case) for case in cases),
    )


def go_on(found: Result, environment: Environment, path: Path) -> Result:
    """The result of a killed run; a ConfigError if the machine or its software is another one."""
    fields = Environment.model_fields
    other = [name for name in fields if getattr(found.environment, name) != getattr(environment, name)]
    if other:
        old, new = getattr(found.environment, other[0]), getattr(environment, other[0])
        raise ConfigError(
            f"{path} was begun with {other[0]} {old!r}, and here it is {new!r}: go on where it began, or give another "
            "file."
        )
    running = found.running
    if running is None or running.attempts < ATTEMPTS:
        return found
    words = f"the process ended {running.attempts} times while this row was measured"
    return _with_row(found, running.row, {"outcome": "failed", "words": words, "rounds": ()})


def run(
    found: Result,
    path: Path,
    device: Device,
    log: Callable[[str], None],
    measure: Callable[[Row, Settings, Device], Row] | None = None,
) -> Result:
    """Measure what is left, one round of every row after the other; the file is replaced after each."""
    if measure is None:
        from gaudi3_benchmark import measure as real

        measure = real.measure
    for turn in range(1, found.settings.rounds + 1):
        for number, row in enumerate(found.rows):
            if not remaining(row, found.settings.rounds) or len(row.rounds) >= turn:
                continue
            smaller = _smaller_out_of_memory(found, row)
            if smaller is not None:
                words = f"batch {smaller} was out of memory"
                found = _with_row(found, number, {"outcome": "skipped", "words": words, "rounds": ()})
            else:
                found = _mark(found, number)
                results.write(found, path)
                done = measure(row, found.settings, device)
                found = _with_row(found, number, {name: getattr(done, name) for name in Row.model_fields})
            results.write(found, path)
            log(f"round {turn} of {found.settings.rounds}: {row_words(found.rows[number], found.environment)}")
    return found


def _mark(found: Result, number: int) -> Result:
    before = found.running
    attempts = before.attempts + 1 if before is not None and before.row == number else 1
    return found.model_copy(update={"running": Running(row=number, attempts=attempts)})


def _with_row(found: Result, number: int, changes: dict[str, Any]) -> Result:
    rows = list(found.rows)
    rows[number] = Row.model_validate({**dict(rows[number]), **changes})
    return found.model_copy(update={"rows": tuple(rows), "running": None})


def _smaller_out_of_memory(found: Result, row: Row) -> int | None:
    """A smaller batch of the same that was out of memory."""
    same = row.case.model_dump(exclude={"batch_size"})
    return next(
        (
            other.case.batch_size
            for other in found.rows
            if other.outcome == "out_of_memory"
            and other.case.batch_size < row.case.batch_size
            and other.case.model_dump(exclude={"batch_size"}) == same
        ),
        None,
    )
