# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A repository of restic (0.14 and later). Its content is encrypted.

A snapshot counts as whole where it has every file of its manifest in its size, whatever became of the run that made it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

from .._refusal import Refusal
from . import belonging, manifest, sftp
from .belonging import Snapshot
from .manifest import FOLDER, LINK, Manifest
from .moments import moment
from .process import command

TAG = "gaudi3-scale"
#: Of the tag that has the digest of a snapshot's manifest.
DIGEST = "manifest-"
#: Of the tags that say of which cluster and machine it is.
CLUSTER, MACHINE = "cluster-", "machine-"
#: Below a snapshot's folder.
ITEMS = "items"
_ABSENT = "Is there a repository at the following location"
#: What restic adds to that line also where the store is away or lets nobody in.
_AWAY = re.compile(r"dial |lookup |refused|unreachable|timeout|denied|forbidden|x509|EOF", re.IGNORECASE)
#: Why there is none, as the stores say it. A key that a store does not know "does not exist in our records".
_NOT_THERE = re.compile(r"does(?: not|n't) exist(?! in our records)|no such file|not found", re.IGNORECASE)
#: Bytes of a name that are no text, for each of which restic lists U+FFFD.
_NO_TEXT = re.compile("[\udc80-\udcff]")
_TYPES = {FOLDER: "dir", LINK: "symlink"}


@dataclass(frozen=True)
class Repository:
    """Where backups lie: a folder, or an address of restic such as `sftp:` and `s3:`."""

    address: str
    password: str = field(repr=False)
    environment: Mapping[str, str] = field(repr=False, default_factory=dict)
    """What the store asks for, such as AWS_ACCESS_KEY_ID."""
    executable: str = "restic"
    cache: str = ""
    ssh_key: str = field(repr=False, default="")
    """The private key for a store over SFTP; empty for what ssh has of its own."""
    ssh_known_hosts: str = ""
    """Lines with the host keys of such a store; empty for those that the machine knows."""
    cluster: str = ""
    """Of which cluster the backups are; empty where there is no other."""

    def check(self) -> None:
        """``Refusal`` of an address or a password that cannot be one, before anything is asked."""
        if not self.password:
            raise Refusal("the password of the repository is empty: give one, and keep it where the backup is not")
        if "\n" in self.password or "\0" in self.password:
            raise Refusal("the password of the repository has more than one line: give one line")
        if self.is_local:
            above = os.path.dirname(self.address.rstrip("/"))
            if not os.path.isdir(above):
                raise Refusal(f"{above}, the folder of the repository, is not there: mount or make it")
        elif ":" not in self.address:
            raise Refusal(
                f"repository is {self.address!r}: give an absolute path or an address of restic, such as "
                "sftp:backup@store:/srv/gaudi or s3:https://store/bucket"
            )
        belonging.check(self.cluster)
        sftp.check(self.address, self.ssh_key, self.ssh_known_hosts)

    @property
    def is_local(self) -> bool:
        """Whether it is a folder of this machine."""
        return os.path.isabs(self.address)

    def _restic(self, *arguments: str) -> tuple[int, str, str]:
        own = {"RESTIC_REPOSITORY": self.address, "RESTIC_PASSWORD": self.password}
        if self.cache:
            own["RESTIC_CACHE_DIR"] = self.cache
        reached = (self.address, self.ssh_key, self.ssh_known_hosts)
        with sftp.options(*reached) as more:
            argv = [self.executable, "--quiet", *more, *arguments]
            code, output, errors = command(argv, {**self.environment, **own})
        if code != 0 and _ABSENT not in errors:
            sftp.explain(*reached)
        # An address may have the password of a store.
        return code, output, errors.replace(self.address, "the repository").removeprefix("Fatal: ")

    def _ask(self, *arguments: str) -> str:
        code, output, errors = self._restic(*arguments)
        if code != 0:
            raise Refusal(f"restic {arguments[0]} failed: {errors or f'it ended with {code}'}")
        return output

    def snapshots(self, host: str) -> Optional[list[Snapshot]]:
        """Backups of all hosts of a name, the newest first; None where there is no repository."""
        code, output, errors = self._restic("snapshots", "--json", "--no-lock", "--tag", TAG, "--host", host)
        if code != 0 and _ABSENT in errors and _NOT_THERE.search(errors) and not _AWAY.search(errors):
            return None
        if code != 0:
            raise Refusal(f"the repository cannot be read: {errors or f'restic ended with {code}'}")
        listed = sorted(json.loads(output) or [], key=lambda each: moment(str(each["time"])), reverse=True)
        return [_snapshot(each) for each in listed if len(each["paths"]) == 1]

    def make(self) -> None:
        """Make it."""
        self._ask("init")

    def add(self, folder: str, host: str, digest: str, machine: str) -> str:
        """Store a folder of a machine; the name of the snapshot. ``Refusal`` where it would lack a file."""
        # A check or a prune that was killed has left its lock, which keeps everybody out. Locks in use stay.
        self._ask("unlock")
        of_machine = f",{MACHINE}{machine}" if machine else ""
        tags = ("--tag", f"{TAG},{DIGEST}{digest},{CLUSTER}{self.cluster}{of_machine}")
        code, output, errors = self._restic("backup", "--json", "--host", host, *tags, folder)
        last = output.strip().splitlines()[-1:] or ["{}"]
        name = str(_parsed(last[0]).get("snapshot_id", ""))
        if code == 0 and name:
            return name
        # 3: a snapshot was made, and lacks what could not be read.
        if name:
            self._restic("forget", name)
        raise Refusal(f"restic backup failed, and nothing was added: {errors or f'it ended with {code}'}")

    def manifest_of(self, snapshot: Snapshot) -> Optional[Manifest]:
        """What a snapshot says it has; None where it has no manifest."""
        code, output, _errors = self._restic("dump", "--no-lock", snapshot.name, f"{snapshot.folder}/{manifest.FILE}")
        return manifest.read(output, f"snapshot {snapshot.name}") if code == 0 else None

    def lacks(self, snapshot: Snapshot, wanted: Manifest) -> list[str]:
        """What of a manifest is not in a snapshot, or has another size."""
        found: set[tuple[str, str, int]] = set()
        for line in self._ask("ls", "--json", "--no-lock", snapshot.name).splitlines():
            node = _parsed(line)
            if node.get("struct_type") == "node":
                found.add((str(node["path"]), str(node["type"]), int(node.get("size", 0))))
        missing = []
        for entry in wanted.entries:
            path = f"{snapshot.folder}/{ITEMS}/{entry.item}" + (f"/{entry.path}" if entry.path else "")
            if (_NO_TEXT.sub("\ufffd", path), _TYPES.get(entry.kind, "file"), entry.size) not in found:
                missing.append(entry.shown)
        return missing

    def fetch(self, snapshot: Snapshot, folder: str) -> str:
        """Copy a snapshot below a folder; where its own folder then lies."""
        self._ask("restore", "--no-lock", snapshot.name, "--target", folder)
        return folder + snapshot.folder

    def forget(self, host: str, keep: Mapping[str, int]) -> None:
        """Remove what retention no longer keeps of one host, and the locks of runs that were killed.

        What another cluster has under the same name is not counted and stays. ``Refusal`` where nobody can tell.
        """
        kept = [part for name, count in keep.items() if count > 0 for part in (f"--keep-{name}", str(count))]
        if not kept:
            raise Refusal("nothing says what is kept: give at least one of last, daily, weekly and monthly above 0")
        known = self.snapshots(host) or []
        belonging.refuse_two_machines(belonging.own(known, self.cluster), host)
        self._ask("unlock")
        others = any(each.cluster != self.cluster for each in known)
        tag = f"{TAG},{CLUSTER}{self.cluster}" if others else TAG
        self._ask("forget", "--tag", tag, "--host", host, "--group-by", "host", *kept, "--prune")

    def examine(self, share: str) -> None:
        """Have restic check its structure, and read that share of its data (such as 5%)."""
        self._ask("check", *([f"--read-data-subset={share}"] if share else []))


def _snapshot(listed: Mapping[str, Any]) -> Snapshot:
    digest, cluster, machine = (_of_tag(listed.get("tags") or [], begin) for begin in (DIGEST, CLUSTER, MACHINE))
    name = str(listed.get("short_id") or listed["id"])
    place = (str(listed["time"]), str(listed["hostname"]), str(listed["paths"][0]))
    return Snapshot(name, *place, digest, cluster, machine)


def _of_tag(tags: Sequence[str], begin: str) -> str:
    return next((tag[len(begin) :] for tag in tags if tag.startswith(begin)), "")


def _parsed(line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
