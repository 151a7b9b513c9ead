"""Writes a comparison as its file's suffix says: .pdf, .html, .csv, .json or .txt."""

from __future__ import annotations

import csv
import dataclasses
import html
import io
import json
from collections.abc import Callable
from pathlib import Path

from gaudi3_scale.cost.document import Table, sentences, tables, title
from gaudi3_scale.cost.estimates import Estimates
from gaudi3_scale.cost.model import COMPONENTS, given_of
from gaudi3_scale.cost.values import Range
from gaudi3_scale.errors import ConfigError

FORMULAS = (
    "device-hours = 6 x parameters x tokens / (dense peak x MFU), or tokens / measured tokens per second",
    "wall time = Daly's complete model of checkpoints, lost work and restarts, at its best interval",
    "owned node-hour = (purchase / years + upkeep per year) / (8766 h x utilisation); energy is paid for besides",
    "energy = node-hours x (devices x watts + host) x PUE; of rented nodes it is in the price and for information",
    "ranges: both ends take all inputs at the end that is cheap, or expensive",
)
STYLE = (
    "body{font:15px/1.5 sans-serif;max-width:62em;margin:2em auto;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;margin:.5em 0 1.5em;font-size:13px}"
    "th,td{border:1px solid #ccc;padding:.3em .6em;text-align:left;vertical-align:top}th{background:#f3f3f3}"
    "img{max-width:100%}"
)


def write(found: Estimates, path: Path) -> Path:
    """Write the report, and return its path; a ConfigError for a suffix that is none of these."""
    from gaudi3_scale.cost.pictures import write_bytes

    if path.suffix not in WRITERS:
        raise ConfigError(f"{path} ends with {path.suffix!r}: give a file that ends with one of {', '.join(WRITERS)}.")
    write_bytes(path, WRITERS[path.suffix](found))
    return path


def as_text(found: Estimates) -> str:
    """For a terminal."""
    lines = [title(found), "", *sentences(found)]
    for table in tables(found):
        lines += ["", table.title, *_aligned(table)]
        if table.note:
            lines.append(table.note)
    return "\n".join(lines) + "\n"


def as_json(found: Estimates) -> str:
    """Everything, inputs as well."""
    offers = []
    for each in found.estimates:
        values = dataclasses.asdict(each)
        values["inputs"] = {name: given.model_dump(mode="json") for name, given in given_of(found.inputs, each.offer)}
        offers.append(values)
    others = [each.offer for each in found.estimates[1:]] if found.has_curve else []
    curves = {
        other: [dataclasses.asdict(point) for point in found.break_even(found.estimates[0].offer, other)]
        for other in others
    }
    whole = {
        "currency": found.inputs.currency,
        "job": found.inputs.job.model_dump(mode="json"),
        "include_energy": found.include_energy,
        "cheapest": found.cheapest,
        "offers": offers,
        "break_even": {"offer": found.estimates[0].offer, "against": curves},
    }
    return json.dumps(whole, indent=2) + "\n"


def as_csv(found: Estimates) -> str:
    """One number, or range, per row: results without a source, inputs with theirs."""
    currency = found.inputs.currency
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(["offer", "quantity", "unit", "low", "high", "source", "date"])
    for each in found.estimates:
        results: list[tuple[str, str, Range]] = [("total", currency, each.total)]
        results += [(name, currency, each.components[name]) for name in COMPONENTS]
        results += [
            ("per_million_tokens", currency, each.per_million_tokens),
            ("flops", "1", Range(each.flops, each.flops)),
            ("device_hours", "h", each.device_hours),
            ("wall_hours", "h", each.wall_hours),
            ("node_hours", "h", each.node_hours),
        ]
        if each.mfu is not None:
            results.append(("mfu", "1", each.mfu))
        if each.energy_kwh is not None:
            results.append(("energy_kwh", "kWh", each.energy_kwh))
        for name, unit, value in results:
            rows.writerow([each.offer, name, unit, repr(value.low), repr(value.high), "computed", ""])
        for name, given in given_of(found.inputs, each.offer):
            rows.writerow(
                [each.offer, f"input {name}", "", repr(given.low), repr(given.high), given.source, given.date]
            )
    return out.getvalue()


def as_html(found: Estimates) -> str:
    """One file, pictures inside."""
    from base64 import b64encode

    from gaudi3_scale.cost import pictures

    def picture(content: bytes, what: str) -> str:
        return f'<img alt="{html.escape(what)}" src="data:image/png;base64,{b64encode(content).decode()}">'

    body = [f"<h1>{html.escape(title(found))}</h1>", *(f"<p>{html.escape(each)}</p>" for each in sentences(found))]
    body.append(picture(pictures.png(pictures.breakdown(found)), "Cost by what it is for"))
    for table in tables(found):
        if table.title.startswith("Break-even"):
            body.append(picture(pictures.png(pictures.break_even(found)), table.title))
        head, *rows = table.rows
        body.append(f"<h2>{html.escape(table.title)}</h2><table><tr>" + "".join(f"<th>{_cell(c)}</th>" for c in head))
        body += ["</tr><tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) for row in rows]
        body.append("</tr></table>" + (f"<p>{html.escape(table.note)}</p>" if table.note else ""))
    body.append("<h2>Formulas</h2><ul>" + "".join(f"<li>{_cell(each)}</li>" for each in FORMULAS) + "</ul>")
    head_ = f'<meta charset="utf-8"><title>{html.escape(title(found))}</title><style>{STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head_}</head><body>{"".join(body)}</body></html>\n'


def as_pdf(found: Estimates) -> bytes:
    """Pages of A4, landscape."""
    from gaudi3_scale.cost.pdf import pages

    return pages(found, FORMULAS)


def _aligned(table: Table) -> list[str]:
    widths = [max(len(row[column]) for row in table.rows) for column in range(len(table.rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table.rows
    ]


def _cell(text: str) -> str:
    return html.escape(text)


WRITERS: dict[str, Callable[[Estimates], bytes]] = {
    ".pdf": as_pdf,
    ".html": lambda found: as_html(found).encode(),
    ".csv": lambda found: as_csv(found).encode(),
    ".json": lambda found: as_json(found).encode(),
    ".txt": lambda found: as_text(found).encode(),
}
