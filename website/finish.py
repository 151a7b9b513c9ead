"""What the theme and the generators leave to mend in the pages, for those who use keys or listen to them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

#: Where a name such as HpuMemoryErrorUncorrected may go on in the next line.
HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")

CHANGES: list[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]] = [
    # A box that scrolls is reached by keys.
    (re.compile(r'<div class="highlight"><pre>'), r'<div class="highlight"><pre tabindex="0">'),
    (re.compile(r'<div class="table-wrapper([^"]*)">'), r'<div class="table-wrapper\1" tabindex="0">'),
    # antsibull-docs' own attribute is none of HTML.
    (re.compile(r' aria-role="[^"]*"'), ""),
    # A cell of the head without a text is none of the head.
    (re.compile(r'<th class="head">(<p></p>)?</th>'), "<td></td>"),
    (re.compile(r'<p class="caption" role="heading">'), r'<p class="caption" role="heading" aria-level="2">'),
    # A short name or option that is not to be cut at a hyphen.
    (re.compile(r'<span class="pre">([^<\s]{1,28})</span>'), r'<span class="pre whole">\1</span>'),
    # A long one in the sidebar is cut between its words.
    (
        re.compile(r'(?<=<li class="toctree-l3)([^>]*><a class="[^>]*>)(\w{20,})(?=</a>)'),
        lambda found: found[1] + HUMP.sub("<wbr>", found[2]),
    ),
    # An article that is the page's main part is <main>'s.
    (re.compile(r'<aside class="sidebar-drawer">'), '<aside class="sidebar-drawer" aria-label="Pages">'),
    (re.compile(r'<aside class="toc-drawer( no-toc)?">'), r'<aside class="toc-drawer\1" aria-label="On this page">'),
]


def finished(text: str) -> str:
    """A page, mended."""
    for pattern, new in CHANGES:
        text = pattern.sub(new, text)
    return text


def finish(folder: Path) -> None:
    """Mend all pages below a folder."""
    for path in folder.rglob("*.html"):
        before = path.read_text(encoding="utf-8")
        after = finished(before)
        if after != before:
            path.write_text(after, encoding="utf-8")
