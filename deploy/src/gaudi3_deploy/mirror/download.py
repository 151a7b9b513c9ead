"""Files over http: each once, resumed where a run ended, and under its name only when it is whole and right."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any

from gaudi3_deploy.collection._mirror import LOCK
from gaudi3_deploy.collection._printable import printable
from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.mirror.sealed import SIGNATURE, UNFINISHED, Kept, Lock, digest_of, read, release_in, safe_path, write

_PIECE = 1 << 20
#: Seconds that a server may take for the next bytes.
_TIMEOUT = 60
#: Errors of the mirror's own disk, which say nothing of a server.
_OF_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)


@dataclass(frozen=True)
class Wanted:
    """A file to have."""

    path: str
    url: str
    sha256: str = ""
    """Empty where nobody says it beforehand."""
    size: int | None = None
    """In bytes; None where nobody says it."""
    optional: bool = False
    """Whether a mirror without it is whole."""
    settled: bool = True
    """Whether what lies under this address stays as it is, so that a copy need not be fetched again."""
    headers: Callable[[], Mapping[str, str]] = dict
    """What is sent to this server, and to none that it passes the request on to; each request asks for them."""


@dataclass
class Folder:
    """A mirror while it is filled."""

    where: Path
    release: str
    tell: Callable[[str], None]
    files: dict[str, Kept] = field(default_factory=dict)
    fetched: int = 0
    sealed: Mapping[str, Kept] = field(default_factory=dict)
    """What the mirror had when it was whole; empty of a new one."""

    @classmethod
    def open(cls, where: Path, release: str, tell: Callable[[str], None]) -> Folder:
        """Take up a folder: a new one, a whole mirror, or one that a run has not finished.

        Raises:
            UsageError: The folder is of another release, or holds something else.
        """
        unfinished = where / UNFINISHED / LOCK
        lock, begun = read(where / LOCK), read(unfinished)
        for other in (lock, begun):
            if other is not None and other.release != release:
                raise UsageError(
                    f"{where} is a mirror of {printable(other.release)}, and one mirror has one release: give another "
                    f"folder for {release}."
                )
        if lock is None and begun is None and where.is_dir() and any(where.iterdir()):
            raise UsageError(f"{where} is not empty and has no {LOCK}: give an empty folder, or a new one.")
        files = {**(lock.files if lock else {}), **(begun.files if begun else {})}
        folder = cls(where, release, tell, files, sealed=lock.files if lock else {})
        unfinished.parent.mkdir(parents=True, exist_ok=True)
        folder._note()
        return folder

    def seal(self) -> Lock:
        """Write the lock: from now on the mirror is whole. A signature of another one goes."""
        lock = Lock(self.release, self.files)
        if (self.where / SIGNATURE).exists() and (self.where / LOCK).read_text() != lock.text():
            self.tell(f"{SIGNATURE} goes, as the mirror has more now: sign it again")
            (self.where / SIGNATURE).unlink()
        write(self.where / LOCK, lock.text())
        shutil.rmtree(self.where / UNFINISHED)
        return lock

    def put(self, path: str, text: str, origin: str) -> None:
        """Keep a file that was made here."""
        target = self._target(path)
        write(target, text)
        self._keep(path, target, origin)
        self._note()

    def fetch(self, wanted: Iterable[Wanted]) -> None:
        """Have all these files, after a look at whether they fit on the disk.

        Raises:
            DeployError: One is not available, is not what it should be, or the disk is too small for them.
        """
        lacking = [each for each in wanted if not self._has(each)]
        self._fits(lacking)
        left: list[Wanted] = []
        for each in lacking:
            target = self._target(each.path)
            if self._download(each, target):
                self.fetched += 1
                self._keep(each.path, target, each.url)
                self._note()
            elif each.path in self.sealed and not each.settled:
                left.append(each)
        self._refuse_mixed(lacking, left)

    def _refuse_mixed(self, indexes: Iterable[Wanted], left: Iterable[Wanted]) -> None:
        """Refuse a new index beside a signature that was left as it was: nodes would take neither."""
        known = [each for each in indexes if not each.settled and each.path in self.sealed]
        new = [each for each in known if self.files[each.path].sha256 != self.sealed[each.path].sha256]
        for one, other in ((one, other) for one in left for other in new):
            if one.path.rpartition("/")[0] == other.path.rpartition("/")[0]:
                raise DeployError(
                    f"{other.path} is another one now, and {one.url}, which goes with it, could not be fetched: start "
                    "the command again later, it goes on."
                )

    def has(self, path: str) -> bool:
        """Whether a file is there as it was kept."""
        kept, target = self.files.get(path), self.where / path
        if kept is None or not target.is_file() or target.is_symlink():
            return False
        return digest_of(target) == kept.sha256

    def read(self, path: str) -> bytes:
        """The content of a file that the mirror has."""
        return (self.where / path).read_bytes()

    def _note(self) -> None:
        write(self.where / UNFINISHED / LOCK, Lock(self.release, self.files).text())

    def _keep(self, path: str, target: Path, origin: str) -> None:
        self.files[path] = Kept(path, digest_of(target), target.stat().st_size, origin)

    def _has(self, wanted: Wanted) -> bool:
        kept, target = self.files.get(wanted.path), self.where / wanted.path
        expected = wanted.sha256 or (kept.sha256 if kept and wanted.settled else "")
        if not expected or not target.is_file() or target.is_symlink() or digest_of(target) != expected:
            return False
        if kept is None or kept.sha256 != expected:
            self._keep(wanted.path, target, wanted.url)
        return True

    def _target(self, path: str) -> Path:
        if not safe_path(path):
            raise DeployError(f"The repository names the file {printable(path)!r}, which leaves the mirror's folder.")
        if release_in(path) not in ("", self.release):
            raise DeployError(f"{path} is of release {release_in(path)}, and the mirror is of {self.release}.")
        target = self.where / path
        target.parent.mkdir(parents=True, exist_ok=True)
        return target

    def _fits(self, lacking: Iterable[Wanted]) -> None:
        needed = sum(_size(each) if each.size is None else each.size for each in lacking)
        needed -= sum(path.stat().st_size for path in (self.where / UNFINISHED).glob("*.part"))
        free = shutil.disk_usage(self.where).free
        if needed > free:
            raise DeployError(
                f"{self.where} has {amount(free)} free, and the mirror needs {amount(needed)} more: make room, or give "
                "a folder on another disk."
            )

    def _download(self, wanted: Wanted, target: Path) -> bool:
        """Whether the file is there now; False for an optional one that the server does not have."""
        part = self.where / UNFINISHED / f"{hashlib.sha256(wanted.url.encode()).hexdigest()[:32]}.part"
        mark = part.with_suffix(".mark")
        resumed = part.exists() and part.stat().st_size > 0 and (bool(wanted.sha256) or mark.exists())
        try:
            self.tell(f"{'resume' if resumed else 'fetch'} {wanted.path}")
            _transfer(wanted, part, mark, resumed)
        except urllib.error.HTTPError as error:
            if error.code == 404 and wanted.optional:
                return False
            if not (error.code == 416 and resumed):
                if self._is_whole_without(wanted, f"its server answers {error.code}"):
                    return False
                raise DeployError(f"{wanted.url} was refused by its server: {error.code} {error.reason}.") from error
        except (OSError, HTTPException, ValueError) as error:
            said = printable(str(error))
            if getattr(error, "errno", None) not in _OF_DISK and self._is_whole_without(wanted, said):
                return False
            raise DeployError(
                f"{wanted.url} could not be fetched ({said}): start the command again, it goes on."
            ) from error
        if not wanted.sha256 and _is_page(part):
            part.unlink()
            mark.unlink(missing_ok=True)
            if self._is_whole_without(wanted, "its server answers with a web page"):
                return False
            raise DeployError(f"{wanted.url} answers with a web page and not with the file: give another address.")
        if wanted.sha256 and digest_of(part) != wanted.sha256:
            part.unlink()
            mark.unlink(missing_ok=True)
            if resumed:  # what an earlier run had begun was of another file
                return self._download(wanted, target)
            raise DeployError(
                f"{wanted.url} is not what the index that names it says (SHA-256 differs): do not use this source "
                "before its owner has explained the change."
            )
        with part.open("rb") as stream:
            os.fsync(stream.fileno())
        part.replace(target)
        mark.unlink(missing_ok=True)
        return True

    def _is_whole_without(self, wanted: Wanted, why: str) -> bool:
        """Whether a mirror that was whole stays so although this file cannot be fetched, as its server may be gone.

        An index that it has is kept. What it does not have beside others was looked for when it was made whole.
        """
        beside = wanted.path.rpartition("/")[0] + "/"
        kept = not wanted.settled and self.has(wanted.path) and wanted.path in self.sealed
        absent = wanted.optional and wanted.path not in self.sealed
        if kept or (absent and any(path.startswith(beside) for path in self.sealed)):
            self.tell(f"{'keep' if kept else 'leave out'} {wanted.path} ({why})")
            return True
        return False


def check_url(option: str, url: str) -> str:
    """An address without its last slash.

    Raises:
        UsageError: It is none of http or https, or has a password in it, which the lock would show.
    """
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise UsageError(f"{option} has to be an http or https address without a user: correct {option}.")
    return url.rstrip("/")


def amount(size: int) -> str:
    """Bytes for people.

    >>> amount(1234567)
    '1.2 MB'
    """
    for unit, step in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= step:
            return f"{size / step:.1f} {unit}"
    return f"{size} bytes"


def ask(url: str, method: str, headers: Mapping[str, str], own: Mapping[str, str] | None = None) -> Any:
    """The answer of a server, as ``urlopen`` gives it; ``own`` headers go to no other that it passes on to."""
    request = urllib.request.Request(url, headers=dict(headers), method=method)
    for name, value in (own or {}).items():
        request.add_unredirected_header(name, value)
    return urllib.request.urlopen(request, timeout=_TIMEOUT)


def _is_page(path: Path) -> bool:
    """Whether a file is a web page, as the owner of an address that changed hands answers with one for any path."""
    with path.open("rb") as stream:
        begin = stream.read(256).removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    return begin.startswith((b"<!doctype html", b"<html", b"<head"))


def _size(wanted: Wanted) -> int:
    """What the server says of a size, 0 where it says nothing."""
    try:
        with ask(wanted.url, "HEAD", {}, wanted.headers()) as answer:
            return int(answer.headers.get("Content-Length") or 0)
    except (OSError, HTTPException, ValueError):
        return 0


def _transfer(wanted: Wanted, part: Path, mark: Path, resumed: bool) -> None:
    headers = {"Accept-Encoding": "identity"}
    if resumed:
        headers["Range"] = f"bytes={part.stat().st_size}-"
        if mark.exists():
            headers["If-Range"] = str(json.loads(mark.read_text()))
    with ask(wanted.url, "GET", headers, wanted.headers()) as answer:
        goes_on = resumed and answer.status == 206
        tag = answer.headers.get("ETag") or ""
        if not goes_on:
            part.unlink(missing_ok=True)
            mark.unlink(missing_ok=True)
            # A weak tag does not promise the same bytes.
            said = tag if tag and not tag.startswith("W/") else answer.headers.get("Last-Modified")
            if said:
                write(mark, json.dumps(said))
        length = answer.headers.get("Content-Length")
        got = 0
        with part.open("ab") as stream:
            while piece := answer.read(_PIECE):
                stream.write(piece)
                got += len(piece)
                if wanted.size is not None and stream.tell() > wanted.size:
                    return  # its digest will not fit
        if length is not None and got < int(length):
            raise OSError(f"the connection ended after {got} of {length} bytes")
