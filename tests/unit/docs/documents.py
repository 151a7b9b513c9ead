"""What the documents of the repository show: code blocks, code in running text, and the commands in them."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[3]
ENDS = {"|", "||", "&", "&&", ";", ">", ">>", "<", "(", ")"}
"""Where a shell's command, or what its program is given, ends."""


def pieces(markdown: str) -> tuple[list[str], list[str]]:
    """Lines of code blocks, fenced or indented; and code in running text, which may name a command and no more.

    A block of the language `text` is what a command printed.
    """
    code: list[str] = []
    text: list[str] = []
    fenced = output = False
    for line in markdown.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
            output = fenced and line.strip() == "```text"
        elif output:
            continue
        elif fenced or line.startswith("    "):
            code.append(line.strip())
        else:
            text.append(line)
    spans = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", "\n".join(text))]
    return "\n".join(code).replace("\\\n", " ").splitlines(), spans


def blocks(markdown: str) -> list[str]:
    """Code blocks, fenced or indented, each as one text; an empty line does not end an indented one."""
    found: list[list[str]] = []
    fenced = within = False
    for line in markdown.splitlines():
        if line.lstrip().startswith("```"):
            fenced, within = not fenced, False
        elif fenced or line.startswith("    "):
            found += [] if within else [[]]
            found[-1].append(line if fenced else line[4:])
            within = True
        elif line.strip():
            within = False
    return ["\n".join(lines).replace("\\\n", " ") for lines in found]


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
