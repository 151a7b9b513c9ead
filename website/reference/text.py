"""Pieces of Markdown that all reference pages are made of."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
#: Ansible's semantic markup: what stands in the braces is a name or a value.
_MARKUP = re.compile(r"\b(?:[COVEP]|RV)\(((?:\\.|[^()\\]|\([^()]*\))*)\)")
_MODULE = re.compile(r"\bM\(([\w.]+)\)")
_LINK = re.compile(r"\bL\(([^,()]+),\s*([^()]+)\)")


def code(value: str) -> str:
    """Text in backticks, as many as it needs.

    >>> code("a`b"), code("")
    ('``a`b``', '')
    """
    if not value:
        return ""
    ticks = "`" * (max((len(run) for run in re.findall("`+", value)), default=0) + 1)
    pad = " " if value.startswith("`") or value.endswith("`") else ""
    return f"{ticks}{pad}{value}{pad}{ticks}"


def value(given: Any) -> str:
    """A default as one writes it in YAML, in backticks.

    >>> value(False), value([]), value("a b"), value("")
    ('`false`', '`[]`', '`a b`', '`""`')
    """
    if isinstance(given, str):
        return code(" ".join(given.split())) or '`""`'
    return code(json.dumps(given, ensure_ascii=False))


def prose(text: str) -> str:
    """Text as Markdown shows it: what looks like a tag is text, and a template is code.

    >>> prose("deployments/<name> of `a<b`"), prose("{{ $value }} * 2")
    ('deployments/&lt;name> of `a<b`', '`{{ $value }}` \\\\* 2')
    """
    templates = re.sub(r"\{\{.*?\}\}", lambda found: code(found[0]), " ".join(text.split()))
    pieces = re.split(r"(`+[^`]+`+)", templates)
    return "".join(each if each.startswith("`") else each.replace("<", "&lt;").replace("*", "\\*") for each in pieces)


def cell(text: str) -> str:
    """Text for a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; an empty one is no text."""
    lines = [f"| {' | '.join(cell(each) for each in row)} |" for row in rows]
    return "\n".join([f"| {' | '.join(head)} |", "|" + "---|" * len(head), *lines]) if lines else ""


def document(*parts: str) -> str:
    """Paragraphs, headings and tables, one below the other; empty ones are left out."""
    return "\n\n".join(each.strip("\n") for each in parts if each.strip()) + "\n"


def ansible(description: str | Sequence[str]) -> str:
    """A description of Ansible's as one paragraph of Markdown.

    >>> ansible(["Used with O(trainer_state=finished).", "See M(gaudi3.scale.gaudi_train)."])
    'Used with `trainer_state=finished`. See `gaudi3.scale.gaudi_train`.'
    """
    return prose(_marked(description))


def plain(description: str | Sequence[str]) -> str:
    """The same as text, in which only backticks mark what is code."""
    return " ".join(_marked(description).split())


def _marked(description: str | Sequence[str]) -> str:
    whole = description if isinstance(description, str) else " ".join(description)
    whole = _MARKUP.sub(lambda found: code(re.sub(r"\\(.)", r"\1", found[1]).replace("gaudi3.scale.", "")), whole)
    whole = _MODULE.sub(lambda found: code(found[1]), whole)
    return _LINK.sub(r"[\1](\2)", whole)
