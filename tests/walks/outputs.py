"""Compare what a command printed with what its page shows, in which `...` stands for anything.

Times, speeds and shares that were measured differ with each run: any such figure fits any other.
"""

from __future__ import annotations

import re

_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_MEASURED = re.compile(r"(?:\d[\d.,]* (?:d|h|min) )?\d[\d.,]* (?:ms|s|min|h|%|tokens/s|images/s)(?![\w/])")
_GAP = re.compile(r"\s*(?:\.\.\.|…)\s*")


def lines_of(output: str) -> list[str]:
    """The lines as a terminal shows them: no colours, nothing that a carriage return overwrote, no spaces at ends."""
    shown = (line.rstrip("\r").rpartition("\r")[2].rstrip() for line in _COLOURS.sub("", output).split("\n"))
    return "\n".join(shown).strip("\n").split("\n")


def pattern(shown: str) -> re.Pattern[str]:
    """What output has to match: `...` is anything within a line, and any lines where it stands alone."""
    parts = []
    for line in lines_of(shown):
        if _GAP.fullmatch(line):
            parts.append(r"(?:[^\n]*\n)*?")
        else:
            pieces = re.split(r"\.\.\.|…", line)
            parts.append("[^\n]*".join(map(_loosely, pieces)).rstrip() + r"[ ]*\n")
    return re.compile("".join(parts))


def _loosely(text: str) -> str:
    """A pattern of a text in which any measured figure may stand for another."""
    return _MEASURED.pattern.join(map(re.escape, _MEASURED.split(text)))


def difference(shown: str, came: str) -> str:
    """Where what came departs from what the page shows; empty where it does not."""
    printed = lines_of(came)
    if pattern(shown).fullmatch("\n".join(printed) + "\n"):
        return ""
    expected = lines_of(shown)
    # What came begins with so many lines of the page: the line after these is the one to look at.
    fits = 0
    for count in range(1, len(expected) + 1):
        if pattern("\n".join([*expected[:count], "..."])).fullmatch("\n".join(printed) + "\n"):
            fits = count
    wanted = expected[fits] if fits < len(expected) else "(the end of the output)"
    return f"the page shows: {wanted}\nwhat came:\n" + "\n".join(f"  {line}" for line in printed)
