"""A plan as one HTML file with its pictures; matplotlib is the extra `report`."""

from __future__ import annotations

import html
from base64 import b64encode
from typing import TYPE_CHECKING

from gaudi3_scale.cost.pictures import new_figure, png
from gaudi3_scale.cost.report import STYLE
from gaudi3_scale.planning.accelerators import accelerator
from gaudi3_scale.planning.account import PARTS
from gaudi3_scale.planning.estimate import Row, TrainingPlan
from gaudi3_scale.planning.text import COLUMNS, cells, more_tables, sentences, sources, title

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

COLORS = {
    "parameters": "#1565c0",
    "buffers": "#90a4ae",
    "optimizer_state": "#6a1b9a",
    "gradients": "#c62828",
    "collectives": "#f9a825",
    "activations": "#2e7d32",
}


def as_html(plan: TrainingPlan) -> str:
    """The whole plan."""
    body = [f"<h1>{html.escape(title(plan))}</h1>", *(f"<p>{html.escape(each)}</p>" for each in sentences(plan))]
    if plan.peak is not None:
        body.append(_picture(memory(plan), "Memory of a device at the peak, by what it is for"))
    body.append(_picture(batches(plan), "Largest batch of a device, by kind and number of devices"))
    body.append("<h2>What fits</h2>" + _table(COLUMNS, [cells(plan, row) for row in plan.rows]))
    body += [f"<h2>{html.escape(heading)}</h2>" + _table(head, rows) for heading, head, rows in more_tables(plan)]
    body.append("<h2>Sources</h2><ul>" + "".join(f"<li>{html.escape(line)}</li>" for line in sources(plan)) + "</ul>")
    head = f'<meta charset="utf-8"><title>{html.escape(title(plan))}</title><style>{STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(body)}</body></html>\n'


def memory(plan: TrainingPlan) -> Figure:
    """One bar: the recommended plan's bytes by what they are for, in the device's memory."""
    assert plan.peak is not None and plan.recommended is not None
    row = plan.recommended
    figure = new_figure(10, 2.6)
    axes = figure.add_subplot()
    left = 0.0
    for name in PARTS:
        size = getattr(plan.peak, name) / 1e9
        label = f"{name.replace('_', ' ')} {size:,.1f}"
        axes.barh(0, size, left=left, height=0.5, color=COLORS[name], label=label)
        left += size
    whole = row.memory_bytes / 1e9
    axes.axvline(whole, color="black")
    axes.axvline(whole * (1 - plan.margin), color="black", linestyle="--")
    axes.set_yticks([])
    axes.set_ylim(-0.5, 0.6)
    axes.set_xlim(0, whole * 1.03)
    axes.set_xlabel("GB of a device; dashed: what the margin leaves, solid: all of it")
    place = accelerator(row.platform)
    axes.set_title(
        f"{plan.job.model.name} on {row.devices} x {place.label}: {plan.peak.bytes / 1e9:,.1f} GB at the peak, "
        f"in {plan.peak.phase}",
        loc="left",
        fontsize=11,
    )
    axes.spines[["top", "right", "left"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def batches(plan: TrainingPlan) -> Figure:
    """A field for each kind and number of devices: the largest batch, how it is spread and what is recomputed."""
    kinds = list(dict.fromkeys(row.platform for row in plan.rows))
    numbers = sorted({row.devices for row in plan.rows})
    found = {(row.platform, row.devices): row for row in plan.rows}
    figure = new_figure(1.8 + 1.35 * len(numbers), 1.4 + 0.75 * len(kinds))
    axes = figure.add_subplot()
    for y, kind in enumerate(kinds):
        for x, number in enumerate(numbers):
            text, color = _field(found[kind, number])
            axes.add_patch(_box(x, y, color, found[kind, number] is _base(plan)))
            axes.text(x, y, text, ha="center", va="center", fontsize=8.5)
    axes.set_xlim(-0.5, len(numbers) - 0.5)
    axes.set_ylim(len(kinds) - 0.5, -0.5)
    axes.set_xticks(range(len(numbers)), [f"{number:,}" for number in numbers])
    axes.set_yticks(range(len(kinds)), [accelerator(kind).label for kind in kinds])
    axes.set_xlabel("devices")
    axes.tick_params(length=0)
    axes.set_title("Samples per device, spread, and what is recomputed", loc="left", fontsize=11)
    axes.spines[:].set_visible(False)
    return figure


def _base(plan: TrainingPlan) -> Row | None:
    best = plan.recommended
    same = (row for row in plan.rows if best and (row.platform, row.devices) == (best.platform, best.devices))
    return next(same, None)


def _field(row: Row) -> tuple[str, str]:
    if row.option is None:
        needs = f"\nneeds {row.needed_bytes / 1e9:,.0f} GB" if row.needed_bytes else ""
        return f"does not fit{needs}", "#eeeeee"
    color = {"none": "#c8e6c9", "selective": "#fff9c4", "full": "#ffe0b2"}[row.option.recompute]
    return f"{row.micro_batch:,}, {row.option.strategy}\n{row.option.text}", color


def _box(x: int, y: int, color: str, chosen: bool) -> Rectangle:
    from matplotlib.patches import Rectangle

    edge, width = ("black", 2.0) if chosen else ("white", 1.5)
    return Rectangle((x - 0.49, y - 0.46), 0.98, 0.92, facecolor=color, edgecolor=edge, linewidth=width)


def _picture(figure: Figure, what: str) -> str:
    return f'<img alt="{html.escape(what)}" src="data:image/png;base64,{b64encode(png(figure)).decode()}">'


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = ["<table><tr>" + "".join(f"<th>{html.escape(each)}</th>" for each in head) + "</tr>"]
    lines += ["<tr>" + "".join(f"<td>{html.escape(each)}</td>" for each in row) + "</tr>" for row in rows]
    return "".join([*lines, "</table>"])
