"""Advisories as OSV records, from files, folders and archives that the owner brings; nothing is asked for."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from gaudi3_deploy import given_file
from gaudi3_deploy.collection._printable import printable
from gaudi3_deploy.errors import UsageError
from gaudi3_deploy.holes import order
from gaudi3_deploy.messages import reason

#: How versions of an ecosystem are compared, by its name without the release behind a colon.
ORDERS: Mapping[str, order.Key] = {
    "PyPI": order.pypi,
    **dict.fromkeys(("Debian", "Ubuntu"), order.debian),
    **dict.fromkeys(("Red Hat", "Rocky Linux", "AlmaLinux"), order.rpm),
}
#: No record is longer; a file that is has been made to fill the memory.
_LONGEST = 16 << 20


@dataclass(frozen=True)
class Affected:
    """Versions of one package that an advisory is about."""

    ecosystem: str
    name: str
    """As the index writes it."""
    versions: tuple[str, ...]
    ranges: tuple[tuple[tuple[str, str], ...], ...]
    """Each of its events: introduced, fixed, last_affected or limit, with a version."""

    def reaches(self, version: str) -> bool | None:
        """Whether a version is among them; None where this cannot be said."""
        key = ORDERS.get(self.ecosystem.partition(":")[0])
        if key is None:
            return None
        try:
            mine = key(version)
            if any(_same(key, mine, each) for each in self.versions):
                return True
            found = [_within(key, mine, events) for events in self.ranges]
        except ValueError:
            return None
        if True in found:
            return True
        return None if None in found or not (found or self.versions) else False


@dataclass(frozen=True)
class Advisory:
    """One record."""

    id: str
    aliases: tuple[str, ...]
    summary: str
    withdrawn: bool
    affected: tuple[Affected, ...]
    modified: str = ""
    """When it was last changed, as RFC 3339 in UTC, by whose letters two of one id are ordered."""

    @property
    def names(self) -> frozenset[str]:
        """All that it is known by."""
        return frozenset({self.id, *self.aliases})

    @property
    def malicious(self) -> bool:
        """Whether it says that a package was made to do harm."""
        return any(name.startswith("MAL-") for name in self.names)


def _same(key: order.Key, mine: Any, text: str) -> bool:
    try:
        return bool(key(text) == mine)
    except ValueError:
        return False  # an old name of a release that is no version


def _within(key: order.Key, mine: Any, events: Sequence[tuple[str, str]]) -> bool | None:
    """Whether a version is in a range; None where that does not say where it begins, as OSV asks of each."""
    if not any(kind == "introduced" for kind, _text in events):
        return None
    inside = begun = any(event == ("introduced", "0") for event in events)  # before all versions
    listed = [(kind, key(text)) for kind, text in events if text not in ("0", "*")]  # * is no limit
    listed.sort(key=lambda event: event[1])
    for _bound, group in groupby(listed, key=lambda event: event[1]):
        # Of a version that ends one part of the range and begins another, what is open ends first.
        for kind, bound in sorted(group, key=lambda event: (event[0] == "introduced") == begun):
            begun = kind == "introduced"
            if begun:
                inside = inside or mine >= bound
            elif mine > bound if kind == "last_affected" else mine >= bound:
                inside = False
    return inside


def read(sources: Sequence[Path]) -> list[Advisory]:
    """All records of files, folders and zip archives, each once: of one id, the one that was changed last.

    Raises:
        UsageError: A file cannot be read, or is no OSV record, or a source has none.
    """
    found: dict[str, Advisory] = {}
    for source in sources:
        none = True
        for name, content in _contents(source):
            none = False
            for record in _records(name, content):
                known = found.get(record.id)
                if known is None or record.modified >= known.modified:
                    found[record.id] = record
        if none:  # else nothing known would look like nothing wrong
            raise UsageError(f"{source} has no OSV record: give JSON files, zip archives, or a folder of them.")
    return [found[name] for name in sorted(found)]


def _contents(source: Path) -> Iterator[tuple[str, bytes]]:
    try:
        if source.is_dir():
            for path in sorted(path for ending in ("json", "zip") for path in source.rglob(f"*.{ending}")):
                yield from _contents(path)
            return
        with given_file.opened(source) as file:
            if not (file.seekable() and zipfile.is_zipfile(file)):
                if file.seekable():
                    file.seek(0)
                yield printable(source), file.read()
                return
            with zipfile.ZipFile(file) as archive:
                for info in archive.infolist():
                    if info.filename.endswith(".json"):
                        if info.file_size > _LONGEST:
                            raise UsageError(f"{source} has {printable(info.filename)} of {info.file_size} bytes.")
                        yield f"{source}: {printable(info.filename)}", archive.read(info)
    except (OSError, zipfile.BadZipFile, zlib.error, RuntimeError) as error:  # RuntimeError: encrypted, or packed oddly
        raise UsageError(
            f"{source} cannot be read ({reason(error)}): give OSV records as JSON, a folder or a zip."
        ) from error


def _records(name: str, content: bytes) -> Iterator[Advisory]:
    try:
        found = json.loads(content)
        for each in found if isinstance(found, list) else [found]:
            yield _advisory(each)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(f"{name} is no OSV record ({printable(repr(error), 120)}): take it out.") from error


def _advisory(record: Mapping[str, Any]) -> Advisory:
    affected = []
    for each in record.get("affected") or ():
        package = each.get("package") or {}
        ranges = [
            tuple((str(kind), str(text)) for event in one.get("events") or () for kind, text in event.items())
            for one in each.get("ranges") or ()
            if one.get("type") in ("ECOSYSTEM", "SEMVER")
        ]
        odd = {kind for events in ranges for kind, _text in events} - {"introduced", "fixed", "last_affected", "limit"}
        if odd:
            raise ValueError(f"it has the events {', '.join(sorted(odd))}")
        if package.get("name") and package.get("ecosystem"):
            versions = tuple(map(str, each.get("versions") or ()))
            affected.append(Affected(str(package["ecosystem"]), str(package["name"]), versions, tuple(ranges)))
    summary = record.get("summary") or str(record.get("details") or "").partition("\n")[0]
    # A distribution's record of one hole names that as its upstream; a notice of several is none of them.
    upstream = record.get("upstream") or ()
    aliases = tuple(map(str, [*(record.get("aliases") or ()), *(upstream if len(upstream) == 1 else ())]))
    return Advisory(
        str(record["id"]),
        aliases,
        printable(str(summary), 200),
        bool(record.get("withdrawn")),
        (*affected,),
        str(record.get("modified") or ""),
    )
