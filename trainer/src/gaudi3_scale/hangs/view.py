"""What the launchers of a job know of each process: its ring at one moment, as plain data that nodes send each other.

What another node sends is read into these classes field by field, within bounds; anything else counts as no answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gaudi3_scale.hangs import ring

CALLS = 96
"""Collectives of a process, the newest, that go to the other nodes."""
STATES = ("running", "stopped", "gone", "unknown")
"""Of a process: STOPPED is by SIGSTOP, or by a debugger."""
_TEXT = 120


@dataclass(frozen=True)
class Call:
    """A collective that a process entered."""

    group: str
    """Its identity: the same for all its ranks."""
    number: int
    """Of the collectives of this group, from 1 on."""
    operation: str
    shape: tuple[int, ...]
    dtype: str
    seconds: float
    """Since it was entered."""
    state: int = ring.OPEN

    @property
    def kind(self) -> tuple[str, tuple[int, ...], str]:
        """What has to be the same on all ranks."""
        return self.operation, self.shape, self.dtype


@dataclass(frozen=True)
class GroupView:
    """A process group."""

    name: str
    ranks: frozenset[int]


@dataclass(frozen=True)
class View:
    """A process at one moment."""

    rank: int
    phase: str
    seconds: float
    """Since it is in this phase."""
    calls: tuple[Call, ...] = ()
    """The oldest first."""
    process: str = "running"
    end: str = ""
    """How it said that it ends, in the words of `ring.ENDS`."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Collectives that it entered, by the identity of the group."""


@dataclass(frozen=True)
class NodeView:
    """What the launcher of a node says."""

    number: int
    host: str
    ranks: tuple[int, ...]
    views: tuple[View, ...]
    groups: dict[str, GroupView]


def view_of(content: ring.Content, process: str, now: int) -> View:
    """The process of a ring, at the node's monotonic time `now` in nanoseconds."""
    names = [str(group.get("id", "")) for group in content.groups]
    calls = [
        Call(
            names[entry.group] if entry.group < len(names) else str(entry.group), entry.number, entry.operation,
            entry.shape, entry.dtype, max(0, now - entry.time) / 1e9, entry.state,
        )
        for entry in content.entries[-CALLS:]
    ]  # fmt: skip
    seconds = max(0, now - content.since) / 1e9
    return View(
        content.rank, content.phase, seconds, tuple(calls), process, ring.ENDS[content.end],
        dict(zip(names, content.counts, strict=False)),
    )  # fmt: skip


def groups_of(contents: Sequence[ring.Content]) -> dict[str, GroupView]:
    """The groups that these processes know, by identity."""
    found: dict[str, GroupView] = {}
    for content in contents:
        for group in content.groups:
            ranks = {rank for first, last in group["ranks"] for rank in range(first, last + 1)}
            found[str(group["id"])] = GroupView(str(group["name"]), frozenset(ranks))
    return found


def plain(node: NodeView) -> dict[str, Any]:
    """As JSON can have it."""
    return {
        "number": node.number,
        "host": node.host,
        "ranks": list(node.ranks),
        "groups": {key: [group.name, ring.spans(sorted(group.ranks))] for key, group in node.groups.items()},
        "views": [
            {
                "rank": view.rank,
                "phase": view.phase,
                "seconds": round(view.seconds, 3),
                "process": view.process,
                "end": view.end,
                "counts": dict(view.counts),
                "calls": [
                    [each.group, each.number, each.operation, list(each.shape), each.dtype, round(each.seconds, 3),
                     each.state]
                    for each in view.calls
                ],
            }
            for view in node.views
        ],
    }  # fmt: skip


def parsed(value: Any, number: int, world_size: int) -> NodeView:
    """What the launcher of this node sent.

    Raises:
        ValueError: It is something else.
    """
    try:
        views = tuple(_view(each, world_size) for each in value["views"][:world_size])
        groups = {
            _text(key): GroupView(_text(name), frozenset(_ranks(ranks, world_size)))
            for key, (name, ranks) in list(value["groups"].items())[:1000]
        }
        ranks = tuple(_whole(each, world_size) for each in value["ranks"][:world_size])
        return NodeView(number, _text(value["host"]), ranks, views, groups)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"it is no view of a node ({type(error).__name__})") from None


def _view(value: Any, world_size: int) -> View:
    calls = []
    for group, number, operation, shape, dtype, seconds, state in value["calls"][-CALLS:]:
        calls.append(
            Call(
                _text(group), _whole(number), _among(operation, ring.OPERATIONS), tuple(map(_whole, shape[:4])),
                _among(dtype, ring.DTYPES), _seconds(seconds), _whole(state, 3),
            )
        )  # fmt: skip
    return View(
        _whole(value["rank"], world_size), _among(value["phase"], ring.PHASES), _seconds(value["seconds"]),
        tuple(calls), _among(value["process"], STATES), _among(value["end"], ring.ENDS),
        {_text(name): _whole(count) for name, count in list(value["counts"].items())[: ring.GROUPS]},
    )  # fmt: skip


def _ranks(runs: Any, world_size: int) -> set[int]:
    return {rank for first, last in runs for rank in range(_whole(first, world_size), _whole(last, world_size) + 1)}


def _text(value: Any) -> str:
    if type(value) is not str or not value.isprintable():
        raise ValueError("a text is none, or not printable")
    return value[:_TEXT]


def _among(value: Any, known: Sequence[str]) -> str:
    if value not in known:
        raise ValueError("a word is not known")
    return str(value)


def _whole(value: Any, below: int = 2**63) -> int:
    if type(value) is not int or not 0 <= value < below:
        raise ValueError("a number is out of bounds")
    return value


def _seconds(value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value < 1e9:
        raise ValueError("a duration is out of bounds")
    return float(value)
