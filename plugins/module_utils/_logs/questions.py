# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What a collector of journals is asked: the options of journalctl for one node, and the times that people write."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Optional

from .._refusal import Refusal
from .entries import FIELDS, Entry, Ranks, rank_of, sender_of

#: The units that run on nodes, and where the collector has what they send.
UPLOAD = "gaudi-logs-upload.service"
VENDOR = "gaudi-logs-vendor.service"
DIRECTORY = "/var/log/gaudi-logs"
#: The launcher's line that says which process is which rank.
STARTS = "^gaudi3-launch: ranks [0-9]"
#: How many of those lines of a node are read.
MOST_STARTS = 50
_SPAN = re.compile(r"([0-9]{1,9})([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_JOB = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


@dataclass(frozen=True)
class Question:
    """What is wanted: of one job or of everything, from some nodes or all."""

    job: str = ""
    rank: Optional[int] = None
    kernel: bool = False
    """Whether the kernel's messages are shown beside those of a job, or alone where there is none."""
    since: Optional[float] = None
    """In seconds since 1970, by the nodes' clocks."""
    nodes: Sequence[str] = ()
    lines: int = 1000

    def __post_init__(self) -> None:
        if self.job and not _JOB.fullmatch(self.job):
            raise Refusal(f"{self.job!r} is no name of a job: give small letters, digits, - and _.")
        if self.rank is not None and not self.job:
            raise Refusal("A rank is one of a job: name the job, too.")
        if self.lines < 1:
            raise Refusal(f"{self.lines} lines are none: give 1 or more.")

    def matches(self, pids: Iterable[int] = ()) -> list[str]:
        """What journalctl looks for: fields that hold together, and + between alternatives."""
        unit = f"gaudi-train-{self.job}.service"
        wanted = [["_TRANSPORT=kernel"]] if self.kernel else []
        if self.rank is not None:
            wanted += [[f"_SYSTEMD_UNIT={unit}", *(f"_PID={pid}" for pid in sorted(set(pids)))]]
        elif self.job:
            wanted += [
                [f"_SYSTEMD_UNIT={unit}"],
                # What systemd says of the unit.
                [f"UNIT={unit}", "_PID=1"],
                [f"_SYSTEMD_UNIT={VENDOR}", f"GAUDI_JOB={self.job}"],
            ]
        return [word for number, group in enumerate(wanted) for word in (["+"] if number else []) + group]

    def command(self, files: Sequence[str], pids: Iterable[int] = ()) -> list[str]:
        """The call of journalctl that answers for one node."""
        since = [] if self.since is None else [f"--since=@{max(0, int(self.since))}"]
        return [*_journalctl(files, self.lines), *since, *self.matches(pids)]

    def starts(self, files: Sequence[str]) -> list[str]:
        """The call of journalctl for the launcher's lines, at any time."""
        unit = f"_SYSTEMD_UNIT=gaudi-train-{self.job}.service"
        return [*_journalctl(files, MOST_STARTS), f"--grep={STARTS}", "--case-sensitive=yes", unit]

    def wants(self, entry: Entry, ranks: Sequence[Ranks]) -> bool:
        """Whether an entry that journalctl found is of the rank, or of the kernel beside it."""
        return self.rank is None or (self.kernel and entry.source == "kernel") or rank_of(entry, ranks) == self.rank


def _journalctl(files: Sequence[str], lines: int) -> list[str]:
    options = ["--quiet", "--no-pager", "--all", "--output=json", f"--output-fields={','.join(FIELDS)}"]
    return ["journalctl", *options, f"--lines={lines}", *(f"--file={DIRECTORY}/{glob.escape(name)}" for name in files)]


def pids_of(rank: int, ranks: Iterable[Ranks]) -> list[int]:
    """The processes that a rank has had on one node."""
    return sorted({pid for each in ranks for pid, number in each.by_pid.items() if number == rank})


def by_sender(names: Iterable[str], nodes: Sequence[str] = ()) -> Mapping[str, list[str]]:
    """The files of each node, of those that are wanted; ``Refusal`` for a node that has none."""
    found: dict[str, list[str]] = {}
    for name in sorted(names):
        sender = sender_of(name)
        if sender is not None:
            found.setdefault(sender, []).append(name)
    missing = [name for name in nodes if name not in found]
    if missing:
        known = ", ".join(found) or "none"
        raise Refusal(f"Nothing has come from {missing[0]!r} (what has come is from: {known}): name one of these.")
    return {name: files for name, files in found.items() if not nodes or name in nodes}


def seconds(text: str) -> int:
    """Seconds of ``10m``, ``2h`` or ``1h30m``; ``Refusal`` for anything else."""
    found = _SPAN.findall(text)
    if not found or "".join(number + unit for number, unit in found) != text:
        raise Refusal(f"{text!r} is no time: write it as 90s, 10m, 2h or 1d.")
    return sum(int(number) * _SECONDS[unit] for number, unit in found)
