"""Shows what a job would have taken without each of the causes that held it up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gaudi3_scale.cost.bill import HOUR
from gaudi3_scale.cost.what_if import CAUSES, SLOW, Cause, WhatIf
from gaudi3_scale.throughput.ledger import COMPUTE
from gaudi3_scale.throughput.show import duration

if TYPE_CHECKING:
    from rich.console import Console

SHOWN_RANKS = 16
"""Of more, those are shown that waited least."""
SMALL = 10.0
"""Money or hours of a job below which two places say too little."""
WHOLE = 0.995
"""Share of the steps' time from which it is not said how much of it was compared."""


def show(found: WhatIf, title: str, console: Console | None = None) -> None:
    """Print the causes, and the ranks' times where there are some."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = console or Console()
    currency = found.currency
    table = Table(title=f"{title}: what if", caption=_caption(found))
    for name, justify in (("cause", "left"), ("time", "right"), ("share", "right"), ("hours", "right")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    if currency is not None:
        table.add_column(currency, justify="right")
    table.add_column("without it", justify="right")
    table.add_column("what it is")
    for cause in found.causes:
        share = f"{100 * cause.nanoseconds / (found.nanoseconds or 1):.1f} %"
        money = [] if currency is None else [amount(cause.money or 0.0, found.money or 0.0)]
        hours = amount(cause.nanoseconds / HOUR, found.nanoseconds / HOUR)
        table.add_row(
            Text(cause.name),
            duration(cause.nanoseconds / 1e9),
            share,
            hours,
            *money,
            without(cause, found),
            meaning(cause),
        )
    console.print(table)
    _show_ranks(found, console)
    for note in notes(found):
        console.print(note, soft_wrap=True, highlight=False, markup=False)


def amount(number: float, whole: float) -> str:
    """Money or hours with two places after the point, or four where the whole is small.

    >>> amount(12.345, 1234.5), amount(0.012, 1.5)
    ('12.35', '0.0120')
    """
    return f"{number:,.{2 if abs(whole) >= SMALL else 4}f}"


def notes(found: WhatIf) -> list[str]:
    """What a reader has to know besides."""
    said = []
    if not found.compared:
        said.append(
            "The ranks' own times are not in this ledger: a slow rank is among the computing ones, and data_wait is "
            "this node's. They are measured with monitoring.enabled, on CPU and CUDA, with copies of the model (DDP)."
        )
    elif found.compared < WHOLE:
        said.append(f"The ranks were compared in {100 * found.compared:.1f} % of the time of the steps.")
    if not all(cause.alone for cause in found.causes):
        said.append(
            "Slow ranks that held up the same steps are listed one below the other: each row is gained once those "
            "above it are gone."
        )
    if found.carried:
        before = f"{amount(found.carried, found.carried)} {found.currency}"
        said.append(f"{before} from before this node's ledger began are in none of the causes.")
    return said


def _caption(found: WhatIf) -> str:
    money = "" if found.money is None else f", {amount(found.money, found.money)} {found.currency}"
    return f"{duration(found.nanoseconds / 1e9)} in all{money}: the causes sum to it"


def without(cause: Cause, found: WhatIf) -> str:
    """What the whole job would have taken, and cost; empty for what it was for."""
    if cause.kind == COMPUTE:
        return ""
    took = duration((found.nanoseconds - cause.nanoseconds) / 1e9)
    if cause.money is None or found.money is None:
        return took
    return f"{took}, {amount(found.money - cause.money, found.money)} {found.currency}"


def meaning(cause: Cause) -> str:
    """What a cause is, for readers."""
    if cause.kind == SLOW and not cause.alone:
        return "likewise, with those above"
    return CAUSES[cause.kind]


def _show_ranks(found: WhatIf, console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    if not found.ranks:
        return
    ranks = sorted(found.ranks, key=lambda each: each["waited_seconds"])[:SHOWN_RANKS]
    caption = f"the {len(ranks)} of {len(found.ranks)} that waited least" if len(ranks) < len(found.ranks) else None
    table = Table(title="each rank since the job was last started", caption=caption)
    for name in ("rank", "own time", "waited"):
        table.add_column(name, justify="right")
    table.add_column("node")
    for each in sorted(ranks, key=lambda each: each["rank"]):
        times = (duration(each["own_seconds"]), duration(each["waited_seconds"]))
        table.add_row(str(each["rank"]), *times, Text(each["host"]))
    console.print(table)
