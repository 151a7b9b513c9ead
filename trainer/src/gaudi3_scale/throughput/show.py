"""Shows where a job's time went: a table with bars on the terminal, a picture as PNG."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gaudi3_scale.errors import TrainerError
from gaudi3_scale.extras import how_to_install
from gaudi3_scale.throughput.goodput import PARTS, Goodput

if TYPE_CHECKING:
    from rich.console import Console

COLORS = {
    "compute": "#2e7d32",
    "data_wait": "#f9a825",
    "checkpoint_stall": "#1565c0",
    "evaluation": "#6a1b9a",
    "startup": "#00838f",
    "restart_loss": "#c62828",
    "other": "#757575",
}
BAR = 60


def cells(goodput: Goodput, width: int) -> dict[str, int]:
    """Share of each part in whole cells that sum to `width`: the largest remainders are rounded up."""
    total = goodput.total or 1
    exact = {part: ns * width / total for part, ns in goodput.nanoseconds.items()}
    whole = {part: int(share) for part, share in exact.items()}
    rest = width - sum(whole.values()) if goodput.total else 0
    for part in sorted(exact, key=lambda part: whole[part] - exact[part])[:rest]:
        whole[part] += 1
    return whole


def duration(seconds: float) -> str:
    """As a person reads it: 12.3 s, 4 min 05 s, 3 h 07 min."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def show(goodput: Goodput, title: str, console: Console | None = None) -> None:
    """Print the table and the bar."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = console or Console()
    table = Table(title=title, caption=f"{duration(goodput.total / 1e9)} in all, {goodput.runs - 1} restart(s)")
    table.add_column("part")
    table.add_column("time", justify="right")
    table.add_column("share", justify="right")
    table.add_column("what it is")
    for part, meaning in PARTS.items():
        spent = goodput.nanoseconds[part]
        name = Text.assemble(("■ ", COLORS[part]), part)
        table.add_row(name, duration(spent / 1e9), f"{100 * spent / (goodput.total or 1):.1f} %", meaning)
    console.print(table)
    bar = Text()
    for part, count in cells(goodput, BAR).items():
        bar.append(("█" if part == "compute" else "▒") * count, COLORS[part])
    console.print(bar, Text(f" goodput {100 * goodput.ratio:.1f} %", "bold"), sep="")


def draw(goodput: Goodput, title: str, path: Path) -> None:
    """Write the bar as a picture; needs matplotlib, which the extra `report` installs."""
    try:
        import matplotlib
    except ImportError:
        raise TrainerError(f"A picture needs matplotlib: {how_to_install('report')}, or leave --png out.") from None
    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 2.6), layout="constrained")
    axes = figure.add_subplot()
    left, total = 0.0, goodput.total or 1
    for part in PARTS:
        share = 100 * goodput.nanoseconds[part] / total
        seconds = duration(goodput.nanoseconds[part] / 1e9)
        label = f"{part.replace('_', ' ')}: {share:.1f} % ({seconds})"
        axes.barh(0, share, left=left, height=0.6, color=COLORS[part], label=label)
        if share >= 6:
            axes.text(left + share / 2, 0, f"{share:.0f} %", ha="center", va="center", color="white", fontsize=11)
        left += share
    axes.set(xlim=(0, 100), yticks=[], xlabel=f"share of {duration(goodput.total / 1e9)}, in percent")
    axes.set_title(f"{title}: goodput {100 * goodput.ratio:.1f} %, {goodput.runs - 1} restart(s)", loc="left")
    axes.spines[["top", "right", "left"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    try:
        figure.savefig(path, dpi=150, format="png")
    except OSError as error:
        raise TrainerError(
            f"{path} cannot be written ({error.strerror}): give --png a file in a writable folder."
        ) from None
