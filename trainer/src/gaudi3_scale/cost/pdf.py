"""The report as PDF, drawn with matplotlib: a page to decide by, and pages to check it by."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gaudi3_scale.cost.document import Table, sentences, tables, title
from gaudi3_scale.cost.estimates import Estimates
from gaudi3_scale.cost.pictures import draw_break_even, draw_breakdown, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 11.69, 8.27
"""A4 in inches, landscape."""
LEFT, TOP, RIGHT = 0.06, 0.93, 0.94
LINE = 0.0235
"""Height of a line of a table, as a share of the page."""
LETTERS = 158
"""Of the tables' font in the width of a page."""


def pages(found: Estimates, formulas: Sequence[str]) -> bytes:
    """The whole document; the same bytes for the same input."""
    figures = [_summary(found)]
    if found.has_curve:
        figures.append(_curve(found))
    figures += _tables(tables(found), formulas)
    from matplotlib.backends.backend_pdf import PdfPages

    out = io.BytesIO()
    with PdfPages(out, metadata={"Title": title(found), "CreationDate": None}) as document:
        for number, figure in enumerate(figures, 1):
            figure.text(RIGHT, 0.03, f"{number} / {len(figures)}", ha="right", fontsize=8, color="#666666")
            document.savefig(figure)
    return out.getvalue()


def _page() -> Figure:
    figure = new_figure(WIDTH, HEIGHT)
    figure.set_layout_engine("none")
    return figure


def _summary(found: Estimates) -> Figure:
    figure = _page()
    figure.text(LEFT, TOP, title(found), fontsize=18, weight="bold", va="top")
    at = TOP - 0.07
    for sentence in sentences(found):
        lines = textwrap.wrap(sentence, 125)
        figure.text(LEFT, at, "\n".join(lines), fontsize=10.5, va="top", linespacing=1.35)
        at -= 0.030 * len(lines) + 0.008
    axes = figure.add_axes((0.13, 0.17, 0.82, max(0.15, at - 0.26)))
    draw_breakdown(axes, found)
    figure.legend(loc="lower center", bbox_to_anchor=(0.5, 0.05), ncols=5, frameon=False, fontsize=9)
    return figure


def _curve(found: Estimates) -> Figure:
    figure = _page()
    figure.text(
        LEFT, TOP, f"Below which price is {found.estimates[0].offer} cheaper?", fontsize=16, weight="bold", va="top"
    )
    draw_break_even(figure.add_axes((0.09, 0.12, 0.85, 0.72)), found)
    return figure


def _tables(found: Sequence[Table], formulas: Sequence[str]) -> list[Figure]:
    """Tables below each other, on as many pages as they need."""
    figures: list[Figure] = []
    at = 0.0
    for heading, lines in _blocks(found, formulas):
        if at - LINE * (min(len(lines), 6) + 2) < 0.07 or not figures:
            figures.append(_page())
            at = TOP
        figures[-1].text(LEFT, at, heading, fontsize=12, weight="bold", va="top")
        at -= 0.036
        for line in lines:
            if at < 0.07:
                figures.append(_page())
                at = TOP
            figures[-1].text(LEFT, at, line, fontsize=7.4, family="monospace", va="top")
            at -= LINE
        at -= 0.025
    return figures


def _blocks(found: Sequence[Table], formulas: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    for table in found:
        lines = [line for row in _fitted(table) for line in row]
        yield table.title, lines + (textwrap.wrap(table.note, LETTERS) if table.note else [])
    yield "Formulas", [line for formula in formulas for line in textwrap.wrap(formula, LETTERS)]


def _fitted(table: Table) -> Iterator[list[str]]:
    """Rows as lines of equal columns; the widest columns are wrapped until the table fits the page."""
    widths = [max(len(row[column]) for row in table.rows) for column in range(len(table.rows[0]))]
    while sum(widths) + 2 * (len(widths) - 1) > LETTERS:
        widths[widths.index(max(widths))] -= 1
    for number, row in enumerate(table.rows):
        cells = [textwrap.wrap(cell, width) or [""] for cell, width in zip(row, widths, strict=True)]
        height = max(map(len, cells))
        padded = [cell + [""] * (height - len(cell)) for cell in cells]
        lines = [
            "  ".join(part.ljust(width) for part, width in zip(line, widths, strict=True)).rstrip()
            for line in zip(*padded, strict=True)
        ]
        yield lines + (["-" * (sum(widths) + 2 * (len(widths) - 1))] if number == 0 else [])
