"""Pictures of a comparison; matplotlib is the extra `report` and is imported only here."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gaudi3_scale.cost.estimates import Estimates
from gaudi3_scale.cost.model import COMPONENTS
from gaudi3_scale.errors import TrainerError
from gaudi3_scale.extras import how_to_install
from gaudi3_scale.files import draft, opened_folder

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = {
    "compute": "#2e7d32",
    "interruption": "#c62828",
    "spares": "#f9a825",
    "energy": "#6a1b9a",
    "storage": "#1565c0",
}
LINES = ("#1565c0", "#c62828", "#6a1b9a", "#f9a825", "#00838f")


def new_figure(width: float, height: float) -> Figure:
    """A figure that needs no display; a TrainerError without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        raise TrainerError(
            f"A picture needs matplotlib: {how_to_install('report')}, or write the report as .csv, .json or .txt."
        ) from None
    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def breakdown(found: Estimates) -> Figure:
    """Bars by component, in the middle of each range; the whiskers are the range of the total."""
    figure = new_figure(10, 1.8 + 0.75 * len(found.estimates))
    draw_breakdown(figure.add_subplot(), found)
    figure.legend(loc="outside lower center", ncols=5, frameon=False, fontsize=9)
    return figure


def draw_breakdown(axes: Axes, found: Estimates) -> None:
    """The same into axes."""
    scale, unit = _scale(max(each.total.high for each in found.estimates))
    names = [each.offer for each in found.estimates]
    for row, each in enumerate(found.estimates):
        left = 0.0
        for name in COMPONENTS:
            part = each.components[name]
            middle = (part.low + part.high) / 2 / scale
            axes.barh(row, middle, left=left, height=0.55, color=COLORS[name], label=name if row == 0 else None)
            left += middle
        low, high = each.total.low / scale, each.total.high / scale
        axes.errorbar(left, row, xerr=[[left - low], [high - left]], color="black", capsize=5, linewidth=1.5)
        text = f"{low:,.2f} to {high:,.2f}" if f"{low:,.2f}" != f"{high:,.2f}" else f"{low:,.2f}"
        axes.annotate(text, (high, row), xytext=(8, 0), textcoords="offset points", va="center", fontsize=10)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel(f"{unit}{found.inputs.currency}")
    _title(axes, "Cost by what it is for; the line is the range of the total", found)
    axes.margins(x=0.28)
    axes.set_xlim(left=0)
    axes.spines[["top", "right"]].set_visible(False)


def break_even(found: Estimates) -> Figure:
    """Below which price the first offer is cheaper than each of the others, by its MFU."""
    figure = new_figure(10, 4.6)
    draw_break_even(figure.add_subplot(), found)
    return figure


def draw_break_even(axes: Axes, found: Estimates) -> None:
    """The same into axes."""
    first, *others = found.estimates
    for color, other in zip(LINES * len(others), others, strict=False):
        points = found.break_even(first.offer, other.offer)
        shares = [100 * point.mfu for point in points]
        below = [point.cheaper_below for point in points]
        above = [point.more_expensive_above for point in points]
        axes.fill_between(shares, below, above, color=color, alpha=0.25, linewidth=0)
        axes.plot(shares, below, color=color, label=f"below the band: cheaper than {other.offer}")
        axes.plot(shares, above, color=color, linewidth=0.6)
    offer = found.inputs.offer(first.offer)
    price = offer.node_price_per_hour
    if price is not None and first.mfu is not None:
        corner = 100 * first.mfu.low, price.low
        axes.add_patch(
            _rectangle(
                corner, 100 * (first.mfu.high - first.mfu.low), price.high - price.low, f"{first.offer} as given"
            )
        )
    axes.set(xlabel=f"MFU of {first.offer}, percent", ylabel=f"{found.inputs.currency} per node-hour of {first.offer}")
    _title(axes, f"Break-even of {first.offer}", found)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    axes.spines[["top", "right"]].set_visible(False)


def png(figure: Figure) -> bytes:
    """The picture as bytes; the same for the same input."""
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=130, format="png", metadata={"Software": None})
    return buffer.getvalue()


def write_png(figure: Figure, path: Path) -> None:
    """Replace a file with the picture."""
    write_bytes(path, png(figure))


def write_bytes(path: Path, content: bytes) -> None:
    """Replace a file; a TrainerError where it cannot be written."""
    try:
        with opened_folder(path.parent) as folder, draft(folder, path.name, durable=False) as file:
            file.write(content)
    except OSError as error:
        raise TrainerError(f"{path} cannot be written ({error.strerror}): give a file in a writable folder.") from None


def _title(axes: Axes, text: str, found: Estimates) -> None:
    note = found.inputs.note
    axes.set_title(f"{text}\n{note}" if note else text, loc="left", fontsize=11)


def _rectangle(corner: tuple[float, float], width: float, height: float, label: str) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle(
        corner, max(width, 0.4), max(height, 0.4), fill=False, hatch="//", color="black", label=label, zorder=3
    )


def _scale(highest: float) -> tuple[float, str]:
    for size, name in ((1e9, "billion "), (1e6, "million "), (1e3, "thousand ")):
        if highest >= size:
            return size, name
    return 1.0, ""
