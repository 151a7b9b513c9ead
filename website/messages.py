"""The sentences of a terminal by which a page is found: those of the page of error messages, and of other programs."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from website.markdown import anchor
from website.repository import ROOT

#: The page whose tables quote, in their first column, the part of each message that never varies.
QUOTED = "operate/refusals"
OTHERS = Path(__file__).parent / "messages.yml"
QUOTE = re.compile(r'"([^"]+)"')


def quoted(text: str) -> list[tuple[str, str]]:
    """Each message of a page, and the anchor of the section that has it."""
    found, place = [], ""
    for line in text.splitlines():
        if heading := re.match(r"#+ (.+)", line):
            place = anchor(heading[1])
        elif line.startswith('| "'):
            cell = re.split(r" \| ", line)[0]
            # Of the parts of one message the longest.
            parts = [QUOTE.findall(each) for each in re.split(r"(?:,| or) (?=\")", cell)]
            found += [(max(each, key=len), place) for each in parts if each]
    return found


def messages() -> list[tuple[str, str, str]]:
    """Each sentence, with its page and the place there."""
    text = (ROOT / "docs" / f"{QUOTED}.md").read_text(encoding="utf-8")
    found = [(message, QUOTED, place) for message, place in quoted(text)]
    for target, sentences in yaml.safe_load(OTHERS.read_text(encoding="utf-8")).items():
        page, _sign, place = target.partition("#")
        found += [(sentence, page, place) for sentence in sentences]
    return found
