"""What a report says, before it is text, HTML or PDF: sentences and tables."""

from __future__ import annotations

from dataclasses import dataclass

from gaudi3_scale.cost.estimates import Estimates
from gaudi3_scale.cost.model import COMPONENTS, given_of
from gaudi3_scale.cost.platforms import peak
from gaudi3_scale.cost.values import Given, Range
from gaudi3_scale.cost.workload import count, parameters

SHOWN = (0.2, 0.3, 0.4, 0.5)
"""Utilisations in the table of the break-even curve, which the picture has in full."""


@dataclass(frozen=True)
class Table:
    """Cells as text; the first row is the header."""

    title: str
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def title(found: Estimates) -> str:
    """Of the report."""
    job = found.inputs.job
    return f"Cost of training a model ({job.model_size}) on {job.dataset_tokens} tokens"


def sentences(found: Estimates) -> list[str]:
    """The result in words."""
    inputs, job = found.inputs, found.inputs.job
    size, tokens = parameters(job.model_size), count(job.dataset_tokens, "dataset_tokens")
    said = [
        *([inputs.note] if inputs.note else []),
        f"The training takes 6 x {size:.4g} parameters x {tokens:.4g} tokens = {6 * size * tokens:.3g} floating-point "
        f"operations, on {job.devices:,} accelerators.",
    ]
    for each in found.estimates:
        said.append(
            f"{each.offer}: {each.total.text()} {inputs.currency} in {_duration(each.wall_hours.low)} to "
            f"{_duration(each.wall_hours.high)}, {each.per_million_tokens.text(2)} {inputs.currency} per million "
            "tokens."
        )
    if len(found.estimates) > 1:
        best = found.cheapest
        said.append(
            f"{best} is the cheapest for all values within the inputs' ranges."
            if best
            else "The ranges overlap: which offer is the cheapest depends on values within the inputs' ranges."
        )
    said.append("Every number follows from the inputs below, each with its source and date; no price is built in.")
    return said


def tables(found: Estimates) -> list[Table]:
    """All numbers."""
    made = [_totals(found), _components(found)]
    if found.has_curve:
        made.append(_break_even(found))
    return [*made, _inputs(found)]


def _totals(found: Estimates) -> Table:
    currency = found.inputs.currency
    rows = [
        (
            "offer",
            f"total, {currency}",
            f"{currency} per million tokens",
            "wall hours",
            "node-hours",
            "MFU",
            "energy, MWh",
            "not counted",
        )
    ]
    for each in found.estimates:
        rows.append(
            (
                each.offer,
                each.total.text(),
                each.per_million_tokens.text(3),
                each.wall_hours.text(),
                each.node_hours.text(),
                each.mfu.text(2) if each.mfu is not None else "-",
                _thousandths(each.energy_kwh),
                ", ".join(each.not_counted) or "nothing",
            )
        )
    return Table("Totals", tuple(rows))


def _components(found: Estimates) -> Table:
    rows: list[tuple[str, ...]] = [(f"{found.inputs.currency} for", *(each.offer for each in found.estimates))]
    for name, meaning in COMPONENTS.items():
        rows.append((f"{name}: {meaning}", *(each.components[name].text() for each in found.estimates)))
    rows.append(("total", *(each.total.text() for each in found.estimates)))
    intervals = [each.interval_minutes for each in found.estimates]
    if any(intervals):
        rows.append(("minutes between checkpoints", *(each.text() if each else "-" for each in intervals)))
    return Table("What the money is for", tuple(rows))


def _break_even(found: Estimates) -> Table:
    first, *others = found.estimates
    currency = found.inputs.currency
    rows: list[tuple[str, ...]] = [("against", *(f"at MFU {share:.2f}" for share in SHOWN))]
    for other in others:
        points = {round(point.mfu, 2): point for point in found.break_even(first.offer, other.offer)}
        cells = [f"{points[share].cheaper_below:,.2f} / {points[share].more_expensive_above:,.2f}" for share in SHOWN]
        rows.append((other.offer, *cells))
    note = (
        f"{first.offer} is cheaper below the first price and more expensive above the second one; between them it "
        "depends on the inputs' ranges."
    )
    return Table(f"Break-even of {first.offer}, {currency} per node-hour", tuple(rows), note)


def _inputs(found: Estimates) -> Table:
    rows = [("input", "value", "source", "date")]
    seen: dict[str, Given] = {}
    for each in found.estimates:
        seen.update(given_of(found.inputs, each.offer))
    ordered = sorted(seen.items(), key=lambda each: not each[0].startswith("offers."))
    rows += [(name, value_text(given), given.source, str(given.date)) for name, given in ordered]
    for each in found.estimates:
        precision = found.inputs.precision(each.offer)
        if each.mfu is None:
            continue
        top, source = peak(each.platform, precision)
        rows.append((f"peak of {each.platform}, {precision}, TFLOP/s", f"{top / 1e12:,.1f}", source, "see source"))
    return Table("Inputs", tuple(dict.fromkeys(rows)))


def value_text(given: Given) -> str:
    """`12.5`, or `10 to 12.5`."""
    low, high = f"{given.low:,.6g}", f"{given.high:,.6g}"
    return low if low == high else f"{low} to {high}"


def _thousandths(found: Range | None) -> str:
    if found is None:
        return "-"
    first, second = f"{found.low / 1000:,.1f}", f"{found.high / 1000:,.1f}"
    return first if first == second else f"{first} to {second}"


def _duration(hours: float) -> str:
    return f"{hours:,.0f} h" if hours < 72 else f"{hours / 24:,.0f} days"
