"""`lock.json`: every file of a mirror with its digest, size and origin, and the one release that it is of."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from gaudi3_deploy import given_file
from gaudi3_deploy.collection._mirror import LOCK, SCHEMA, poisoned
from gaudi3_deploy.collection._printable import printable
from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.messages import reason

#: What `gaudi3-deploy mirror sign` writes beside the lock.
SIGNATURE = f"{LOCK}.sig"
#: What a run has not finished yet; it is gone from a whole mirror.
UNFINISHED = ".unfinished"
#: Where the vendor's names have a release in them: of packages, wheels' folder, tarball and images.
_RELEASE_IN_NAME = re.compile(
    r"(?:(?:^|/)(?:habanalabs[a-z-]*[-_]|pytorch_modules(?:_py\d+)?-v[\d.]+_)|^images/.*/gaudi-[a-z-]+/(?:.*/)?)"
    r"(\d+\.\d+\.\d+)[-_](\d+)"
)


@dataclass(frozen=True)
class Kept:
    """One file of a mirror."""

    path: str
    """Below the mirror's folder, with slashes."""
    sha256: str
    size: int
    """In bytes."""
    origin: str
    """Address that it came from, or who made it."""


@dataclass(frozen=True)
class Lock:
    """What a mirror holds."""

    release: str
    files: Mapping[str, Kept]
    """By path."""

    def text(self) -> str:
        """As it stands in the file."""
        files = [asdict(self.files[path]) for path in sorted(self.files)]
        return json.dumps({"schema": SCHEMA, "release": self.release, "files": files}, indent=1) + "\n"


def safe_path(path: str) -> bool:
    """Whether a path that a repository names stays below the mirror's folder, and is no file of the mirror's own."""
    parts = path.split("/")
    odd = any(part in ("", "..") or part.startswith(".") for part in parts)
    return not odd and path not in (LOCK, SIGNATURE) and path.isprintable() and "\\" not in path


def release_in(path: str) -> str:
    """The release that a file is of by its name; empty where the name has none."""
    found = _RELEASE_IN_NAME.search(path)
    return f"{found[1]}-{found[2]}" if found else ""


def digest_of(path: Path) -> str:
    """SHA-256 of a file, read in pieces."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read(path: Path) -> Lock | None:
    """The lock in a file; None where there is no file.

    Raises:
        UsageError: It is no lock.
    """
    try:
        found = json.loads(given_file.read_text(path))
        schema = found["schema"]
        if isinstance(schema, int) and schema > SCHEMA:
            raise UsageError(f"{path} has schema {schema}, which a later gaudi3-deploy has written: use that one.")
        if schema != SCHEMA:
            raise ValueError(f"its schema is {schema!r}, and this program knows {SCHEMA}")
        kept = [
            Kept(str(each["path"]), str(each["sha256"]), int(each["size"]), str(each["origin"]))
            for each in found["files"]
        ]
        odd = next((each.path for each in kept if not safe_path(each.path)), None)
        if odd is not None:
            raise ValueError(f"it names {printable(odd)!r}, which is outside of the folder")
        return Lock(str(found["release"]), {each.path: each for each in kept})
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({reason(error)}): mend that first.") from error
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise UsageError(
            f"{path} is no lock of a mirror ({printable(reason(error))}): make the mirror again."
        ) from error


def write(path: Path, text: str) -> None:
    """Write a file at once or not at all."""
    draft = path.with_name(f".{path.name}.new")
    with draft.open("w") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def verify(folder: Path, wanted: str = "") -> tuple[Lock, list[str]]:
    """Read every byte of a mirror: its lock, and a sentence for all that is not as the lock says.

    Args:
        folder: The mirror.
        wanted: SHA-256 that the lock itself must have; empty: any.

    Raises:
        UsageError: The folder has no lock.
        DeployError: The lock is another one than wanted.
    """
    lock = read(folder / LOCK)
    if lock is None:
        raise UsageError(f"{folder} has no {LOCK}: `gaudi3-deploy mirror fill` writes one when a mirror is whole.")
    if wanted and digest_of(folder / LOCK) != wanted.lower():
        raise DeployError(
            f"{folder / LOCK} has SHA-256 {digest_of(folder / LOCK)}, not {printable(wanted)}: it was changed after it "
            "was sealed, or is of another mirror."
        )
    return lock, list(_faults(folder, lock))


def _faults(folder: Path, lock: Lock) -> Iterator[str]:
    if (folder / UNFINISHED).is_dir():
        yield f"{UNFINISHED}: a run of `gaudi3-deploy mirror fill` was not finished; start it again"
    unread: list[OSError] = []
    there = dict(_files(folder, unread.append))
    hidden = {Path(error.filename).relative_to(folder).as_posix(): error for error in unread}
    for below, error in hidden.items():
        yield f"{printable(below)}: cannot be read ({reason(error)})"
    for path, said in poisoned({*lock.files, *there}):
        yield f"{printable(path)}: {said}"
    for path, kept in sorted(lock.files.items()):
        other = release_in(path)
        if other not in ("", lock.release):
            yield f"{path}: is of release {other}, and the mirror is of {lock.release}"
        elif path not in there:
            if not any(below == "." or path.startswith(f"{below}/") for below in hidden):
                yield f"{path}: is missing"
        elif there[path].is_symlink() or not there[path].is_file():
            yield f"{path}: is no plain file"
        elif said := _content(there[path], kept):
            yield f"{path}: {said}"
    for path in sorted(there.keys() - lock.files.keys()):
        other = release_in(path)
        if other not in ("", lock.release):
            yield f"{printable(path)}: is of release {other}, and the mirror is of {lock.release}"
        else:
            yield f"{printable(path)}: is not in the lock"


def _content(path: Path, kept: Kept) -> str:
    """What is wrong with a file's content; empty where it is as the lock says."""
    try:
        size = path.stat().st_size
        if size != kept.size:
            return f"has {size} bytes, and the lock says {kept.size}"
        return "" if digest_of(path) == kept.sha256 else "was changed, its SHA-256 is not what the lock says"
    except OSError as error:
        return f"cannot be read ({reason(error)})"


def _files(folder: Path, unread: Callable[[OSError], None]) -> Iterator[tuple[str, Path]]:
    for parent, folders, names in os.walk(folder, onerror=unread):
        if Path(parent) == folder and UNFINISHED in folders:
            folders.remove(UNFINISHED)
        links = [name for name in folders if Path(parent, name).is_symlink()]
        for name in (*names, *links):
            path = Path(parent, name)
            if path not in (folder / LOCK, folder / SIGNATURE):
                yield path.relative_to(folder).as_posix(), path
