# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What brings Slurm's accounts to the file of the teams: the commands of sacctmgr, none where all is right."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Optional

from .._printable import few, printable
from .._refusal import Refusal
from .declared import TeamEntry

ASSOCIATIONS = ("Cluster", "Account", "User", "QOS", "DefaultQOS")
"""Columns of ``sacctmgr -nP show assoc``."""
QOS = ("Name", "Priority", "GrpTRES", "GrpJobs", "GrpTRESMins", "Flags")
"""Columns of ``sacctmgr -nP show qos``."""
#: A QOS that has such a name is one of ours.
PREFIX = "team-"
_CLUSTER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")
_GRES = re.compile(r"gres/[a-z][a-z0-9_]*(:[a-z0-9_]+)?")


class Association(NamedTuple):
    """A row of sacctmgr: an account, or, where there is a user, that user in it."""

    cluster: str
    account: str
    user: str
    qos: str
    default_qos: str


class Level(NamedTuple):
    """A QOS; limits as Slurm writes them, empty for none."""

    name: str
    priority: str = "0"
    cards: str = ""
    jobs: str = ""
    card_minutes: str = ""
    flags: str = ""


class Change(NamedTuple):
    """What to call, and what was left alone."""

    commands: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]


def associations(text: str) -> tuple[Association, ...]:
    """The rows of ``show assoc``. Refusal of other text."""
    return tuple(Association(*row) for row in _rows(text, "assoc", ASSOCIATIONS))


def levels(text: str, gres: str) -> tuple[Level, ...]:
    """The rows of ``show qos``, with the limits of one gres. Refusal of other text."""
    found = []
    for name, priority, tres, jobs, minutes, flags in _rows(text, "qos", QOS):
        found.append(Level(name, priority or "0", _of(tres, gres), jobs, _of(minutes, gres), flags))
    return tuple(found)


def change(
    wanted: Sequence[TeamEntry],
    rows: Sequence[Association],
    found: Sequence[Level],
    cluster: str,
    gres: str = "gres/gpu",
    remove: bool = False,
) -> Change:
    """What is to be done for the teams on a cluster.

    Args:
        wanted: The teams.
        rows: Associations, of other clusters too.
        found: Every QOS.
        cluster: Slurm's name of the cluster.
        gres: What is counted as a card; slurmdbd knows only what AccountingStorageTRES names.
        remove: Also take away accounts that were a team's, and users who are in its account and not in the file.

    Raises:
        Refusal: The cluster or the gres cannot be one.
    """
    if not _CLUSTER.fullmatch(cluster):
        raise Refusal(
            f"The cluster {printable(repr(cluster), 80)} is not a name of a cluster: give ClusterName of slurm.conf"
        )
    if not _GRES.fullmatch(gres):
        raise Refusal(
            f"The gres {printable(repr(gres), 80)} is none: give it as AccountingStorageTRES has it, as gres/gpu"
        )
    # slurm.conf may have capitals, which the accounting has not.
    here = [row for row in rows if row.cluster.lower() == cluster.lower()]
    if not here:
        seen = sorted({printable(row.cluster, 40) for row in rows})
        raise Refusal(
            f"sacctmgr shows no cluster {cluster}, but {few(seen) or 'none'}: give the name of one as --cluster"
        )
    cluster = here[0].cluster
    commands: list[tuple[str, ...]] = []
    for entry in wanted:
        commands += _level(entry, {each.name: each for each in found}.get(PREFIX + entry.name), gres)
        commands += _account(entry, here, cluster)
    extra = list(_extra(wanted, here, found, cluster))
    lines = tuple(_partitions(wanted))
    if remove:
        return Change((*commands, *(command for command, _note in extra)), lines)
    return Change(tuple(commands), (*(note for _command, note in extra), *lines))


def _partitions(wanted: Sequence[TeamEntry]) -> Iterator[str]:
    """What keeps teams to their nodes and partitions, which is no matter of sacctmgr."""
    found: dict[str, list[TeamEntry]] = {}
    for entry in wanted:
        if entry.nodes or entry.partition:
            found.setdefault(entry.partition or entry.name, []).append(entry)
    for name, entries in found.items():
        teams = [entry.name for entry in entries]
        which = f"Team {teams[0]} has" if len(teams) == 1 else f"Teams {' and '.join(teams)} have"
        what = f"the partition {name}, which is" if any(entry.partition for entry in entries) else "nodes, which are"
        yield (
            f"{which} {what} a line of slurm.conf: PartitionName={name} Nodes={','.join(entries[0].nodes) or 'ALL'} "
            f"AllowAccounts={','.join(teams)}"
        )


def _level(entry: TeamEntry, found: Optional[Level], gres: str) -> Iterator[tuple[str, ...]]:
    """The QOS with the limits."""
    name, quota = PREFIX + entry.name, entry.quota
    want = Level(
        name,
        str(entry.priority),
        "" if quota.cards is None else str(quota.cards),
        "" if quota.jobs is None else str(quota.jobs),
        "" if quota.card_hours is None else str(quota.card_hours * 60),
    )
    has = found or Level(name)
    # -1 takes a limit away.
    values = {
        "priority": (has.priority, want.priority, f"{want.priority}"),
        "grptres": (has.cards, want.cards, f"{gres}={want.cards or -1}"),
        "grpjobs": (has.jobs, want.jobs, want.jobs or "-1"),
        "grptresmins": (has.card_minutes, want.card_minutes, f"{gres}={want.card_minutes or -1}"),
    }
    if not found:
        yield ("sacctmgr", "-i", "add", "qos", name)
    settings = [f"{key}={value}" for key, (old, new, value) in values.items() if old != new]
    if "DenyOnLimit" not in has.flags.split(","):
        # A job that no waiting brings below the limits is refused, and does not wait for ever.
        settings.append(f"flags{'+=' if has.flags else '='}DenyOnLimit")
    if settings:
        yield ("sacctmgr", "-i", "modify", "qos", "where", f"name={name}", "set", *settings)


def _account(entry: TeamEntry, here: Sequence[Association], cluster: str) -> Iterator[tuple[str, ...]]:
    """The account, and its users in it."""
    name = PREFIX + entry.name
    own = {row.user: row for row in here if row.account == entry.name}
    levels_ = (f"qos={name}", f"defaultqos={name}")
    account = own.get("")
    if account is None:
        yield ("sacctmgr", "-i", "add", "account", entry.name, f"cluster={cluster}", f"description={name}")
    if account is None or (account.qos, account.default_qos) != (name, name):
        yield (
            "sacctmgr",
            "-i",
            "modify",
            "account",
            "where",
            f"name={entry.name}",
            f"cluster={cluster}",
            "set",
            *levels_,
        )
    for user in entry.users:
        row = own.get(user)
        where = (f"name={user}", f"account={entry.name}", f"cluster={cluster}")
        if row is None:
            yield ("sacctmgr", "-i", "add", "user", *where)
            if any(each.user == user for each in here):
                yield (
                    *("sacctmgr", "-i", "modify", "user", "where", f"name={user}", f"cluster={cluster}"),
                    *("set", f"defaultaccount={entry.name}"),
                )
        elif (row.qos, row.default_qos) != (name, name):
            yield ("sacctmgr", "-i", "modify", "user", "where", *where, "set", *levels_)


def _extra(
    wanted: Sequence[TeamEntry], here: Sequence[Association], found: Sequence[Level], cluster: str
) -> Iterator[tuple[tuple[str, ...], str]]:
    """What the file does not have: how to take it away, and what to say where that is not wanted."""
    teams = {entry.name: entry for entry in wanted}
    for row in here:
        entry = teams.get(row.account)
        if entry and row.user and row.user not in entry.users and _plain(row.user):
            yield (
                (
                    "sacctmgr",
                    "-i",
                    "delete",
                    "user",
                    "where",
                    f"name={row.user}",
                    f"account={row.account}",
                    f"cluster={cluster}",
                ),
                f"User {row.user} is in the account {row.account} and not in that team: --remove takes it out.",
            )
    # An account was a team's where it has that team's QOS; no other is touched.
    for row in here:
        if (
            not row.user
            and row.account not in teams
            and row.default_qos == PREFIX + row.account
            and _plain(row.account)
        ):
            yield (
                ("sacctmgr", "-i", "delete", "account", "where", f"name={row.account}", f"cluster={cluster}"),
                f"Account {row.account} was a team's and is in the file no more: --remove deletes it.",
            )


def _plain(name: str) -> bool:
    """Whether a name of Slurm's can stand in a command as it is."""
    return re.fullmatch(r"[a-z0-9_][a-z0-9_.-]*", name) is not None


def _of(tres: str, gres: str) -> str:
    """The amount of a gres in text such as ``cpu=8,gres/gpu=16``."""
    return next((amount for name, _is, amount in (each.partition("=") for each in tres.split(",")) if name == gres), "")


def _rows(text: str, what: str, columns: Sequence[str]) -> Iterator[list[str]]:
    asked = f"give what `sacctmgr -nP show {what} format={','.join(columns)}` prints"
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split("|")
        if len(fields) != len(columns):
            raise Refusal(
                f"Line {number} of {what} is {printable(repr(line), 80)}, with {len(fields)} fields instead of "
                f"{len(columns)}: {asked}"
            )
        yield fields
