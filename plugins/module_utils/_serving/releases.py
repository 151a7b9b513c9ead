# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Releases of a served model: a folder each, and links that are moved in one step.

    releases/20261128T231500-3f9c1a2b/model         a copy of the model, or a link to its folder
    releases/20261128T231500-3f9c1a2b/release.json  what it was made of, and how its replicas run
    current, previous, canary                       links to releases
    before.json                                     where they led before a run that has not ended

A release is written beside its name and renamed when it is whole. A replica follows its link when it starts and not
afterwards, so that a link may move at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from .._files import nearest_folder, sync_folder, sync_tree, write_file
from .._printable import printable
from .._refusal import Refusal
from .folder import Model

CURRENT, PREVIOUS, CANARY = "current", "previous", "canary"
LINKS = (CURRENT, PREVIOUS, CANARY)
BEFORE = "before.json"
#: Left free behind a copy, in bytes.
SPARE = 2**30


def digest(model: str, replicas: Mapping[str, Any], copied: bool) -> str:
    """What a release is known by: the model's identity, how its replicas run, and whether it has a copy of its own."""
    text = json.dumps({"model": model, "replicas": replicas, "copied": copied}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Releases:
    """Those of one node, below a folder."""

    root: str

    def folder_of(self, name: str) -> str:
        """The folder of a release."""
        return os.path.join(self.root, "releases", name)

    def link(self, name: str) -> str:
        """The path of a link."""
        return os.path.join(self.root, name)

    def behind(self, name: str) -> str:
        """The release behind a link; empty where it leads to none."""
        try:
            found = os.path.basename(os.readlink(self.link(name)))
        except OSError:
            return ""
        return found if os.path.isfile(os.path.join(self.folder_of(found), "release.json")) else ""

    def links(self) -> dict[str, str]:
        """The release behind each link."""
        return {name: self.behind(name) for name in LINKS}

    def before(self) -> dict[str, str]:
        """Where the links led when all replicas last ran with theirs: before a run that was killed, else now."""
        try:
            with open(os.path.join(self.root, BEFORE), encoding="utf-8") as stream:
                known = json.load(stream)
            found = {name: str(known[name]) for name in LINKS}
        except (OSError, ValueError, LookupError, TypeError):
            return self.links()
        return {name: release if self.facts(release) else "" for name, release in found.items()}

    def begin(self, before: Mapping[str, str]) -> None:
        """Keep where the links lead before the first of them moves."""
        write_file(os.path.join(self.root, BEFORE), json.dumps(before, indent=1) + "\n")

    def end(self) -> None:
        """All replicas run with their releases."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self.root, BEFORE))

    def facts(self, name: str) -> Mapping[str, Any]:
        """What a release says of itself; empty for one that is not there or is broken."""
        try:
            with open(os.path.join(self.folder_of(name), "release.json"), encoding="utf-8") as stream:
                found = json.load(stream)
        except (OSError, ValueError):
            return {}
        return found if name and isinstance(found, dict) else {}

    def name_of(self, name: str) -> str:
        """The name by which a release is asked for; empty for none."""
        replicas = self.facts(name).get("replicas")
        first: object = next(iter(replicas.values()), {}) if isinstance(replicas, dict) else {}
        return str(first.get("probe", "")) if isinstance(first, dict) else ""

    def with_digest(self, wanted: str) -> str:
        """The newest release that was made of the same; empty without one."""
        names = sorted(self.names(), reverse=True)
        return next((name for name in names if self.facts(name).get("digest") == wanted), "")

    def with_identity(self, identity: str) -> str:
        """The newest release with a copy of this model; empty without one."""
        for name in sorted(self.names(), reverse=True):
            place = os.path.join(self.folder_of(name), "model")
            if self.facts(name).get("identity") == identity and os.path.isdir(place) and not os.path.islink(place):
                return name
        return ""

    def names(self) -> list[str]:
        """All whole releases."""
        try:
            return [name for name in os.listdir(os.path.join(self.root, "releases")) if not name.startswith(".")]
        except OSError:
            return []

    def point(self, name: str, release: str) -> None:
        """Move a link to a release, or take it away, in one step."""
        path = self.link(name)
        if not release:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        else:
            draft = f"{path}.new"
            with contextlib.suppress(FileNotFoundError):
                os.unlink(draft)
            os.symlink(os.path.join("releases", release), draft)
            os.replace(draft, path)
        sync_folder(self.root)

    def make(
        self, name: str, model: Model, facts: Mapping[str, Any], group: int, copy: Optional[Callable[[str, str], None]]
    ) -> None:
        """Write a release. ``copy`` copies one file; without it the model stays where it is."""
        draft = self.folder_of(f".{name}")
        shutil.rmtree(draft, ignore_errors=True)
        os.makedirs(draft, 0o750)
        place = os.path.join(draft, "model")
        try:
            if copy is None:
                os.symlink(os.path.realpath(model.path), place)
            else:
                os.mkdir(place, 0o750)
                for each in model.files:
                    target = os.path.join(place, each)
                    copy(os.path.join(model.path, each), target)
                    _give(target, 0o640, group)
                _give(place, 0o750, group)
            write_file(os.path.join(draft, "release.json"), json.dumps(facts, indent=1) + "\n", 0o640, group)
            _give(draft, 0o750, group)
            if copy is not None:
                sync_tree(draft)
            os.replace(draft, self.folder_of(name))
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        sync_folder(os.path.join(self.root, "releases"))

    def superfluous(self, keep: int, linked: Collection[str]) -> list[str]:
        """Releases beyond the newest ``keep`` that no link is to lead to, and drafts that a broken run has left."""
        linked = {*linked}
        old = sorted(name for name in self.names() if name not in linked)
        try:
            drafts = [name for name in os.listdir(os.path.join(self.root, "releases")) if name.startswith(".")]
        except OSError:
            drafts = []
        extra = max(0, len(linked - {""}) + len(old) - keep)
        return drafts + old[:extra]

    def remove(self, name: str) -> None:
        """Delete a release."""
        shutil.rmtree(self.folder_of(name), ignore_errors=True)


def _give(path: str, mode: int, group: int) -> None:
    os.chown(path, -1, group)
    os.chmod(path, mode)


def room_problem(root: str, model: Model, free: Optional[int] = None) -> str:
    """Why a copy of the model has no room below a folder; empty where it has."""
    left = shutil.disk_usage(nearest_folder(root)).free if free is None else free
    if left >= model.total_bytes + SPARE:
        return ""
    return (
        f"{printable(root)} has {_gib(left)} GiB free, and a copy of {printable(model.path)} takes "
        f"{_gib(model.total_bytes)} with {_gib(SPARE)} to spare: make room there, lower serving_keep, or set "
        "serving_copy to false to serve the folder where it is."
    )


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f}"


def ports_problem(release: str, facts: Mapping[str, Any], ports: Sequence[int], engine: str) -> str:
    """Why a release cannot run beside these replicas; empty where it can. It keeps the ports that it was made with."""
    made = facts.get("replicas") or {}
    other = str(facts.get("engine") or engine)
    if other != engine:
        return f"{printable(release)} was made for {printable(other)}, and serving_engine is {engine}: set that back."
    for number, port in enumerate(ports, 1):
        had = ((made.get(f"replica-{number}") or {}).get("health") or [None, None])[1]
        if had != port:
            known = [str((each.get("health") or [0, 0])[1]) for each in made.values()]
            return (
                f"{printable(release)} was made for {len(made)} replicas at the ports {printable(', '.join(known))}, "
                f"and serving_replicas and serving_replica_port say {', '.join(map(str, ports))}: set these back, "
                "or give serving_model the model that is wanted, without serving_canary and serving_rollback."
            )
    return ""


def refuse_rollback(releases: Releases) -> str:
    """The release to go back to, from a canary that of the others; ``Refusal`` where there is none."""
    before = releases.before()
    back = before[CURRENT] if before[CANARY] else before[PREVIOUS]
    if not back:
        raise Refusal(
            "There is no version before the one that is served, so nothing can be rolled back: set serving_model to "
            "the model that is wanted and run without serving_rollback."
        )
    return back
