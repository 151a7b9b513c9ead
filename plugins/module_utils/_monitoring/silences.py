# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Silences of nodes in Alertmanager: which there are, and which to make and to end."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

#: Who has made a silence that is ours to change. Others' are left alone.
OWNER = "gaudi3.scale"
UNITS = {"m": 60, "h": 3600, "d": 86400, "w": 604800}
#: Seconds by which Alertmanager may move the beginning of a silence that it takes.
TOLERANCE = 60
_LENGTH = re.compile(r"(\d+[mhdw])+")
#: A time as Alertmanager writes it; its fractions have more digits than Python reads.
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?Z")


def seconds(length: str) -> int:
    """The seconds of a length such as 90m or 1d12h; 0 where it is none."""
    if not _LENGTH.fullmatch(length):
        return 0
    return sum(int(number) * UNITS[unit] for number, unit in re.findall(r"(\d+)([mhdw])", length))


def when(text: str) -> datetime:
    """A time of Alertmanager's."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError(f"{text} is no time")
    return datetime.strptime(found[1], "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc)


@dataclass(frozen=True)
class Wanted:
    """What is to be: nodes silent for a number of seconds, or heard again (0)."""

    nodes: Sequence[str]
    length: int
    reason: str = ""


@dataclass
class Changes:
    """What to do for it: bodies of silences to send, and the ids of those to end."""

    make: list[dict[str, Any]] = field(default_factory=list)
    end: list[str] = field(default_factory=list)

    def nodes(self) -> list[str]:
        """The nodes that become silent."""
        return [one["matchers"][0]["value"] for one in self.make]


def node_of(silence: Mapping[str, Any]) -> str:
    """The node that a silence of ours is about; empty for any other silence, and for one that has ended."""
    matchers = silence.get("matchers") or []
    if silence.get("createdBy") != OWNER or (silence.get("status") or {}).get("state") == "expired":
        return ""
    if len(matchers) != 1 or matchers[0].get("name") != "instance" or matchers[0].get("isRegex"):
        return ""
    return str(matchers[0].get("value", ""))


def serves(silence: Mapping[str, Any], wanted: Wanted) -> bool:
    """Whether a silence is what is wanted, begun earlier."""
    length = (when(str(silence["endsAt"])) - when(str(silence["startsAt"]))).total_seconds()
    return silence.get("comment") == wanted.reason and abs(length - wanted.length) <= TOLERANCE


def changes(existing: Sequence[Mapping[str, Any]], wanted: Wanted, now: datetime) -> Changes:
    """What to make and to end so that all is as wanted. Of several silences of a node one that serves is kept."""
    made = Changes()
    for node in sorted(set(wanted.nodes)):
        ours = [silence for silence in existing if node_of(silence) == node]
        kept = next((silence for silence in ours if wanted.length and serves(silence, wanted)), None)
        made.end += [str(silence["id"]) for silence in ours if silence is not kept]
        if wanted.length and kept is None:
            made.make.append(body(node, wanted, now))
    return made


def body(node: str, wanted: Wanted, now: datetime) -> dict[str, Any]:
    """A silence as Alertmanager's interface takes it."""
    end = now + timedelta(seconds=wanted.length)
    return {
        "matchers": [{"name": "instance", "value": node, "isRegex": False, "isEqual": True}],
        "startsAt": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "endsAt": end.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "createdBy": OWNER,
        "comment": wanted.reason,
    }
