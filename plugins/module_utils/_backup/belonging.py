# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Which snapshots of a host are this cluster's: another one may have a host of that name, and the same repository."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from typing import NamedTuple, Optional

from .._printable import few, printable
from .._refusal import Refusal

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
#: Whoever reads a repository is not to learn the identifier of a machine, which other programs keep to themselves.
_SALT = b"gaudi3-scale backup\n"


class Snapshot(NamedTuple):
    """One backup, as restic lists it."""

    name: str
    time: str
    host: str
    folder: str
    digest: str
    cluster: str = ""
    """Empty where none was named."""
    machine: str = ""
    """Of which machine it is, as ``machine_of`` has it; empty where that is not known."""


def check(cluster: str) -> None:
    """``Refusal`` of what cannot be a cluster's name."""
    if cluster and not _NAME.fullmatch(cluster):
        raise Refusal(f"cluster is {printable(cluster, 80)!r}: give letters, digits, dots, hyphens and underscores")


def machine_of(root: str) -> str:
    """What tells this machine from others of its name; empty where nothing does."""
    try:
        with open(os.path.join(root, "etc/machine-id"), "rb") as stream:
            found = stream.read(200).strip()
    except OSError:
        return ""
    return hashlib.sha256(_SALT + found).hexdigest()[:12] if found else ""


def own(known: Sequence[Snapshot], cluster: str) -> list[Snapshot]:
    """Those of this cluster, of which a new one is the next."""
    return [each for each in known if each.cluster == cluster]


def in_turn(mine: Sequence[Snapshot]) -> Optional[tuple[Snapshot, Snapshot]]:
    """The newest snapshot, and one of another machine that has written in turn with its own; None where none has.

    A machine that took the place of a lost one has no earlier ones. ``mine`` has the newest first.
    """
    of = [each for each in mine if each.machine]
    other = next((each for each in of if each.machine != of[0].machine), None)
    if other and of[0].machine in [each.machine for each in of[of.index(other) :]]:
        return of[0], other
    return None


def refuse_two_machines(mine: Sequence[Snapshot], host: str) -> None:
    """Refuse to remove backups where two machines have made them: one's would count as the other's."""
    both = in_turn(mine)
    if both:
        raise Refusal(
            f"the backups of {host} are of two machines in turn, such as {both[0].name} and {both[1].name}, and none "
            "is removed: name the cluster of each (cluster, or backup_cluster of the role), or give each a repository "
            "of its own"
        )


def meant(known: Sequence[Snapshot], cluster: str, host: str) -> list[Snapshot]:
    """The snapshots of which the newest may be restored; ``Refusal`` where it could be another cluster's."""
    mine = own(known, cluster)
    clusters = sorted({printable(each.cluster, 80) for each in known if each.cluster})
    if clusters and not cluster:
        raise Refusal(
            f"the repository has backups of {host} of the cluster{'s' * (len(clusters) > 1)} {few(clusters)}: say "
            "which is meant by cluster (backup_cluster), or name a snapshot"
        )
    if known and not mine and clusters:
        raise Refusal(
            f"the repository has no backup of {host} of the cluster {cluster}, but of {few(clusters)}: correct cluster "
            "(backup_cluster), or name a snapshot"
        )
    if known and not mine:
        raise Refusal(
            f"no backup of {host} says of which cluster it is: see which one is of {cluster}, and name it as snapshot "
            f"({few([each.name for each in known])})"
        )
    both = in_turn(mine)
    if both:
        raise Refusal(
            f"the backups of {host} are of two machines in turn, such as {both[0].name} and {both[1].name}: see which "
            "one is of yours, and name it as snapshot"
        )
    return mine


def refuse_other(named: Snapshot, cluster: str) -> None:
    """Refuse a snapshot that somebody named and that says to be of another cluster."""
    if cluster and named.cluster not in ("", cluster):
        raise Refusal(
            f"snapshot {named.name} is of the cluster {printable(named.cluster, 80)}, and cluster is {cluster}: "
            "correct one of them"
        )
