# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Which kernels dnf5 may install: entries of its file of locks, one for each kernel that has the driver.

dnf5 needs no plugin for it. Of a package that entries name it installs what one of them allows, so an entry beside one
of the site would allow more than the site does: such a package is left to the site. The file is TOML, which not every
Python reads. It is read in the form that dnf5 itself writes, and kept as it is beyond this collection's entries.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Optional

from .._printable import printable
from .._refusal import Refusal
from .._release.compat import Matrix
from .kernel_locks import PACKAGES, Locks, releases

#: Before each entry on record, where those of dnf 4 have none.
MARK = "dnf5:"
_VERSION = 'version = "1.0"'
_COMMENT = "gaudi3.scale: this kernel has the driver"
_HEAD = re.compile(r"\s*\[\[?\s*([\w\"'. -]+?)\s*\]\]?\s*(?:#.*)?")
_PAIR = re.compile(r"\s*(\w+)\s*=\s*(?:\"([^\"\\]*)\"|'([^']*)')\s*(?:#.*)?")
_NO_WORD = re.compile(r"\s*(?:#.*)?")


@dataclass
class _Entry:
    """One entry, or what stands before the first."""

    lead: list[str]
    """Blank lines and comments above it."""
    body: list[str] = field(default_factory=list)
    pairs: list[tuple[str, str]] = field(default_factory=list)
    plain: bool = True
    """Whether it has nothing but pairs."""

    @property
    def name(self) -> str:
        """The package, which may be a pattern."""
        return dict(self.pairs).get("name", "")

    def is_lock(self, name: str, release: str) -> bool:
        """Whether it allows this one version of a package and nothing else."""
        pairs = [pair for pair in self.pairs if pair[0] not in ("name", "comment")]
        wanted = [("key", "evr"), ("comparator", "="), ("value", f"0:{release}")]
        return self.plain and self.name == name and pairs == wanted


def decide(
    text: str,
    installed: Collection[str],
    kernels: Sequence[str],
    system: str,
    ours: Collection[str],
    wanted: bool,
    path: str,
    matrix: Optional[Matrix] = None,
) -> Locks:
    """The file with the entries that are to be there; no lines where it is not needed.

    As of dnf 4 (``kernel_locks.decide``). ``path`` is the file, for the sentence.

    Raises:
        Refusal: The file is not in the form that dnf5 writes, or dnf5 would pass over it.
    """
    head, entries, tail = _read(text, path)
    known = {each: _parts(each) for each in ours}
    own = {each: entry for each, parts in known.items() for entry in entries if parts and entry.is_lock(*parts)}
    others = [entry.name for entry in entries if not any(entry is each for each in own.values())]
    free = [name for name in PACKAGES if name in installed and not any(fnmatchcase(name, each) for each in others)]
    named = free if wanted else []
    ought = {f"{MARK}{name}-0:{release}": (name, release) for name in named for release in releases(kernels, system,
             matrix)}  # fmt: skip
    removed = [each for each in own if each not in ought]
    added = [each for each in ought if each not in own]
    gone = [own[each] for each in removed]
    lines = [*head.lead, *head.body]
    for entry in entries:
        dropped = any(entry is each for each in gone)
        lines += [line for line in entry.lead if line.strip()] if dropped else [*entry.lead, *entry.body]
    lines += tail
    for each in added:
        lines += _written(*ought[each])
    if not any(line.strip() and line.strip() != _VERSION for line in lines):
        lines = []
    elif not head.pairs:
        lines.insert(0, _VERSION)
    return Locks(tuple(lines), tuple(sorted(ought)), tuple(added), tuple(removed), tuple(named))


def _written(name: str, release: str) -> list[str]:
    """An entry, as dnf5 writes it, which leaves it so when it writes the whole file again."""
    return [
        "",
        "[[packages]]",
        f'name = "{name}"',
        f'comment = "{_COMMENT}"',
        "",
        "[[packages.conditions]]",
        'key = "evr"',
        'comparator = "="',
        f'value = "0:{release}"',
    ]


def _parts(recorded: str) -> Optional[tuple[str, str]]:
    """Package and version of a lock on record."""
    name, found, release = recorded[len(MARK) :].partition("-0:")
    return (name, release) if found else None


def _read(text: str, path: str) -> tuple[_Entry, list[_Entry], list[str]]:
    """What stands before the entries, the entries, and what stands behind them."""
    found, lead = [_Entry([])], []
    for number, line in enumerate((each.rstrip() for each in text.splitlines()), 1):
        entry = found[-1]
        header, pair = _HEAD.fullmatch(line), _PAIR.fullmatch(line)
        if _NO_WORD.fullmatch(line):
            lead.append(line)
            continue
        if header and header[1] == "packages":
            entry = _Entry(lead)
            found.append(entry)
            lead = []
        elif (found == [entry] and not _is_version(entry, pair)) or (header and header[1] != "packages.conditions"):
            raise _odd(path, number, line)
        elif pair:
            entry.pairs.append((pair[1], pair[2] if pair[2] is not None else pair[3]))
        elif not header:
            entry.plain = False
        entry.body += [*lead, line]
        lead = []
    head, *entries = found
    if (entries or head.pairs) and head.pairs != [("version", "1.0")]:
        raise Refusal(
            f"{path} does not begin with {_VERSION}, without which dnf5 passes over all of its locks: add that line, "
            "or move the file away, and run again."
        )
    for entry in entries:
        if not entry.name:
            raise Refusal(
                f"{path} has an entry without a name ({printable(entry.body[-1], 60)!r}): give it one, or remove it, "
                "and run again."
            )
    return head, entries, lead


def _is_version(head: _Entry, pair: Optional[re.Match[str]]) -> bool:
    return pair is not None and pair[1] == "version" and not head.pairs


def _odd(path: str, number: int, line: str) -> Refusal:
    return Refusal(
        f"Line {number} of {path} is {printable(line.strip(), 60)!r}, which is not in the form that dnf5 writes: "
        "correct it, or set any lock by 'dnf5 versionlock add', which writes the whole file again, and run the role."
    )
