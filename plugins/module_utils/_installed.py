# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Installed packages: which have lost files, as after a power cut, and one installer at a time."""

from __future__ import annotations

import contextlib
import csv
import fcntl
import os
import shutil
from collections.abc import Collection, Iterable, Iterator

from ._files import make_folder, sync_tree, write_file
from ._refusal import Refusal
from ._wheels import normal, recorded_digest

_ABOUT = ".dist-info"
#: Is in a folder while packages are installed below it.
_MARK = "gaudi3-scale-installing"


def torn(folders: Iterable[str], by_digest: Collection[str] = ()) -> dict[str, set[str]]:
    """Files of packages that have another size than their RECORD says, by the packages' normalized names.

    A package without a readable RECORD is torn, too. Of the packages in ``by_digest`` every file is read, and its
    SHA-256 is compared as well.
    """
    found: dict[str, set[str]] = {}
    for folder in dict.fromkeys(map(os.path.realpath, folders)):
        for about in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            if about.endswith(_ABOUT):
                name = _name_of(about)
                wrong = _wrong_files(folder, about, name in by_digest)
                if wrong:
                    found.setdefault(name, set()).update(wrong)
    return found


def forget(folders: Iterable[str], names: Collection[str]) -> None:
    """Make pip take packages for missing; it then writes their files again."""
    for folder in dict.fromkeys(map(os.path.realpath, folders)):
        for about in os.listdir(folder) if os.path.isdir(folder) else []:
            if about.endswith(_ABOUT) and _name_of(about) in names:
                shutil.rmtree(os.path.join(folder, about))


@contextlib.contextmanager
def installing(folder: str, names: Collection[str]) -> Iterator[None]:
    """Mark a folder while these packages are installed below it; at the end they are on the disk."""
    mark = os.path.join(folder, _MARK)
    write_file(mark, "".join(f"{name}\n" for name in sorted({*names, *unfinished(folder)})))
    yield
    sync_tree(folder)
    os.unlink(mark)


def unfinished(folder: str) -> set[str]:
    """Packages whose installation below a folder did not come to its end: a size proves nothing of their files."""
    try:
        with open(os.path.join(folder, _MARK), encoding="utf-8") as stream:
            return set(stream.read().split())
    except OSError:
        return set()


@contextlib.contextmanager
def alone(root: str) -> Iterator[None]:
    """Make a folder where it is missing, and keep other installations below it out; Refusal where there is one."""
    make_folder(root)
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refusal(
                f"Another run is installing below {root} on this node: wait until it has ended, and run the play again."
            ) from None
        yield
    finally:
        os.close(handle)


def _name_of(about: str) -> str:
    return normal(about[: -len(_ABOUT)].rpartition("-")[0])


def _wrong_files(folder: str, about: str, by_digest: bool) -> set[str]:
    record = f"{about}/RECORD"
    try:
        with open(os.path.join(folder, record), encoding="utf-8", newline="") as stream:
            rows = [row for row in csv.reader(stream) if len(row) == 3]
    except (OSError, ValueError, csv.Error):
        return {record}
    if not rows:
        return {record}
    return {name for name, digest, size in rows if not _is_same(os.path.join(folder, name), digest, size, by_digest)}


def _is_same(path: str, digest: str, size: str, by_digest: bool) -> bool:
    # Python writes bytecode anew as it likes; a RECORD names no digest of itself.
    if path.endswith(".pyc") or not (digest or size):
        return True
    try:
        found = os.stat(path).st_size
    except OSError:
        return False
    if size.isdigit() and found != int(size):
        return False
    return not (by_digest and digest.startswith("sha256=")) or recorded_digest(path) == digest
