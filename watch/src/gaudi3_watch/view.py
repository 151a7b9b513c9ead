"""What a page shows, as plain data: sections of tiles, charts and tables, and a reason where there is nothing.

Texts may be a node's or a job's: they are cut to one printable line here, and the page inserts them as text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Literal, Union

from gaudi3_watch.downsample import Points

Level = Literal["", "good", "warn", "bad"]
View = dict[str, Any]
Cell = Union[str, View]
LONGEST = 300
SENTENCE = 600
"""Of a text that has to be whole: a hang's sentence names ranks, nodes and a collective."""
MOST_ROWS = 600
"""Rows of a table; 512 cards fit."""


@dataclass(frozen=True)
class Asked:
    """What a browser asks for: a span of time (None: to its end) in a number of pixels, of one node and one job."""

    begin: float | None = None
    end: float | None = None
    last: float | None = None
    """Seconds up to the newest time, where no begin is given."""
    width: int = 600
    node: str = ""
    job: str = ""

    def span(self, first: float, newest: float) -> tuple[float, float]:
        """The span that is shown of what there is."""
        end = newest if self.end is None else self.end
        begin = self.begin if self.begin is not None else first if self.last is None else end - self.last
        return (begin, end) if begin < end else (end - 60, end)


@dataclass(frozen=True)
class Line:
    """A line of a chart."""

    name: str
    points: Points


def text(value: object, longest: int = LONGEST) -> str:
    """Any value as one line, without what would steer a terminal or the direction of writing."""
    cut = str(value)[: longest + 1]
    shown = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in cut)
    return shown if len(shown) <= longest else shown[: longest - 1] + "\N{HORIZONTAL ELLIPSIS}"


def number(value: float | None, digits: int = 4) -> str:
    """A number as 12,345 or 0.001234; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return "\N{EN DASH}"
    if value and (abs(value) < 1e-4 or abs(value) >= 1e15):
        return f"{value:.{digits - 1}e}"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:,.{places}f}".rstrip("0").rstrip(".") if places else f"{value:,.0f}"


def duration(seconds: float | None) -> str:
    """A time as 42 s, 3 min 20 s, 5 h 4 min, 6 d 3 h."""
    if seconds is None or not math.isfinite(seconds):
        return "\N{EN DASH}"
    if abs(seconds) < 60:
        return f"{number(seconds, 3)} s"
    whole = round(abs(seconds))
    for unit, size, below, part in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if whole >= size:
            count, rest = divmod(whole, size)
            return f"{count} {unit}" + (f" {rest // part} {below}" if rest // part else "")
    return f"{whole} s"


def moment(seconds: float) -> str:
    """A moment as a text, in UTC."""
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return "a time that no calendar has"


def cell(value: object, level: Level = "", node: str = "") -> Cell:
    """A cell of a table; ``node`` makes it a link to that node."""
    shown = text(value)
    if not level and not node:
        return shown
    return {"text": shown, "level": level, **({"node": text(node)} if node else {})}


def tile(label: str, value: str, detail: str = "", level: Level = "", share: float | None = None) -> View:
    """One figure; ``share`` draws a bar of it, from 0 to 1."""
    found = {"label": label, "value": text(value), "detail": text(detail), "level": level}
    return found if share is None else {**found, "share": min(1.0, max(0.0, share))}


def empty(why: str, remedy: str) -> View:
    """Why there is nothing, and what to do."""
    return {"why": text(why), "remedy": text(remedy)}


def chart(
    name: str,
    title: str,
    unit: str,
    lines: Sequence[Line],
    none: View | None = None,
    kind: str = "line",
    span: str = "",
) -> View:
    """A chart with its summary in words; ``none`` says why it has no value."""
    shown = [line for line in lines if not line.points.is_empty]
    if not shown:
        why = none or empty("Nothing was measured in this span of time.", "Choose a longer one.")
        return {"id": name, "title": title, "unit": unit, "empty": why}
    return {
        "id": name,
        "title": title,
        "unit": unit,
        "kind": kind,
        "summary": " ".join(_summary(line, unit) for line in shown[:8]) + (f" {span}" if span else ""),
        "series": [
            {
                "name": text(line.name),
                "x": [round(each, 3) for each in line.points.x],
                **{part: [_short(each) for each in getattr(line.points, part)] for part in ("last", "low", "high")},
            }
            for line in shown
        ],
    }


def table(
    name: str,
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    numbers: Iterable[int] = (),
    none: View | None = None,
) -> View:
    """A table; ``numbers`` are the columns of figures. Of very many rows the first are shown, and that is said."""
    given = [list(row) for row in rows]
    found: View = {"id": name, "title": title, "columns": list(columns), "numbers": list(numbers)}
    if not given:
        return {**found, "rows": [], "empty": none or empty("There is nothing to list.", "Nothing has to be done.")}
    more = len(given) - MOST_ROWS
    return {**found, "rows": given[:MOST_ROWS], "more": f"and {more:,} more rows" if more > 0 else ""}


def section(
    name: str,
    title: str,
    tiles: Sequence[View] = (),
    charts: Sequence[View] = (),
    tables: Sequence[View] = (),
    none: View | None = None,
) -> View:
    """A part of the page; with ``none`` there is nothing to show, and it says why."""
    if none is not None:
        return {"id": name, "title": title, "empty": none, "tiles": [], "charts": [], "tables": []}
    return {"id": name, "title": title, "tiles": list(tiles), "charts": list(charts), "tables": list(tables)}


def marks(found: Iterable[tuple[float, str, str]], asked_width: int, begin: float, end: float) -> list[View]:
    """Marks within a span; those of one kind that would stand on the same pixel are one."""
    step = max((end - begin) / max(1, asked_width), 1e-9)
    shown: dict[tuple[str, int], View] = {}
    for time, kind, label in found:
        if begin <= time <= end:
            key = (kind, int((time - begin) / step))
            count = shown[key]["count"] + 1 if key in shown else 1
            shown[key] = {"time": round(time, 3), "kind": kind, "label": text(label), "count": count}
    return sorted(shown.values(), key=lambda each: each["time"])


def happened(found: Sequence[View]) -> View:
    """A table of marks, for whoever does not see them in the charts."""
    rows = [
        [
            moment(each["time"]),
            each["label"] + (f", and {each['count'] - 1} more before it" if each["count"] > 1 else ""),
        ]
        for each in reversed(found)
    ]
    none = empty("There was none in this span of time.", "Choose a longer one, or save checkpoints more often.")
    return table("marks", "Checkpoints and restarts", ("time", "what"), rows, none=none)


def problem(said: str, sample: str = "", level: Level = "warn") -> View:
    """Something that is wrong with what is read; ``sample`` is of it, as it was found."""
    return {"text": text(said, 500), "sample": text(sample, 100) if sample else "", "level": level}


def settings(values: Mapping[str, object]) -> list[list[Cell]]:
    """Rows of a table of two columns."""
    return [[name, text(value, SENTENCE)] for name, value in values.items() if value not in (None, "")]


def _summary(line: Line, unit: str) -> str:
    values = [value for value in line.points.last if value is not None]
    low = min(value for value in line.points.low if value is not None)
    high = max(value for value in line.points.high if value is not None)
    of = f" {unit}" if unit else ""
    return f"{text(line.name)}: {number(values[-1])}{of} at the end, between {number(low)} and {number(high)}."


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")
