"""A result as one HTML file with its pictures inside, or as text."""

from __future__ import annotations

import html
from base64 import b64encode
from importlib.util import find_spec
from pathlib import Path

from gaudi3_benchmark.result import Result
from gaudi3_benchmark.show import METHOD, as_text, facts, table, title, warnings
from gaudi3_scale.cost.report import STYLE
from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.extras import how_to_install

SUFFIXES = (".html", ".txt")
WARNING = "p.warning{background:#fff3cd;padding:.5em .8em}body{max-width:80em}"


def write(found: Result, path: Path) -> None:
    """Write the report as its suffix says; a ConfigError for another suffix, a TrainerError without matplotlib."""
    from gaudi3_scale.cost.pictures import write_bytes

    if path.suffix not in SUFFIXES:
        raise ConfigError(f"{path} ends with {path.suffix!r}: give a file that ends with {' or '.join(SUFFIXES)}.")
    write_bytes(path, (as_html(found) if path.suffix == ".html" else as_text(found)).encode())


def as_html(found: Result) -> str:
    """One file that needs no other."""
    body = [f"<h1>{html.escape(title(found))}</h1>"]
    body += [f'<p class="warning">{html.escape(each)}</p>' for each in warnings(found)]
    body += ["<table>", *(_row("td", pair) for pair in facts(found)), "</table>"]
    body += _pictures(found)
    head, *rows = table(found)
    body += ["<h2>Rows</h2><table>", _row("th", head), *(_row("td", row) for row in rows), "</table>"]
    body += ["<h2>Method</h2><ul>", *(f"<li>{html.escape(each)}</li>" for each in METHOD), "</ul>"]
    first = f'<meta charset="utf-8"><title>{html.escape(title(found))}</title><style>{STYLE}{WARNING}</style>'
    return f'<!doctype html><html lang="en"><head>{first}</head><body>{"".join(body)}</body></html>\n'


def _pictures(found: Result) -> list[str]:
    """None of a simulated device: a curve would be taken for that of a Gaudi."""
    if found.environment.simulated or not any(row.outcome == "measured" for row in found.rows):
        return []
    if find_spec("matplotlib") is None:
        raise TrainerError(f"A report in HTML needs matplotlib: {how_to_install('report')}, or write it as .txt.")
    from gaudi3_benchmark import pictures
    from gaudi3_scale.cost.pictures import png

    made = [("Rate by batch size", pictures.rates(found)), ("Every timed step", pictures.times(found))]
    return [
        f'<p><img alt="{html.escape(what)}" src="data:image/png;base64,{b64encode(png(figure)).decode()}"></p>'
        for what, figure in made
    ]


def _row(tag: str, cells: tuple[str, ...]) -> str:
    return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"
