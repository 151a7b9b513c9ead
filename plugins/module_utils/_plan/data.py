# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What role data brings to a node: sets of training data, their mounts, and files of the controller."""

from __future__ import annotations

import base64
import os.path
import re
from collections.abc import Iterator, Mapping
from typing import Any

from .._data.index import check_key
from .._data.remote import is_secret
from .._printable import printable
from .._refusal import Refusal
from .given import entries, listed, size_in_bytes
from .model import Values

OPTIONS = "ro,nosuid,nodev,noexec"
_PATH = re.compile(r"(/[A-Za-z0-9_][A-Za-z0-9._-]*)+")
_SHARE = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9][A-Za-z0-9._-]*):/[^\s%\\\"']*")
_WORDS = re.compile(r"[A-Za-z0-9._=,:/-]+")
_HEADER = "# Written by the role gaudi3.scale.data; its next run overwrites what is changed here.\n"


def unit_of(path: str) -> str:
    r"""The mount unit of a path, as systemd names it: ``/mnt/a-b`` is ``mnt-a\x2db.mount`` (systemd.unit(5))."""
    return path.strip("/").replace("-", r"\x2d").replace("/", "-") + ".mount"


def unit_text(mount: Mapping[str, Any]) -> str:
    """The unit that mounts a share, now and at each boot."""
    path = mount["path"]
    return (
        f"{_HEADER}[Unit]\nDescription=Training data at {path}\n"
        "Wants=network-online.target\nAfter=network-online.target\n"
        f"\n[Mount]\nWhat={mount['source']}\nWhere={path}\nType=nfs\nOptions={mount.get('options') or OPTIONS}\n"
        "TimeoutSec=90\n\n[Install]\nWantedBy=remote-fs.target\n"
    )


def budget(values: Values) -> int:
    """Bytes that all sets may take; 0 for no limit, and -1 for what is no size."""
    given = values("data_budget") or ""
    found = size_in_bytes(given)
    return found if found is not None else -1 if given else 0


def _sets(values: Values) -> list[dict[str, Any]]:
    """The sets, those first that go, and what of the role has to be there before each can be read."""
    found = [
        {
            "source": str(each.get("source", "")).rstrip("/"),
            "remote": str(each.get("remote") or ""),
            "state": str(each.get("state") or "present"),
            "origin": "remote" if each.get("remote") else _origin(values, str(each.get("source", ""))),
        }
        for each in map(entries, listed(values("data_sets")))
    ]
    return sorted(found, key=lambda each: str(each["state"]))


def _origin(values: Values, source: str) -> str:
    """Which of the role's tasks brings a folder of the node: mount, files, or none."""
    if any(source.startswith(mount["path"] + "/") for mount in _mounts(values)):
        return "mount"
    copied = (str(entries(each).get("path", "")).rstrip("/") for each in listed(values("data_files")))
    return "files" if any(path and (source + "/").startswith(path + "/") for path in copied) else ""


def _mounts(values: Values) -> list[Mapping[str, Any]]:
    return [
        {**entries(each), "path": str(entries(each).get("path", "")).rstrip("/")}
        for each in listed(values("data_mounts"))
    ]


def _in_fstab(values: Values) -> set[str]:
    """Where the site mounts something itself."""
    text = entries(values("_data_fstab")).get("content", "")
    lines = base64.b64decode(text).decode("utf-8", "replace").splitlines() if isinstance(text, str) else []
    return {
        line.split()[1].rstrip("/") for line in lines if len(line.split()) > 1 and not line.lstrip().startswith("#")
    }


def _problems(values: Values) -> Iterator[str]:
    """What cannot work, each in one sentence."""
    directory = str(values("data_dir"))
    if not _PATH.fullmatch(directory.rstrip("/")):
        yield f"data_dir is {directory!r}: give an absolute path of letters, digits, dots, hyphens and underscores."
    if budget(values) < 0:
        yield (
            f'data_budget is "{values("data_budget")}": write a number and one of M, G and T, such as 2T, or leave it '
            "empty."
        )
    yield from _problems_of_sets(values)
    yield from _problems_of_mounts(values)
    for each in map(entries, listed(values("data_files"))):
        if not str(each.get("path", "")).startswith("/"):
            yield f"data_files has the path {each.get('path')!r}: give an absolute one, which it has on the nodes."
    yield from _problems_of_twins(values)


def _problems_of_twins(values: Values) -> Iterator[str]:
    """Of two mounts or files at one place, the second would undo the first in every run."""
    mounts = [mount["path"] for mount in _mounts(values)]
    files = [
        (str(each.get("path", "")), str(each.get("source", ""))) for each in map(entries, listed(values("data_files")))
    ]
    # What is in two folders may come into one, and files of other names into a folder that is there.
    places = [(path.rstrip("/"), os.path.basename(source)) for path, source in files if not source.endswith("/")]
    if again := next((path for path in mounts if mounts.count(path) > 1), ""):
        yield f"data_mounts has the path {again} twice: keep one of them."
    if again := next((place[0] for place in places if places.count(place) > 1), ""):
        yield f"data_files has the path {again} twice: keep one of them."


def _in_each_other(one: str, other: str) -> bool:
    """Whether one of two folders is or holds the other one; not for a path that is refused, as it is not absolute."""
    return os.path.isabs(one) and os.path.isabs(other) and os.path.commonpath([one, other]) in (one, other)


def _problems_of_sets(values: Values) -> Iterator[str]:
    remotes, names = entries(values("data_remotes")), list[str]()
    directory = str(values("data_dir")).rstrip("/")
    for each in _sets(values):
        source, remote = each["source"], each["remote"]
        try:
            names.append(check_key(os.path.basename(source)))
        except Refusal as refusal:
            yield f"data_sets: {refusal}"
        if remote and remote not in remotes:
            known = ", ".join(map(str, remotes)) or "none"
            yield f"data_sets has the remote {remote} for {source}, and data_remotes has {known}: describe it there."
        elif remote and not entries(remotes[remote]).get("type"):
            yield f"data_remotes has no type for {remote}: give the kind of store as rclone names it, such as s3."
        if not remote and not source.startswith("/"):
            yield f"data_sets has the source {source}: give an absolute path, or the name of its store as remote."
        elif not remote and each["state"] == "present" and _in_each_other(source, directory):
            yield (
                f"data_sets has the source {source}, and data_dir is {directory}: keep the nodes' own folder apart "
                "from what is copied there."
            )
    for remote, options in remotes.items():
        for option, value in entries(options).items():
            if is_secret(str(option), value):
                yield (
                    f"data_remotes has {printable(option, 60)} for {remote}, which is a secret and would stand in "
                    "logs: put it into data_remote_secrets."
                )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        yield f"data_sets has {', '.join(twice)} twice: a node has one set of a name, so keep one of them."


def _problems_of_mounts(values: Values) -> Iterator[str]:
    fstab = _in_fstab(values)
    for mount in _mounts(values):
        path, directory = mount["path"], str(values("data_dir")).rstrip("/")
        if not _PATH.fullmatch(path):
            yield (
                f"data_mounts has the path {path!r}: give an absolute one of letters, digits, dots, hyphens and "
                "underscores."
            )
        elif _in_each_other(path, directory):
            yield (
                f"data_mounts has {path}, and data_dir is {directory}: keep the nodes' own folder apart from what is "
                "mounted."
            )
        elif path in fstab:
            host = values("inventory_hostname")
            yield f"{path} is in /etc/fstab of {host}: take it out there, or out of data_mounts."
        if not _SHARE.fullmatch(str(mount.get("source", ""))):
            yield (
                f"data_mounts has the source {mount.get('source')!r}: write it as HOST:/FOLDER, such as "
                "nas:/export/prepared."
            )
        if not _WORDS.fullmatch(str(mount.get("options") or OPTIONS)):
            yield (
                f"data_mounts has the options {mount.get('options')!r}: write them as mount(8) does, such as {OPTIONS}."
            )


def decide(values: Values) -> Mapping[str, Any]:
    """What role data does on this host."""
    sets, files = _sets(values), [entries(each) for each in listed(values("data_files"))]
    here = [each for each in sets if each["state"] == "present"]
    folders = {os.path.dirname(str(each.get("path", "")).rstrip("/")) for each in files} - {"", "/"}
    return {
        "problem": next(_problems(values), ""),
        "budget": max(budget(values), 0),
        "sets": sets,
        "names": [os.path.basename(each["source"]) for each in here],
        "reads_remotes": any(each["remote"] for each in here),
        "mounts": [
            {"path": each["path"], "unit": unit_of(each["path"]), "content": unit_text(each)}
            for each in _mounts(values)
        ],
        "folders": sorted(folders),
        "copies": [
            {"source": str(each.get("source")), "path": str(each.get("path")), "mode": str(each.get("mode") or "0644")}
            for each in files
        ],
    }
