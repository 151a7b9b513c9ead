# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Entries of nodes' journals as a collector has them: read, put in the order of time, and shown a line each.

A node can write anything into its journal. Its name comes from its certificate, and its texts are only shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Optional

from .._kinds import LAST_SECOND, parsed
from .._printable import printable

#: Fields of an entry that are asked for, besides those that journalctl always gives.
FIELDS = ("MESSAGE", "SYSLOG_IDENTIFIER", "GAUDI_LOG_FILE", "_PID", "_TRANSPORT")
#: Characters of a message that are shown.
LONGEST = 4000
_FILE = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*?)(@[0-9a-f-]+)?\.journal~?")
_SERIAL = re.compile(r"(?:^|;)i=([0-9a-f]{1,16})")
_RANKS = re.compile(r"gaudi3-launch: ranks ([0-9]{1,6}) to ([0-9]{1,6}) are processes ([0-9 ]{1,4000})")


def sender_of(file: str) -> Optional[str]:
    """Whose a file of the collector is; None for a file that is no journal of a node.

    The collector names files by the common name of the certificate with which they came.
    """
    found = _FILE.fullmatch(file)
    return found[1] if found else None


@dataclass(frozen=True)
class Entry:
    """One entry of a node's journal."""

    at: int
    """Microseconds since 1970."""
    node: str
    monotonic: str
    boot: str
    message: str
    source: str
    """What wrote it, by its own word: a program, or the kernel."""
    pid: Optional[int] = None
    serial: int = field(default=0, compare=False)
    """Its number in the journal of the collector."""

    @property
    def moment(self) -> tuple[int, str, str]:
        """When the journal took it: entries that a program wrote at once have one moment."""
        return self.at, self.boot, self.monotonic

    def line(self, ranks: Sequence[Ranks] = ()) -> str:
        """The entry as one line that is safe to show."""
        rank = rank_of(self, ranks)
        source = self.source if rank is None else f"rank {rank}"
        return f"{shown_time(self.at)} {self.node} {printable(source, 80)}: {printable(self.message, LONGEST)}"


@dataclass(frozen=True)
class Ranks:
    """Which processes of a node are which ranks of a job, from a time on."""

    since: int
    node: str
    boot: str
    by_pid: Mapping[int, int]


def shown_time(at: int) -> str:
    """Microseconds since 1970 as UTC."""
    seconds, micro = divmod(min(max(at, 0), LAST_SECOND * 1_000_000), 1_000_000)
    text = datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
    return f"{text}.{micro // 1000:03d}"


def entry_of(line: str, node: str) -> Optional[Entry]:
    """An entry as ``journalctl --output=json`` prints it; None for what is none."""
    found = parsed(line)
    if not isinstance(found, Mapping):
        return None
    texts = {str(name): _text(value) for name, value in found.items()}
    at, pid = texts.get("__REALTIME_TIMESTAMP", ""), texts.get("_PID", "")
    if not re.fullmatch("[0-9]{1,20}", at):
        return None
    kernel = texts.get("_TRANSPORT") == "kernel"
    source = "kernel" if kernel else texts.get("GAUDI_LOG_FILE") or texts.get("SYSLOG_IDENTIFIER") or "?"
    return Entry(
        int(at),
        node,
        texts.get("__MONOTONIC_TIMESTAMP", ""),
        texts.get("_BOOT_ID", ""),
        texts.get("MESSAGE", ""),
        source,
        int(pid) if re.fullmatch("[0-9]{1,10}", pid) else None,
        int(serial[1], 16) if (serial := _SERIAL.search(texts.get("__CURSOR", ""))) else 0,
    )


def _text(value: object) -> str:
    """A field: a text, or its bytes where it is none. Of several fields of one name, the first."""
    if isinstance(value, list) and value and all(isinstance(each, int) and 0 <= each < 256 for each in value):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, list):
        return _text(value[0]) if value and not isinstance(value[0], list) else ""
    return value if isinstance(value, str) else ""


def once(entries: Iterable[Entry]) -> list[Entry]:
    """Entries of one node in the order of time, each once.

    A node whose connection broke sends again what it does not know to have arrived. What was written at one moment came
    in one piece, or in several of which one has all: so lines that are alike within a piece were written, and stay.
    """
    moments: dict[tuple[int, str, str], list[list[Entry]]] = {}
    for entry in entries:
        pieces = moments.setdefault(entry.moment, [[]])
        if pieces[-1] and pieces[-1][-1].serial + 1 != entry.serial:
            pieces.append([])
        pieces[-1].append(entry)
    found: list[Entry] = []
    for moment in sorted(moments, key=lambda each: each[0]):
        kept: list[list[Entry]] = []
        for piece in moments[moment]:
            again = next((each for each in kept if _begins(each, piece) or _begins(piece, each)), None)
            if again is None:
                kept.append(piece)
            elif len(piece) > len(again):
                kept[kept.index(again)] = piece
        found += [entry for piece in kept for entry in piece]
    return found


def _begins(whole: list[Entry], start: list[Entry]) -> bool:
    return whole[: len(start)] == start


def merged(entries: Iterable[Entry], most: int) -> list[Entry]:
    """The last entries of all nodes in the order of time, as the nodes' clocks have it."""
    # Entries of one node and one time stay in their order.
    return sorted(entries, key=lambda entry: (entry.at, entry.node))[-most:]


def ranks_of(entry: Entry) -> Optional[Ranks]:
    """What the launcher of a job says of its processes; None where an entry is something else."""
    found = _RANKS.fullmatch(entry.message.strip())
    if not found:
        return None
    first, last, pids = int(found[1]), int(found[2]), [int(each) for each in found[3].split()]
    if last - first + 1 != len(pids):
        return None
    return Ranks(entry.at, entry.node, entry.boot, dict(zip(pids, range(first, last + 1))))


def rank_of(entry: Entry, ranks: Sequence[Ranks]) -> Optional[int]:
    """The rank of the process that wrote an entry; None where it is not known.

    A process's number may come again, so the last start before the entry counts, and none of another boot.
    """
    known = [
        each
        for each in ranks
        if each.node == entry.node and each.boot == entry.boot and each.since - START_US <= entry.at
    ]
    latest = max(known, key=lambda each: each.since, default=None)
    return None if latest is None or entry.pid is None else latest.by_pid.get(entry.pid)


#: The launcher names processes once they run, so their first words may be before its own.
START_US = 2_000_000
