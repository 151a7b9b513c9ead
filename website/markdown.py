"""Markdown as text: its links and headings, apart from code."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

#: Fenced blocks, comments, and code in running text: whatever looks like a link there is none.
CODE = re.compile(
    r"^( *)(```+|~~~+)[^\n]*\n.*?^\1\2[ ]*$|<!--.*?-->|(`+)(?!`).+?(?<!`)\3(?!`)", re.MULTILINE | re.DOTALL
)
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
#: A link whose text is the name of a file, as readers of the repository want it.
FILE_LINK = re.compile(r"\[([\w./-]+\.md)\]\(([^)\s]+)\)")
BULLET = re.compile(r"^- \[([^\]]+)\]\(([^)\s]+)\)", re.MULTILINE)
NOT_RUN = re.compile(r"^ *<!-- .*? -->\n", re.MULTILINE | re.DOTALL)


def apart(text: str) -> Iterator[tuple[str, bool]]:
    """The pieces of a text, and whether each is code or a comment."""
    end = 0
    for found in CODE.finditer(text):
        yield text[end : found.start()], False
        yield found[0], True
        end = found.end()
    yield text[end:], False


def links(text: str) -> list[str]:
    """The targets of all links and pictures."""
    return [found[2] for piece, code in apart(text) if not code for found in LINK.finditer(piece)]


def with_links(text: str, change: Callable[[str], str]) -> str:
    """The text, each target of a link changed."""

    def changed(found: re.Match[str]) -> str:
        return f"{found[1]}{change(found[2])}{found[3]}"

    return "".join(piece if code else LINK.sub(changed, piece) for piece, code in apart(text))


def with_titles(text: str, title: Callable[[str], str]) -> str:
    """The text, with a title for each link's text that is the name of a file; an empty one leaves the name."""

    def changed(found: re.Match[str]) -> str:
        return f"[{title(found[2]) or found[1]}]({found[2]})"

    return "".join(piece if code else FILE_LINK.sub(changed, piece) for piece, code in apart(text))


def title(text: str) -> str:
    """The first heading, without its marks."""
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    return plain(found[1]) if found else ""


def first_paragraph(text: str) -> str:
    """The paragraph after the first heading, in one line; empty where something else comes first."""
    rest = NOT_RUN.sub("", re.split(r"^# .+$", text, maxsplit=1, flags=re.MULTILINE)[-1]).lstrip("\n")
    paragraph = rest.split("\n\n", 1)[0]
    return "" if re.match(r"[#|>`!-]| {4}|\d+\. ", paragraph) else " ".join(paragraph.split())


def plain(text: str) -> str:
    """A line of Markdown without its links and marks."""
    return re.sub(r"!?\[([^]]*)\]\([^)]*\)|[`*]", r"\1", text)


def anchor(heading: str) -> str:
    """What the link of a heading is, as GitHub and MyST make it."""
    return re.sub(r"[^\w\- ]", "", plain(heading).strip().lower()).replace(" ", "-")
