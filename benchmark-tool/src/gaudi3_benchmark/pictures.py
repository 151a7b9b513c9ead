"""Pictures of a result; matplotlib is the extra `report`."""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from typing import TYPE_CHECKING

from gaudi3_benchmark.result import Result, Row
from gaudi3_scale.cost.pictures import LINES, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 3


def rates(found: Result) -> Figure:
    """Tokens, or images, per second by batch size: a panel for each shape and size, a line for each precision."""
    panels: dict[str, list[Row]] = defaultdict(list)
    for row in _measured(found):
        panels[f"{row.case.label}, size {row.case.size:,}"].append(row)
    columns = min(COLUMNS, len(panels))
    lines = -(-len(panels) // columns)
    figure = new_figure(4.2 * columns + 0.6, 3.2 * lines + 0.5)
    for number, (name, rows) in enumerate(panels.items(), 1):
        _draw_rates(figure.add_subplot(lines, columns, number), name, rows)
    figure.suptitle(f"Rate by batch size on {found.environment.label}, with 95 % intervals", fontsize=11)
    return figure


def times(found: Result) -> Figure:
    """Every timed step as a ratio to the median of its row, in the order of time: what drifts or scatters is seen."""
    rows = _measured(found)
    figure = new_figure(10, 1.6 + 0.55 * len(rows))
    axes = figure.add_subplot()
    for number, row in enumerate(rows):
        middle = median(second for each in row.rounds for second in each.seconds)
        total = sum(len(each.seconds) for each in row.rounds)
        place = 0
        for turn, each in enumerate(row.rounds):
            heights = [number - 0.3 + 0.6 * (place + index) / max(1, total - 1) for index in range(len(each.seconds))]
            ratios = [second / middle for second in each.seconds]
            axes.scatter(ratios, heights, s=9, color=LINES[turn % len(LINES)], linewidths=0)
            place += len(each.seconds)
    axes.axvline(1, color="black", linewidth=0.6)
    axes.set_yticks(range(len(rows)), [row.case.text for row in rows], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("time of a step over the median of its row; within a row from the first step down to the last")
    axes.set_title("Every timed step, one color for each round", loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _draw_rates(axes: Axes, name: str, rows: list[Row]) -> None:
    lines: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        recompute = "" if row.case.recompute == "none" else f", recompute {row.case.recompute}"
        lines[f"{row.case.precision}{recompute}"].append(row)
    for number, (label, of_line) in enumerate(lines.items()):
        ordered = sorted(of_line, key=lambda row: row.case.batch_size)
        found = [row.rate for row in ordered]
        known = [rate.low > 0 for rate in found]
        below = [rate.middle - rate.low if ends else 0 for rate, ends in zip(found, known, strict=True)]
        above = [rate.high - rate.middle if ends else 0 for rate, ends in zip(found, known, strict=True)]
        axes.errorbar(
            [row.case.batch_size for row in ordered],
            [rate.middle for rate in found],
            yerr=[below, above],
            marker="o",
            markersize=4,
            capsize=4,
            color=LINES[number % len(LINES)],
            label=label,
        )
    batches = sorted({row.case.batch_size for row in rows})
    axes.set_xscale("log", base=2)
    axes.set_xticks(batches, [str(batch) for batch in batches])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set(xlabel="batch size", ylabel=f"{rows[0].unit} per second")
    axes.set_title(name, loc="left", fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=8, loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)


def _measured(found: Result) -> list[Row]:
    return [row for row in found.rows if row.outcome == "measured"]
