"""A result in words and tables."""

from __future__ import annotations

from collections.abc import Sequence

from gaudi3_benchmark.intervals import Interval
from gaudi3_benchmark.result import Environment, Result, Row

NOT_GAUDI = "not a measurement of Gaudi"
HEAD = (
    "shape",
    "size",
    "batch",
    "precision",
    "recompute",
    "ms per step [95 %]",
    "rate [95 %]",
    "TFLOP/s",
    "MFU",
    "peak GiB",
)
METHOD = (
    "A step is forward pass, loss, backward pass and AdamW on one device, with random weights and data that lie on the "
    "device; loading data, gradient clipping and collectives are not in it.",
    "The device is synchronised before and after each step. A figure is the geometric mean of the rounds' medians; its "
    "95 % interval is Student's, over the rounds.",
    "TFLOP/s and MFU count the model's operations: 6 per weight and token and attention (PaLM, arXiv:2204.02311), of "
    "images three times the forward pass as torch counts it. What is computed again does not count.",
    "Peak memory is the device's allocator's; on CPU it is the highest resident set of the whole process.",
)


def title(found: Result) -> str:
    """One line."""
    return f"Training steps on {found.environment.label}"


def warnings(found: Result) -> list[str]:
    """What a reader has to know before the figures."""
    said = []
    if found.environment.simulated:
        said.append(
            f"The device is the simulated hpu. Its times are those of this machine's processors and {NOT_GAUDI}: no "
            "throughput is shown."
        )
    if not found.complete:
        said.append("The run is not finished: gaudi3-benchmark run --resume goes on with it.")
    if found.settings.rounds == 1:
        said.append("There is one round: the intervals tell of this round alone, not of another run.")
    if any(row.case.config for row in found.rows):
        said.append("Shapes with changes in brackets are not as they were published.")
    return said


def facts(found: Result) -> list[tuple[str, str]]:
    """What it was measured on and how."""
    on, how = found.environment, found.settings
    pairs = [
        ("device", on.label),
        ("processor", f"{on.processor or 'unknown'}, {on.cores} cores for the process, {how.threads} thread(s)"),
        ("driver", on.driver or "none"),
        ("software", ", ".join(f"{name} {version}" for name, version in on.software.items())),
        ("variables", ", ".join(f"{name}={value}" for name, value in on.variables.items()) or "none"),
        ("train.mode", how.mode),
        ("steps", f"{how.rounds} round(s) of {how.repeats} timed steps after {how.warm_up} of warm-up"),
        ("began", found.began),
        ("program", found.program),
    ]
    peaks = ", ".join(f"{name}: {peak / 1e12:,.1f} TFLOP/s" for name, peak in on.peak_flops.items())
    return [*pairs, ("dense peak", peaks or "none that is confirmed, so there is no MFU")]


def table(found: Result) -> list[tuple[str, ...]]:
    """Head and rows."""
    return [HEAD, *(_cells(found, row) for row in found.rows)]


def as_text(found: Result) -> str:
    """For a terminal."""
    lines = [title(found), "", *warnings(found), *(f"{name}: {value}" for name, value in facts(found)), ""]
    return "\n".join([*lines, *aligned(table(found)), "", *METHOD]) + "\n"


def row_words(row: Row, environment: Environment) -> str:
    """One line on a row."""
    if row.outcome != "measured":
        return f"{row.case.text}: {_outcome(row)}"
    last = row.rounds[-1].seconds
    middle = sorted(last)[len(last) // 2]
    if environment.simulated:
        return f"{row.case.text}: {1000 * middle:,.1f} ms a step on this machine's processors, {NOT_GAUDI}"
    return f"{row.case.text}: {1000 * middle:,.1f} ms a step, {row.units_per_step / middle:,.0f} {row.unit}/s"


def aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Columns of equal width."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def interval_text(value: Interval, digits: int) -> str:
    """`12.3 [12.0, 12.6]`; without ends where there are none."""
    if value.low == 0:
        return f"{value.middle:,.{digits}f} [unknown]"
    return f"{value.middle:,.{digits}f} [{value.low:,.{digits}f}, {value.high:,.{digits}f}]"


def _cells(found: Result, row: Row) -> tuple[str, ...]:
    case = row.case
    first = (case.label, f"{case.size:,}", str(case.batch_size), case.precision, case.recompute)
    if row.outcome != "measured":
        return (*first, _outcome(row), "-", "-", "-", "-")
    memory = row.peak_memory_bytes
    gib = "-" if memory is None else f"{memory / 2**30:,.2f}"
    if found.environment.simulated:
        return (*first, NOT_GAUDI, NOT_GAUDI, "-", "-", gib)
    step, flops, mfu = row.seconds, row.flops_rate, found.mfu(row)
    milliseconds = Interval(*(1000 * value for value in step))
    return (
        *first,
        interval_text(milliseconds, 1 if milliseconds.middle >= 10 else 3),
        f"{interval_text(row.rate, 0 if row.rate.middle >= 100 else 2)} {row.unit}/s",
        "-" if flops is None else f"{flops / 1e12:,.4g}",
        "-" if mfu is None else f"{100 * mfu:.1f} %",
        gib,
    )


def _outcome(row: Row) -> str:
    what = row.outcome.replace("_", " ")
    return f"{what} ({row.words})" if row.words and row.outcome != "out_of_memory" else what
