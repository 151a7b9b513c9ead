# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The page of a certificate: HTML to be printed, and the same as text for a terminal."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Optional

from .document import Certificate
from .evidence import CONTROLLER, Card, Evidence
from .judge import NONE, Finding
from .rules import RULES, SECTIONS, raised
from .sources import needed

_STYLE = """
@page{size:A4;margin:12mm}
body{font:9.5pt/1.35 "Liberation Sans",Arial,sans-serif;color:#111;max-width:190mm;margin:0 auto;padding:4mm}
header{display:flex;align-items:center;gap:6mm;border-bottom:1.5pt solid #111;padding-bottom:3mm}
h1{font-size:16pt;margin:0}h2{font-size:11pt;margin:5mm 0 1mm;border-bottom:.5pt solid #999}p{margin:1mm 0}
.grade{font-size:30pt;font-weight:700;border:2pt solid #111;min-width:18mm;text-align:center;padding:1mm 3mm}
.grade.none{font-size:13pt}table{border-collapse:collapse;width:100%;font-size:8pt;margin:1mm 0}
th,td{border:.5pt solid #999;padding:.6mm 1.2mm;text-align:left}
td{overflow-wrap:anywhere}th{background:#eee}.figures td{white-space:nowrap}tr{break-inside:avoid}h2{break-after:avoid}
ul{margin:1mm 0;padding-left:5mm}li.B,li.C,li.silent{font-weight:700}
footer{margin-top:5mm;border-top:.5pt solid #999;font-size:7.5pt;overflow-wrap:anywhere}
"""


def html(certificate: Certificate, signed_by: str = "") -> str:
    """The page; ``signed_by`` is the fingerprint of the key that signed the file, empty where none did."""
    evidence, judged = certificate.evidence, certificate.judgement
    title = f"Certificate of {evidence.node}"
    shown = "no grade" if judged.grade == NONE else judged.grade
    parts = [
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
        f'<header><div class="grade{" none" if judged.grade == NONE else ""}">{shown}</div>',
        f"<div><h1>{escape(title)}</h1>{_paragraphs(head(certificate))}</div></header>",
    ]
    parts += ["<h2>Sources</h2>", _items((text, "silent" if bad else "") for text, bad in sources(certificate))]
    parts += ["<h2>Figures</h2>", *(_table(table, "figures") for table in tables(evidence))]
    for section in SECTIONS:
        found = _of_section(certificate, section)
        parts += [f"<h2>{section}</h2>", _items((_sentence(each), each.grade) for each in found)] if found else []
    parts.append(f"<p>{escape(_quiet(certificate))}</p>")
    parts += ["<h2>Rules</h2>", _table(_rules())]
    said = "".join(f"<p>{escape(line)}</p>" for line in foot(certificate, signed_by))
    return "\n".join(parts) + f"\n<footer>{said}</footer></body></html>\n"


def text(certificate: Certificate, signed_by: str = "") -> list[str]:
    """The lines for a terminal."""
    judged = certificate.judgement
    lines = [f"{certificate.evidence.node}: {'no grade' if judged.grade == NONE else 'grade ' + judged.grade}"]
    lines += [f"  {line}" for line in head(certificate)]
    lines += ["", "Sources", *(f"  {line}" for line, _bad in sources(certificate))]
    for section in SECTIONS:
        found = _of_section(certificate, section)
        if found:
            lines += ["", section, *(f"  {_sentence(each)}" for each in found)]
    return [*lines, "", _quiet(certificate), "", *foot(certificate, signed_by)]


def head(certificate: Certificate) -> list[str]:
    """What the page begins with."""
    evidence, judged = certificate.evidence, certificate.judgement
    machine = f"machine {evidence.machine_serial}, " if evidence.machine_serial else ""
    return [
        f"{machine}{len(evidence.cards)} cards {evidence.board or 'of an unknown board'}, driver"
        f" {evidence.driver or 'unknown'}, {moment(evidence.taken_at)}",
        f"{judged.why}.",
        f"Broken rules: {len(judged.broken)}. Notes, which grade nothing: {len(judged.noted)}.",
    ]


def sources(certificate: Certificate) -> list[tuple[str, bool]]:
    """A line for each source, and whether it is one that did not answer."""
    evidence, quiet = certificate.evidence, certificate.judgement.silent
    lines = [
        (f"{source}: no answer: {quiet[source]}", True) if source in quiet else (f"{source}: answered", False)
        for source in needed(evidence)
    ]
    if CONTROLLER not in needed(evidence):
        lines.append((f"{CONTROLLER}: not read on this board, so nothing is known of boot keys", False))
    return lines


def tables(evidence: Evidence) -> list[list[Sequence[str]]]:
    """The figures of the cards; the first row has the names."""
    memory: list[Sequence[str]] = [
        ("card", "serial", "status", "single-bit rows", "double-bit rows", "pending", "corrected", "corrected ever",
         "uncorrected", "uncorrected ever"),
    ]  # fmt: skip
    rest: list[Sequence[str]] = [
        ("card", "restored links", "worst port", "ports down", "slowed: power", "slowed: heat", "PCIe", "revoked keys",
         "hl_qual", "training step"),
    ]  # fmt: skip
    for card in evidence.cards:
        causes = Counter("double" if "ouble" in row.cause else "single" for row in card.rows)
        counts = [
            _cell(card.counters.get(name))
            for name in ("corrected", "corrected_ever", "uncorrected", "uncorrected_ever")
        ]
        pending = "?" if card.rows_pending is None else "yes" if card.rows_pending else "no"
        name = f"accel{card.index}"
        memory.append(
            (
                name,
                card.serial or "?",
                card.status or "?",
                str(causes["single"]),
                str(causes["double"]),
                pending,
                *counts,
            )
        )
        restores = [port.restores for port in card.ports if port.restores is not None]
        worst = max(restores, default=0)
        port = next((str(each.port) for each in card.ports if worst and each.restores == worst), "none")
        rest.append(
            (name, str(sum(restores)) if restores else "?", port, str(sum(each.link == "down" for each in card.ports)),
             _cell(card.counters.get("throttled_power")), _cell(card.counters.get("throttled_thermal")), _pcie(card),
             _keys(card), _passed(evidence.qual, card), _passed(evidence.steps, card))
        )  # fmt: skip
    firmware: list[Sequence[str]] = [("firmware", "version", "cards")]
    for image in sorted({name for card in evidence.cards for name in card.firmware}):
        seen = Counter(card.firmware.get(image, "unknown") for card in evidence.cards)
        firmware += [(image, version, str(number)) for version, number in sorted(seen.items())]
    return [memory, rest, firmware]


def foot(certificate: Certificate, signed_by: str) -> list[str]:
    """What the page ends with: which file it is of, and who signed it."""
    who = (
        f"The file is signed by the key {signed_by}. Verify it with the owner's public key:"
        " gaudi3-deploy certificate verify."
        if signed_by
        else "The file is NOT SIGNED: anybody may have changed it."
    )
    return [f"SHA-256 of the file: {certificate.digest}", who]


def moment(seconds: float) -> str:
    """A time for people, in UTC."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))


def _of_section(certificate: Certificate, section: str) -> list[Finding]:
    judged = certificate.judgement
    return [each for each in (*judged.broken, *judged.noted) if each.section == section]


def _quiet(certificate: Certificate) -> str:
    """The sections that have nothing, so that none is missed."""
    empty = [section for section in SECTIONS if not _of_section(certificate, section)]
    return f"Nothing broken or noted, as far as the sources answered: {', '.join(empty) or 'no section'}."


def _sentence(finding: Finding) -> str:
    if not finding.grade:
        return f"{finding.sentence} (noted, not graded)"
    return f"{finding.sentence} ({finding.grade}, rule {finding.rule}; {finding.source}; {finding.cure})"


def _rules() -> list[Sequence[str]]:
    return [("grade", "rule", "broken where", "source"), *((r.grade, r.name, r.wording, r.source) for r in RULES)]


def _passed(results: Iterable[Any], card: Card) -> str:
    mine = [each for each in results if each.card in (None, card.index)]
    if any(each.passed is False for each in mine):
        return "failed"
    return "passed" if mine and all(each.passed for each in mine) else "?"


def _keys(card: Card) -> str:
    if card.controller is None:
        return "?"
    return (
        ", ".join(
            name.partition("_")[0] for name, value in sorted(card.controller.keys.items()) if raised(value) is not False
        )
        or "none"
    )


def _pcie(card: Card) -> str:
    return f"gen {_cell(card.pcie.get('gen'))} x{_cell(card.pcie.get('width'))}"


def _cell(value: Optional[int]) -> str:
    return "?" if value is None else str(value)


def _paragraphs(lines: Iterable[str]) -> str:
    return "".join(f"<p>{escape(line)}</p>" for line in lines)


def _items(items: Iterable[tuple[str, str]]) -> str:
    return "<ul>" + "".join(f'<li class="{kind}">{escape(line)}</li>' for line, kind in items) + "</ul>"


def _table(rows: Sequence[Sequence[str]], kind: str = "rules") -> str:
    def row(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    return f'<table class="{kind}">{row(rows[0], "th")}{"".join(row(cells, "td") for cells in rows[1:])}</table>'
