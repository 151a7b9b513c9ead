# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A backup put back, each item whole or not at all, and every entry of it compared afterwards."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .._files import sync_file, sync_folder, sync_tree
from .._printable import few, printable
from .._refusal import Refusal
from . import belonging, databases, manifest
from .belonging import Snapshot
from .kinds import PROGRAMS, SERVERS, SQL, SQLITE, Item
from .manifest import Entry, Manifest
from .moments import refuse_later
from .place import check, opened, private
from .process import command
from .repository import ITEMS, Repository
from .room import check_room
from .saving import alone, apart, entries_of, path_of, versions
from .tree import is_empty, numbers_of, put, remove, scan
from .versions import refusal, server_refusal

#: A draft beside the place of an item, until it is whole.
DRAFT = ".gaudi3-restore"


class Restored(NamedTuple):
    """What a run did, or would do."""

    snapshot: Snapshot
    items: list[str]
    """Names of those that were not as in the backup."""
    kept: list[str]
    """Where what was there before lies now."""
    skipped: list[str]
    """Newer snapshots, which are not whole."""
    wrong: list[str]
    """Differences before."""


def choose(repository: Repository, host: str, wanted: str) -> tuple[Snapshot, Manifest, list[str]]:
    """The snapshot that is restored: the newest whole one, or one by its name.

    ``Refusal`` where there is none or it could be another cluster's, and of one that is named and not whole or has
    another layout.
    """
    known = repository.snapshots(host)
    if known is None:
        raise Refusal("there is no repository: give the one that the backups were made in")
    if wanted != "latest":
        named = [each for each in known if each.name.startswith(wanted) or wanted.startswith(each.name)]
        if len(named) != 1:
            raise Refusal(
                f"snapshot is {wanted!r}: give latest or one of {few([each.name for each in known]) or 'none'}, which "
                f"{host} has"
            )
        belonging.refuse_other(named[0], repository.cluster)
        known = named
    else:
        known = belonging.meant(known, repository.cluster, host)
        if known:
            refuse_later(known[0].name, known[0].time, time.time(), "give the snapshot that is meant by its name")
    skipped: list[str] = []
    for snapshot in known:
        found = repository.manifest_of(snapshot)
        if found is not None and found.host == host and not repository.lacks(snapshot, found):
            return snapshot, found, skipped
        skipped.append(snapshot.name)
    if skipped:
        raise Refusal(
            f"no snapshot of {host} is whole, which {few(skipped)} would have to be: look for an older repository"
        )
    raise Refusal(f"the repository has no backup of {host}: give host, as it was called when it was backed up")


class _Plan(NamedTuple):
    items: list[Item]
    """Those that have to be put back."""
    wrong: list[str]


def _plan(
    found: Manifest, items: Sequence[Item], folder: str, root: str, overwrite: bool, fetched: Callable[[], str]
) -> _Plan:
    known = {item.name: item for item in items}
    unknown = sorted({*found.items} - {*known})
    if unknown:
        paths = ", ".join(found.items[name]["path"] for name in unknown)
        raise Refusal(
            f"the backup has {few(unknown)} ({printable(paths)}), for which no place is named here: give kinds, "
            "folders and paths as they were when it was made"
        )
    restored: list[Item] = []
    wrong: list[str] = []
    for name in found.items:
        item = known[name]
        if item.way != found.items[name]["way"]:
            raise Refusal(f"the backup of {name} was read as {found.items[name]['way']}, and is {item.way} here")
        differences = _differences(item, found, folder, root, fetched)
        if not differences:
            continue
        if not (_is_empty(item, root) or overwrite):
            raise Refusal(
                f"{path_of(root, item)} is not empty, and differs from the backup ({differences[0]}): move it away, or "
                "give overwrite, which keeps it under a dated name"
            )
        restored.append(item)
        wrong += differences
    return _Plan(restored, wrong)


def _differences(item: Item, found: Manifest, folder: str, root: str, fetched: Callable[[], str]) -> list[str]:
    """How what the machine has of an item differs from the backup.

    Another version of mariadb-dump writes the same rows in other bytes: then the backup's own dump is looked at.
    """
    wanted = found.of(item.name)
    if item.way != SQL:
        return manifest.differences(wanted, _present(item, folder, root))
    draft = os.path.join(folder, "compared")
    try:
        present = entries_of(item, root, draft)
        said = manifest.differences(wanted, present)
        if said and present:
            same = databases.rows_of(draft) == databases.rows_of(os.path.join(fetched(), ITEMS, item.name))
            return [] if same else said
        return said
    finally:
        remove(draft)


def _present(item: Item, folder: str, root: str) -> list[Entry]:
    """What the machine has of an item, read as it is for a backup where that is a database of SQLite."""
    if item.way != SQLITE:
        return scan(path_of(root, item), item.name)
    draft = os.path.join(folder, "compared")
    try:
        return entries_of(item, root, draft)
    except Refusal:
        return scan(path_of(root, item), item.name)
    finally:
        remove(draft)


def _is_empty(item: Item, root: str) -> bool:
    if item.way == SQL:
        return not databases.sql_tables(item.path)
    where = path_of(root, item)
    return is_empty(where) and not (item.way == SQLITE and _beside(where))


def _beside(where: str) -> list[str]:
    return [where + end for end in databases.BESIDE if os.path.lexists(where + end)]


def restore(
    repository: Repository,
    items: Sequence[Item],
    folder: str,
    root: str,
    host: str,
    wanted: str,
    overwrite: bool,
    dry: bool,
) -> Restored:
    """Put back what differs; ``Refusal`` before anything changes where something stands in the way.

    What is replaced is kept beside it. A run that was killed is made up for by the next one.
    """
    repository.check()
    apart(items, root, folder, repository)
    with alone(folder, dry) as copy:
        snapshot, found, skipped = choose(repository, host, wanted)

        def room() -> list[tuple[str, int]]:
            """For what has yet to come: to compare a database, the backup may be here already."""
            return [] if os.path.isdir(copy + snapshot.folder) else [(folder, found.size)]

        def fetch() -> str:
            check_room(room())
            return repository.fetch(snapshot, copy) if room() else copy + snapshot.folder

        plan = _plan(found, items, copy, root, overwrite, fetch)
        _admit(found, plan.items, root, dry)
        if plan.items:
            sizes = {item: sum(entry.size for entry in found.of(item.name)) for item in plan.items}
            places = [(path_of(root, item), size) for item, size in sizes.items() if item.way != SQL]
            check_room([*room(), *places])
        if not dry:
            _sweep(items, root)
        if dry or not plan.items:
            return Restored(snapshot, [item.name for item in plan.items], [], skipped, plan.wrong)
        fetched = fetch()
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        for item in plan.items:
            _compare_content(item, found, os.path.join(fetched, ITEMS, item.name))
        kept: list[str] = []
        for item in plan.items:
            kept += _put(item, found.of(item.name), os.path.join(fetched, ITEMS, item.name), root, folder, stamp)
        left = [each for item in plan.items for each in _differences(item, found, copy, root, fetch)]
    if left:
        raise Refusal(f"what was restored differs from the backup: {few(left, 10)}; see that nothing writes there")
    return Restored(snapshot, [item.name for item in plan.items], kept, skipped, plan.wrong)


def _sweep(items: Sequence[Item], root: str) -> None:
    """Remove the drafts that a killed run has left, also of items which are as in the backup by now."""
    for item in items:
        above, name = os.path.split(path_of(root, item))
        if item.way != SQL and os.path.lexists(os.path.join(above, f".{name}{DRAFT}")):
            with opened(above) as folder:
                remove(os.path.join(folder, f".{name}{DRAFT}"))


def _admit(found: Manifest, items: Sequence[Item], root: str, dry: bool) -> None:
    """Refuse an older program, owners that nobody knows, a mount, and a service that runs."""
    present = versions([item.name for item in items], root)
    servers = {kept: name for name, kept in SERVERS.items()}
    for name, version in present.items():
        wanted = found.versions.get(name, "")
        if name in servers:
            said = server_refusal(servers[name], version, wanted)
        else:
            said = refusal(name, PROGRAMS[name][0], version, wanted)
        if said:
            raise Refusal(said)
    for item in items:
        if item.way == SQL:
            continue
        for entry in found.of(item.name):
            numbers = numbers_of(entry)
            if os.geteuid() not in (0, numbers[0]):
                raise Refusal(f"{entry.shown} is of the user {entry.owner}: run this as that user or as root")
        check(os.path.dirname(path_of(root, item)))
        if os.path.ismount(path_of(root, item)):
            raise Refusal(
                f"{path_of(root, item)} is a mount, in whose place nothing can be put: unmount it, restore, and move "
                "what was restored to its disk"
            )
        if item.unit and root == "/" and not dry and command(["systemctl", "--quiet", "is-active", item.unit])[0] == 0:
            raise Refusal(f"{item.unit} runs, and would write over what is restored: stop it first")


def _compare_content(item: Item, found: Manifest, fetched: str) -> None:
    """Refuse a file out of the repository that is not the one of the manifest."""
    wanted = {(entry.path, entry.kind, entry.size, entry.content) for entry in found.of(item.name)}
    there = {(entry.path, entry.kind, entry.size, entry.content) for entry in scan(fetched, item.name)}
    for path, *_rest in sorted(wanted - there):
        raise Refusal(
            f"the repository has another content of {item.name}/{path} than its manifest: run restic check "
            "--read-data, and restore an older snapshot"
        )


def _put(item: Item, entries: Sequence[Entry], fetched: str, root: str, folder: str, stamp: str) -> list[str]:
    """Put one item in its place; where what was there before is kept."""
    where = path_of(root, item)
    if item.way == SQL:
        kept = _kept_dump(item, folder, root, stamp)
        databases.put_sql(where, fetched)
        return kept
    above, name = os.path.split(where)
    kept = []
    with opened(above) as folder, private(folder, f".{name}{DRAFT}", f"{above}/.{name}{DRAFT}") as draft:
        made, target = os.path.join(draft, "item"), os.path.join(folder, name)
        put(fetched, made, entries)
        if not os.path.islink(made):
            sync_tree(made)
        if is_empty(target):
            remove(target)
        else:
            kept.append(_aside(target, stamp))
        for other in _beside(target) if item.way == SQLITE else ():
            kept.append(_aside(other, stamp))
        os.rename(made, target)
        sync_folder(folder)
    return [os.path.join(above, os.path.basename(each)) for each in kept]


def _aside(where: str, stamp: str) -> str:
    kept = f"{where}.before-{stamp}"
    os.rename(where, kept)
    return kept


def _kept_dump(item: Item, folder: str, root: str, stamp: str) -> list[str]:
    kept = os.path.join(folder, f"{item.path}.before-{stamp}.sql")
    if not databases.sql_tables(item.path):
        return []
    entries_of(item, root, kept)
    sync_file(kept)  # what is dropped next is in no other place
    return [kept]
