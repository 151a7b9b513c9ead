# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The list of all that a backup has. The same content gives the same text, whenever it was read."""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from .._printable import printable
from .._refusal import Refusal

#: Layout of a backup. Another one is refused, as nobody knows what would be missing.
LAYOUT = 1
#: Of the collection, for who has to have the one that made a backup.
VERSION = "0.1.0"
FILE = "manifest.json"
FOLDER, PLAIN, LINK = "folder", "file", "link"
_DIGEST = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[A-Za-z0-9._+@:,=~-]{1,255}")
#: Of users and groups, which a domain names as it likes.
_OWNER = re.compile(r"[^\s:/\0](?:[^\n:/\0]{0,253}[^\s:/\0])?")


class Entry(NamedTuple):
    """One file, folder or symbolic link of an item; ``path`` is below the item, and empty for the item itself."""

    item: str
    path: str
    kind: str
    mode: int
    owner: str
    group: str
    size: int = 0
    content: str = ""
    """SHA-256 of a file, or where a link leads."""

    @property
    def shown(self) -> str:
        """Its place for people, as one line that may be shown: users name files as they like."""
        return printable(f"{self.item}/{self.path}" if self.path else self.item, 4096)


@dataclass(frozen=True)
class Manifest:
    """All that a backup has of one machine."""

    host: str
    kinds: tuple[str, ...]
    items: Mapping[str, Mapping[str, str]]
    """By name: the path on the machine that it was read of, and the way it was read."""
    versions: Mapping[str, str]
    """Of the programs whose data it is."""
    entries: tuple[Entry, ...]
    made_by: str = VERSION
    """Of which version of the collection it is."""

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(entry.size for entry in self.entries)

    def of(self, item: str) -> list[Entry]:
        """The entries of one item."""
        return [entry for entry in self.entries if entry.item == item]


def write(manifest: Manifest) -> str:
    """The text of a manifest."""
    told = {
        "layout": LAYOUT,
        "host": manifest.host,
        "kinds": sorted(manifest.kinds),
        "items": {name: dict(about) for name, about in manifest.items.items()},
        "versions": dict(manifest.versions),
        "entries": [entry._asdict() for entry in sorted(manifest.entries)],
        **({"made_by": manifest.made_by} if manifest.made_by else {}),
    }
    return json.dumps(told, indent=1, sort_keys=True) + "\n"


def digest(manifest: Manifest) -> str:
    """By which two backups are known to have the same content, whichever version of the collection made them."""
    return hashlib.sha256(write(replace(manifest, made_by="")).encode()).hexdigest()


def read(text: str, where: str) -> Manifest:
    """A manifest from its text; ``Refusal`` of what is none, and of another layout."""
    try:
        told = json.loads(text)
        layout = told["layout"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Refusal(f"{where} has no manifest that can be read: restore another snapshot") from None
    if layout != LAYOUT:
        later = isinstance(layout, int) and layout > LAYOUT
        made_by = f"version {printable(told['made_by'], 40)}" if "made_by" in told else "the version that made it"
        raise Refusal(
            f"{where} has layout {layout!r}, and this version of gaudi3.scale reads layout {LAYOUT}: "
            + (f"install {made_by}, or a later one" if later else f"restore it with {made_by}")
        )
    try:
        entries = tuple(_entry(each) for each in told["entries"])
        items = {
            str(name): {"path": str(about["path"]), "way": str(about["way"])} for name, about in told["items"].items()
        }
        versions = {str(name): str(version) for name, version in told["versions"].items()}
        made_by = str(told.get("made_by", ""))
        found = Manifest(str(told["host"]), tuple(map(str, told["kinds"])), items, versions, entries, made_by)
        places = [(entry.item, entry.path) for entry in entries]
        folders = {(entry.item, entry.path) for entry in entries if entry.kind == FOLDER}
        above = {(entry.item, posixpath.dirname(entry.path)) for entry in entries if entry.path}
        # A file below a link would be written where that leads.
        if not above <= folders or len({*places}) != len(places) or {entry.item for entry in entries} != {*items}:
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Refusal(f"{where} has a manifest that is damaged: restore another snapshot") from None
    return found


def _entry(listed_entry: Mapping[str, Any]) -> Entry:
    entry = Entry(**listed_entry)
    below = entry.path.split("/") if entry.path else []
    sound = (
        _NAME.fullmatch(entry.item) is not None
        and not {"", ".", ".."} & {*below}
        and entry.item not in (".", "..")
        and not posixpath.isabs(entry.path)
        and "\0" not in entry.path
        and entry.kind in (FOLDER, PLAIN, LINK)
        and isinstance(entry.mode, int)
        and not isinstance(entry.mode, bool)
        and 0 <= entry.mode <= 0o7777
        and isinstance(entry.size, int)
        and not isinstance(entry.size, bool)
        and entry.size >= 0
        and isinstance(entry.content, str)
        and all(
            isinstance(each, str) and each.isprintable() and _OWNER.fullmatch(each)
            for each in (entry.owner, entry.group)
        )
        and (entry.kind != PLAIN or _DIGEST.fullmatch(entry.content))
    )
    if not sound:
        raise ValueError(entry.path)
    return entry


def differences(wanted: Iterable[Entry], found: Iterable[Entry]) -> list[str]:
    """How the second differs from the first, each in one clause that names the place; empty where all is the same."""
    before = {(entry.item, entry.path): entry for entry in wanted}
    after = {(entry.item, entry.path): entry for entry in found}
    said = [f"{entry.shown} is missing" for place, entry in before.items() if place not in after]
    said += [f"{entry.shown} is not in the backup" for place, entry in after.items() if place not in before]
    for place in before.keys() & after.keys():
        said += _difference(before[place], after[place])
    return sorted(said)


def _difference(wanted: Entry, found: Entry) -> list[str]:
    if wanted.kind != found.kind:
        return [f"{wanted.shown} is a {found.kind}, and was a {wanted.kind}"]
    if wanted.kind == LINK:
        return [] if wanted.content == found.content else [f"{wanted.shown} leads elsewhere"]
    said = []
    if wanted.size != found.size:
        said.append(f"{wanted.shown} has {found.size} bytes, and had {wanted.size}")
    elif wanted.content != found.content:
        said.append(f"{wanted.shown} has another content")
    if wanted.mode != found.mode:
        said.append(f"{wanted.shown} has mode {found.mode:04o}, and had {wanted.mode:04o}")
    if (wanted.owner, wanted.group) != (found.owner, found.group):
        said.append(f"{wanted.shown} belongs to {found.owner}:{found.group}, and did to {wanted.owner}:{wanted.group}")
    return said


def listed(manifest: Manifest | None) -> str:
    """For a diff: a line for each entry, without a word of what is in it."""
    if manifest is None:
        return ""
    lines = (
        f"{entry.mode:04o} {entry.owner}:{entry.group} {entry.size:>10} "
        f"{entry.content[:12] if entry.kind == PLAIN else entry.kind} {entry.shown}\n"
        for entry in sorted(manifest.entries)
    )
    return "".join(lines)
