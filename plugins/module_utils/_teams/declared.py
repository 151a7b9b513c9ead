# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The file of the teams: who belongs to which, and what each may use."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple, Optional

from .._printable import printable
from .._refusal import Refusal

#: No '-' in it: the team of a job is what stands before the first '-' of the job's name.
TEAM = re.compile(r"[a-z][a-z0-9]{0,29}")
USER = re.compile(r"[a-z_][a-z0-9_.-]{0,31}")
NAMESPACE = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
#: A host as it calls itself. In capitals, sudo would take it for an alias.
NODE = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?")
#: Without flags, as a JSON schema has none.
PARTITION = re.compile(
    r"(?!([Dd][Ee][Ff][Aa][Uu][Ll][Tt]|[Aa][Ll][Ll])$)[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
)
#: Names that mean another account, or everybody, to one of those who read them.
TAKEN = ("all", "default", "normal", "root")
#: As large as a number may be in 32 bits, where Slurm has its last values for "none" and "not set".
MOST = 2**32 - 3

_TEAM_KEYS = ("users", "quota", "priority", "namespace", "nodes", "partition")
_QUOTA_KEYS = ("cards", "jobs", "card_hours")


class Quota(NamedTuple):
    """What a team may use together; None is no limit."""

    cards: Optional[int] = None
    """Cards at once."""
    jobs: Optional[int] = None
    """Jobs at once."""
    card_hours: Optional[int] = None
    """Hours of one card in all."""


class TeamEntry(NamedTuple):
    """A team and its Unix users, in the file's order."""

    name: str
    users: tuple[str, ...]
    quota: Quota
    priority: int
    namespace: str
    nodes: tuple[str, ...] = ()
    """Where its jobs are; empty for all nodes."""
    partition: str = ""
    """The partition of Slurm for its jobs; several teams may share one. Empty for none of its own."""


def teams(given: Any) -> tuple[TeamEntry, ...]:
    """The teams of a file's value.

    Raises:
        Refusal: Something in it is none of a team's, or cannot be a name or a limit.
    """
    top = _mapping(given, "The file", ("teams",))
    found = top.get("teams")
    if not isinstance(found, Mapping) or not found:
        raise Refusal("The file has no teams: give teams: {NAME: {users: [...]}}")
    made = tuple(_team(name, value) for name, value in found.items())
    _once(((user, entry.name) for entry in made for user in entry.users), "User", "name each user in one team")
    _once(((entry.namespace, entry.name) for entry in made), "Namespace", "give each team a namespace of its own")
    _agreed(made)
    return made


def _agreed(made: Iterable[TeamEntry]) -> None:
    """Raises Refusal where teams share a partition and say different nodes, as it has one list of them."""
    first: dict[str, TeamEntry] = {}
    for entry in made:
        if not entry.nodes and not entry.partition:
            continue
        name = entry.partition or entry.name
        other = first.setdefault(name, entry)
        if sorted(entry.nodes) != sorted(other.nodes):
            raise Refusal(
                f"The teams {other.name} and {entry.name} have the partition {name} and not the same nodes: give both "
                "the same, or a partition each"
            )


def _team(name: Any, value: Any) -> TeamEntry:
    if not isinstance(name, str) or not TEAM.fullmatch(name) or name in TAKEN:
        raise Refusal(
            f"Team {_said(name)} is not a name of a team: take 1 to 30 lower-case letters and digits, a letter first, "
            f"and none of {', '.join(TAKEN)}"
        )
    where = f"Team {name}"
    entry = _mapping(value, where, _TEAM_KEYS)
    users = entry.get("users")
    if not isinstance(users, list) or not users:
        raise Refusal(f"{where} has no users: give users as a list of names of Unix users")
    for user in users:
        if not isinstance(user, str) or not USER.fullmatch(user) or user == "root":
            raise Refusal(
                f"{where} has the user {_said(user)}: take 1 to 32 lower-case letters, digits, '-', '_' and '.', a "
                "letter or '_' first, and not root"
            )
    _once(((user, name) for user in users), "User", "name each user once")
    quota = _mapping(entry.get("quota", {}), f"The quota of team {name}", _QUOTA_KEYS)
    namespace = entry.get("namespace", name)
    if not isinstance(namespace, str) or not NAMESPACE.fullmatch(namespace):
        raise Refusal(
            f"{where} has the namespace {_said(namespace)}: take lower-case letters, digits and '-', 63 at most"
        )
    nodes = entry.get("nodes", [])
    if not isinstance(nodes, list) or ("nodes" in entry and not nodes):
        raise Refusal(f"{where} has the nodes {_said(nodes)}: give names of hosts as a list, or leave it out for all")
    for node in nodes:
        if not isinstance(node, str) or not NODE.fullmatch(node):
            raise Refusal(
                f"{where} has the node {_said(node)}: take lower-case letters, digits, '-' and '.', 63 at most"
            )
    _once(((node, name) for node in nodes), "Node", "name each node once")
    partition = entry.get("partition", "")
    if not isinstance(partition, str) or ("partition" in entry and not PARTITION.fullmatch(partition)):
        raise Refusal(
            f"{where} has the partition {_said(partition)}: take letters, digits, '-', '_' and '.', 63 at most, and "
            "neither default nor all"
        )
    limits = {key: _number(quota[key], f"{where} has the quota {key}") for key in quota if quota[key] is not None}
    if limits.get("card_hours", 0) > MOST // 60:
        raise Refusal(
            f"{where} has the quota card_hours {limits['card_hours']}: take {MOST // 60} at most, or leave it out"
        )
    return TeamEntry(
        name,
        tuple(users),
        Quota(limits.get("cards"), limits.get("jobs"), limits.get("card_hours")),
        _number(entry.get("priority", 0), f"{where} has the priority"),
        namespace,
        tuple(nodes),
        partition,
    )


def _mapping(value: Any, where: str, known: Collection[str]) -> Mapping[str, Any]:
    """The value, whose keys are all known."""
    if not isinstance(value, Mapping):
        raise Refusal(f"{where} is {_said(value)}: give a mapping with {', '.join(known)}")
    for key in value:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1, cutoff=0.5)
            advice = f"did you mean {near[0]}?" if near else f"give {', '.join(known)} alone"
            raise Refusal(f"{where} has the unknown key {_said(key)}: {advice}")
    return value


def _number(value: Any, where: str) -> int:
    # True is an int to Python, and no number to who wrote it.
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST:
        raise Refusal(f"{where} {_said(value)}: give a whole number from 0 to {MOST}, or leave it out")
    return value


def _once(pairs: Iterable[tuple[str, str]], what: str, advice: str) -> None:
    """Raises Refusal where a name comes twice."""
    seen: dict[str, str] = {}
    for name, owner in pairs:
        if name in seen:
            where = f"twice in team {owner}" if seen[name] == owner else f"in the teams {seen[name]} and {owner}"
            raise Refusal(f"{what} {name} is {where}: {advice}")
        seen[name] = owner


def _said(value: object) -> str:
    return printable(repr(value), 80)
