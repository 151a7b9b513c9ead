# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The distribution's nftables.service, which empties all tables: a drop-in that keeps the collection's table in place.

Each command of the unit becomes one that loads the site's rules and the collection's in one step, so that there is no
moment without the table. If the site's rules have a fault, nothing changes.
"""

from __future__ import annotations

import re
import shlex
from typing import Optional

from .._refusal import Refusal

SERVICE = "nftables.service"
#: Before every other drop-in, so that one of the site's own has the last word.
DROP_IN = f"{SERVICE}.d/00-gaudi3-scale.conf"
_KEYS = ("ExecStart", "ExecReload", "ExecStop")
_PLAIN = re.compile(r"/[\w./-]+", re.ASCII)


def drop_in(unit: str, nft: str, path: str) -> str:
    """The drop-in for a unit's text; ``path`` is the collection's ruleset, ``nft`` the program that loads it.

    A command that is neither ``nft -f FILE`` nor ``nft WORDS`` stays as it is, and so does one of a drop-in of the
    site. After these, and after a start that failed, the ruleset is loaded by a command of its own.
    """
    for each in (nft, path):
        if not _PLAIN.fullmatch(each):
            raise Refusal(f"{each!r} cannot be written into a unit: give a path of letters, digits, dots, hyphens")
    # As a pattern, which may match nothing: the site's rules load without the file, too.
    ours = f'include "{path[:-1]}[{path[-1]}]"'
    lines = ["# Managed by gaudi3.scale (role firewall). Changes are lost at its next run.", "[Service]"]
    for key, given in commands(unit).items():
        text = _text(given)
        if text is not None:
            lines += [f"{key}=", f"{key}={nft} '{text}; {ours}'"]
    lines += [
        "# For a command that is another one than those above.",
        f"ExecStartPost=-{nft} -f {path}",
        f"ExecStopPost=-{nft} -f {path}",
    ]
    return "\n".join([*lines, ""])


def commands(unit: str) -> dict[str, list[str]]:
    """The commands of a unit's text that start, reload and stop it; an empty value drops those before it."""
    found: dict[str, list[str]] = {}
    section = ""
    for line in re.sub(r"\\\n", " ", unit).splitlines():
        text = line.strip()
        if text.startswith("["):
            section = text
        key, equals, value = (each.strip() for each in text.partition("="))
        if section == "[Service]" and equals and key in _KEYS:
            found[key] = [*found.get(key, []), value] if value else []
    return found


def _text(given: list[str]) -> Optional[str]:
    """What a command gives to nft, as one text; None for any other command, and for several."""
    try:
        words = shlex.split(given[0]) if len(given) == 1 else []
    except ValueError:
        return None
    if not words or not _PLAIN.fullmatch(words[0]) or words[0].rpartition("/")[2] != "nft":
        return None
    if words[1:2] == ["-f"] and len(words) == 3 and _PLAIN.fullmatch(words[2]):
        return f'include "{words[2]}"'
    text = " ".join(words[1:]).strip("; ")
    return text if text and not text.startswith("-") and not set(text) & set("%$'\\") else None
