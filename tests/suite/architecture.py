"""The picture docs/understand/architecture.svg, drawn from the table of the chain in docs/understand/architecture.md.

After a change of the table: `python -m tests.suite.architecture`.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "understand" / "architecture.md"
PICTURE = ROOT / "docs" / "understand" / "architecture.svg"

HEADING = "| part | runs on | where | what it does | hands on |"
#: Parts of the chain in a row; the second row goes back, below the first.
COLUMNS = 4
WIDTH, HEIGHT, GAP, MARGIN = 212, 112, 64, 28
#: Between the rows, with the headings of what the parts run on.
ROW_GAP = 64
TOP = 48
#: Characters that a line of a box holds in a wide font, and lines.
LINE, LINES = 26, 4
COLOURS = {"controller": "#eef5ff", "nodes": "#e3f1e1", "monitoring host": "#fff0d6"}
SIMULATED = "#fde7e7"


@dataclass(frozen=True)
class Part:
    """A row of the table."""

    name: str
    runs_on: str
    where: str
    does: str
    hands_on: str


@dataclass(frozen=True)
class Box:
    """A part at its place."""

    part: Part
    left: int
    top: int

    @property
    def right(self) -> int:
        """The edge towards the next box of the first row."""
        return self.left + WIDTH

    @property
    def bottom(self) -> int:
        """The edge towards the next row."""
        return self.top + HEIGHT

    @property
    def middle(self) -> int:
        """Half of its width."""
        return self.left + WIDTH // 2


def parts(page: str) -> list[Part]:
    """The rows of the table; ValueError where the page has none, or a row another number of cells."""
    _, found, rest = page.partition(HEADING + "\n")
    if not found:
        raise ValueError(f"docs/understand/architecture.md has no table {HEADING}")
    rows = [line.strip("|").split("|") for line in rest.split("\n\n")[0].splitlines()[1:]]
    return [Part(*(cell.strip().strip("`") for cell in row)) for row in rows]


def places(chain: list[Part]) -> list[Box]:
    """The chain from left to right, then back in the row below."""
    boxes = []
    for number, part in enumerate(chain):
        row, column = divmod(number, COLUMNS)
        column = column if row % 2 == 0 else COLUMNS - 1 - column
        boxes.append(Box(part, MARGIN + column * (WIDTH + GAP), TOP + row * (HEIGHT + ROW_GAP)))
    return boxes


def draw(page: str) -> str:
    """The picture of a page."""
    *chain, beside = parts(page)
    boxes = places(chain)
    width = 2 * MARGIN + COLUMNS * WIDTH + (COLUMNS - 1) * GAP
    below = boxes[-1].bottom + ROW_GAP
    height = below + 72 + MARGIN
    said = escape(" to ".join(part.name for part in chain), quote=True)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-size="12"'
        f' font-family="Helvetica, Arial, sans-serif" role="img"'
        f' aria-label="The chain: {said}; beside it the {escape(beside.name)}">',
        '  <defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L10 5L0 10z" fill="#333"/></marker></defs>',
        f'  <rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for runs_on, colour in COLOURS.items():
        lines += _ground(runs_on, [box for box in boxes if box.part.runs_on == runs_on], colour)
    for box in boxes:
        lines += _box(box)
    for box, following in pairwise(boxes):
        lines += _arrow(box, following)
    lines += _simulator(beside, [box for box in boxes if box.part.runs_on == "nodes"], below)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _text(x: int, y: int, text: str, style: str = "") -> str:
    return f'  <text x="{x}" y="{y}"{style}>{escape(text)}</text>'


def _rect(left: int, top: int, width: int, height: int, style: str) -> str:
    return f'  <rect x="{left}" y="{top}" width="{width}" height="{height}" rx="6" {style}/>'


def _ground(runs_on: str, boxes: list[Box], colour: str) -> list[str]:
    """A coloured ground behind the parts that run on the same machines, with their name."""
    left, right = min(box.left for box in boxes) - 14, max(box.right for box in boxes) + 14
    top, bottom = boxes[0].top - 28, boxes[0].bottom + 12
    return [
        _rect(left, top, right - left, bottom - top, f'fill="{colour}"'),
        _text(left + 14, top + 18, runs_on, ' fill="#555"'),
    ]


def _box(box: Box) -> list[str]:
    lines = [
        _rect(box.left, box.top, WIDTH, HEIGHT, 'fill="#fff" stroke="#333"'),
        _text(box.left + 12, box.top + 22, box.part.name, ' font-size="15" font-weight="bold"'),
        _text(box.left + 12, box.top + 39, box.part.where, ' font-family="monospace" fill="#555"'),
    ]
    wrapped = textwrap.wrap(box.part.does, LINE)
    if len(wrapped) > LINES:
        raise ValueError(
            f"What {box.part.name} does takes {len(wrapped)} lines, and its box holds {LINES}: say it shorter."
        )
    for number, line in enumerate(wrapped):
        lines.append(_text(box.left + 12, box.top + 60 + 15 * number, line))
    return lines


def _arrow(box: Box, following: Box) -> list[str]:
    """From a box to the next one, with what it hands on."""
    if box.top != following.top:
        path = f"M{box.middle} {box.bottom}V{following.top}"
        label = _text(box.middle + 8, box.bottom + 30, box.part.hands_on)
    else:
        forth = following.left > box.left
        begin, end = (box.right, following.left) if forth else (box.left, following.right)
        path = f"M{begin} {box.top + HEIGHT // 2}H{end}"
        label = _text((begin + end) // 2, box.top + HEIGHT // 2 - 8, box.part.hands_on, ' text-anchor="middle"')
    return [f'  <path d="{path}" fill="none" stroke="#333" stroke-width="1.5" marker-end="url(#tip)"/>', label]


def _simulator(part: Part, stands_for: list[Box], top: int) -> list[str]:
    """A bar below the parts in whose hardware's place it is, with a dashed arrow to each."""
    left, right = min(box.left for box in stands_for), max(box.right for box in stands_for)
    lines = [
        _rect(left, top, right - left, 72, f'fill="{SIMULATED}" stroke="#333" stroke-dasharray="5 4"'),
        _text(left + 12, top + 22, part.name, ' font-size="15" font-weight="bold"'),
        _text(left + 12, top + 39, part.where, ' font-family="monospace" fill="#555"'),
        _text(left + 100, top + 22, part.runs_on, ' fill="#555"'),
        _text(left + 12, top + 60, part.does),
    ]
    lines += [
        f'  <path d="M{box.middle} {top}V{box.bottom}" fill="none" stroke="#333" stroke-dasharray="5 4"'
        ' marker-end="url(#tip)"/>'
        for box in stands_for
    ]
    return lines


if __name__ == "__main__":
    PICTURE.write_text(draw(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
