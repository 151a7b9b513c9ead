"""A page of HTML as Markdown, for pages whose source is none: headings, lists, code, and cells as paragraphs."""

from __future__ import annotations

import re
from html.parser import HTMLParser

SKIPPED = {"script", "style", "svg", "button"}
LINES = {"p", "div", "dt", "dd", "tr", "td", "th", "section", "table", "ul", "ol"}


class Text(HTMLParser):
    """Collects the text of an article."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.skipped = ""
        self.lists = 0
        self.code = False
        self.inline = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        classes = (dict(attrs).get("class") or "").split()
        if self.skipped:
            return
        if tag in SKIPPED or {"headerlink", "ansibleOptionLink"} & set(classes):
            self.skipped = tag
        elif re.fullmatch(r"h[1-6]", tag):
            self.parts.append(f"\n\n{'#' * int(tag[1])} ")
        elif tag == "pre":
            self.code = True
            self.parts.append("\n\n```\n")
        elif tag == "li":
            self.parts.append(f"\n{'  ' * max(0, self.lists - 1)}- ")
        elif tag == "code" and not self.code:
            self.inline = True
            self.parts.append("`")
        elif tag in ("strong", "b") and not self.inline:
            self.parts.append("**")
        elif tag in LINES and self.parts[-1:] != [f"\n{'  ' * max(0, self.lists - 1)}- "]:
            self.parts.append("\n\n")
        self.lists += tag in ("ul", "ol")

    def handle_endtag(self, tag: str) -> None:
        if self.skipped:
            self.skipped = "" if tag == self.skipped else self.skipped
            return
        self.lists -= tag in ("ul", "ol")
        if tag == "pre":
            self.code = False
            self.parts.append("\n```\n\n")
        elif tag == "code" and not self.code:
            self.inline = False
            self.parts.append("`")
        elif tag in ("strong", "b") and not self.inline:
            self.parts.append("**")

    def handle_data(self, data: str) -> None:
        if not self.skipped:
            self.parts.append(data if self.code else re.sub(r"\s+", " ", data))


def markdown(html: str) -> str:
    """The article of a page."""
    reader = Text()
    reader.feed(re.split(r"<article[^>]*>", html, maxsplit=1)[-1].partition("</article>")[0])
    text = "".join(reader.parts).replace("****", "").replace("``` ", "```")
    text = re.sub(r"[ \t]+\n", "\n", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"
