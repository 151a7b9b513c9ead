"""The code of the repository's Markdown: blocks with their languages, marks and outputs, and code in running text."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = "sh"
OUTPUT = "text"
RUN = {COMMANDS, "python"}
"""Languages of the blocks that a walk runs."""
DATA = {"yaml", "json", "ini", "hcl"}
"""Languages of the blocks that have to parse."""
OTHER = {OUTPUT, "promql"}
_MARK = re.compile(r"\A<!--\s*not run:\s*(\S.*?)\s*-->\s*\Z", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A code block of a page."""

    page: str
    line: int
    """Its first line in the page, that of the fence where it has one."""
    language: str
    """Empty where the fence names none."""
    code: str
    is_indented: bool = False
    """Whether it is a block by its indent, which names no language."""
    reason: str = ""
    """Why it is not run, where it carries the mark."""
    output: str | None = None
    """What its commands print, where a block of output follows directly."""

    @property
    def is_run(self) -> bool:
        """Whether its walk runs it."""
        return self.language in RUN and not self.reason

    @property
    def place(self) -> str:
        """Its page and line, as tools print them."""
        return f"{self.page}:{self.line}"


def blocks(markdown: str, page: str = "") -> list[Block]:
    """The code blocks of a page, those within lists and quotes included."""
    found: list[Block] = []
    before = ""
    reason = ""
    for token in _tokens(markdown):
        if token.type in ("fence", "code_block"):
            assert token.map is not None
            words = token.info.split()
            language = words[0] if words else ""
            if language == OUTPUT and before == COMMANDS and found:
                last = found.pop()
                found.append(Block(last.page, last.line, last.language, last.code, False, last.reason, token.content))
            indented = token.type == "code_block"
            found.append(Block(page, token.map[0] + 1, language, token.content, indented, reason))
            before, reason = language, ""
        else:
            marked = _MARK.match(token.content) if token.type == "html_block" else None
            before, reason = "", " ".join(marked[1].split()) if marked else ""
    return found


def spans(markdown: str) -> list[str]:
    """The code in running text, each as one line."""
    inline = (token for token in _tokens(markdown) if token.type == "inline")
    children = (child for token in inline for child in token.children or [])
    return [" ".join(child.content.split()) for child in children if child.type == "code_inline"]


@cache
def _tokens(markdown: str) -> list[Token]:
    return MarkdownIt().parse(markdown)


def pages() -> dict[str, str]:
    """The documents: tracked Markdown by name, without proofs, the changelog and what is no file of its own."""
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    return {
        name: (ROOT / name).read_text(encoding="utf-8")
        for name in listed.stdout.splitlines()
        if not name.startswith("proofs/") and name != "CHANGELOG.md" and not (ROOT / name).is_symlink()
        if (ROOT / name).is_file()
    }


def all_blocks() -> dict[str, list[Block]]:
    """The code blocks of each page that has some."""
    found = {name: blocks(text, name) for name, text in pages().items()}
    return {name: each for name, each in found.items() if each}


def logical_lines(code: str) -> list[str]:
    """Lines of shell as they are typed: those that go on joined, comments and empty lines left out."""
    joined = re.sub(r"\s*\\\n\s*", " ", code)
    bare = (without_comment(line).strip() for line in joined.splitlines())
    return [line for line in bare if line]


def without_comment(line: str) -> str:
    """A line of shell up to its comment; a number sign within quotes begins none."""
    quote = ""
    for at, sign in enumerate(line):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign == "#" and (at == 0 or line[at - 1].isspace()):
            return line[:at]
    return line
