"""What the documents of the repository show: code blocks, code in running text, and the commands in them."""

from __future__ import annotations

import shlex
import subprocess

from tests.walks.markdown import OUTPUT, ROOT, spans
from tests.walks.markdown import blocks as code_blocks

ENDS = {"|", "||", "&", "&&", ";", ">", ">>", "<", "(", ")"}
"""Where a shell's command, or what its program is given, ends."""


def pieces(markdown: str) -> tuple[list[str], list[str]]:
    """Lines of code blocks, fenced or indented; and code in running text, which may name a command and no more.

    A block of the language `text` is what a command printed.
    """
    code = "\n".join(each.code for each in code_blocks(markdown) if each.language != OUTPUT)
    lines = "\n".join(line.strip() for line in code.splitlines())
    return lines.replace("\\\n", " ").splitlines(), spans(markdown)


def blocks(markdown: str) -> list[str]:
    """Code blocks, fenced or indented, each as one text."""
    return [each.code.rstrip("\n").replace("\\\n", " ") for each in code_blocks(markdown)]


def texts() -> dict[str, str]:
    """The Markdown files of the repository, by name."""
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name: (ROOT / name).read_text(encoding="utf-8") for name in listed.stdout.split()}


def commands(piece: str, program: str) -> list[list[str]]:
    """What `program` is given in a line of shell; the parts that stand for more to come are left out."""
    lexer = shlex.shlex(piece, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = "#"
    try:
        words = list(lexer)
    except ValueError:  # prose with an apostrophe
        return []
    found: list[list[str]] = []
    begun = False
    for word in words:
        if word == program:
            found.append([])
            begun = True
        elif word in ENDS:
            begun = False
        elif begun and word != "...":
            found[-1].append(word.strip("[]"))
    return [given for given in found if given]


def documented(program: str) -> tuple[list[tuple[str, list[str]]], list[tuple[str, str]]]:
    """(where, arguments) of every command in the Markdown files of the repository, and (where, verb) of those named."""
    shown: list[tuple[str, list[str]]] = []
    named: list[tuple[str, str]] = []
    for name, text in texts().items():
        code, spans = pieces(text)
        shown += [(name, given) for piece in code for given in commands(piece, program)]
        for given in (given for piece in spans for given in commands(piece, program)):
            if len(given) == 1:
                named.append((name, given[0]))
            else:
                shown.append((name, given))
    return shown, named
