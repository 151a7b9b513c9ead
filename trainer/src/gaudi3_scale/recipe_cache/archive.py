"""A folder of recipes as one signed tar: first the manifest with the digest of every file, then the files.

The members of a tar are data from elsewhere, so no library interprets them. The files have numbers for names there, in
the order of the manifest, and each header must be, byte for byte, the one that the manifest leads to: no paths, no
links, no sizes of the archive's own. `tar tf` reads it, too.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import re
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.files import draft, opened_folder, read_in
from gaudi3_scale.recipe_cache.key import CacheKey, CacheRefusedError, of_record

MANIFEST = "gaudi3-recipe-cache.json"
VERSION = 1
MANIFEST_BYTES = 64 * 2**20
FILES = 200_000
SHORTEST_KEY = 32
LARGEST = 8**11 - 1
"""Bytes of a file that a tar's header has room for."""
_PIECE = 2**20
_BLOCK = 512
_END = bytes(2 * _BLOCK)
_FIELDS = {"version", "key", "files", "signature"}


@dataclass(frozen=True)
class File:
    """A file of the cache."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class CacheManifest:
    """What an archive holds, and for which key."""

    key: CacheKey
    files: tuple[File, ...]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    @property
    def text(self) -> bytes:
        """What is signed."""
        record = {"version": VERSION, "key": asdict(self.key), "files": [asdict(file) for file in self.files]}
        return json.dumps(record, sort_keys=True, separators=(",", ":")).encode()


def read_key(path: Path) -> bytes:
    """The cluster's signing key, in a file that its owner alone can read; ConfigError for any other."""
    advice = "make one with `head -c 32 /dev/urandom > FILE; chmod 600 FILE`, and give every node the same."
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                raise ConfigError(f"The signing key {path} is no regular file: {advice}")
            key = file.read(4096)
    except OSError as error:
        raise ConfigError(f"The signing key {path} cannot be read ({error.strerror}): {advice}") from None
    if mode & 0o077:
        raise ConfigError(
            f"The signing key {path} has the mode {stat.S_IMODE(mode):04o}, so that others can read it: chmod 600 it."
        )
    if len(key) < SHORTEST_KEY:
        raise ConfigError(f"The signing key {path} has {len(key)} bytes, fewer than {SHORTEST_KEY}: {advice}")
    return key


def pack(folder: Path, key: CacheKey, archive: Path, signing_key: bytes) -> CacheManifest:
    """Write the files of a folder into a new archive, which is there whole or not at all.

    Raises TrainerError for a folder that changes meanwhile, has no files, or has what is neither file nor folder.
    """
    files = tuple(File(path, *_measured(folder, path)) for path in _listed(folder))
    if not files:
        raise TrainerError(f"{folder} has no files: give the folder of a recipe cache that a job has filled.")
    if large := [file.path for file in files if file.size > LARGEST]:
        raise TrainerError(f"{folder / large[0]} has more than {LARGEST:,} bytes, which is no recipe: remove it.")
    manifest = CacheManifest(key, files)
    record = {**json.loads(manifest.text), "signature": _signature(signing_key, manifest)}
    text = json.dumps(record, sort_keys=True).encode()
    with opened_folder(archive.absolute().parent) as target, draft(target, archive.name) as out:
        out.write(_header(MANIFEST, len(text)) + text + _padding(len(text)))
        for index, file in enumerate(files):
            out.write(_header(_number(index), file.size))
            with _opened(folder, file.path) as source:
                made, left = hashlib.sha256(), file.size
                while data := source.read(min(_PIECE, left)):
                    made.update(data)
                    out.write(data)
                    left -= len(data)
                if left or made.hexdigest() != file.sha256 or source.read(1):
                    raise TrainerError(f"{folder / file.path} changes while it is packed: end the job first.")
            out.write(_padding(file.size))
        out.write(_END)
    return manifest


def verify(archive: Path, signing_key: bytes) -> CacheManifest:
    """Read an archive to its end. Raises CacheRefusedError unless it is signed with this key and whole."""
    with opened(archive, signing_key) as (manifest, contents):
        for _, reader in contents:
            while reader.read(_PIECE):
                pass
    return manifest


class Reader:
    """The bytes of one file of an archive; its end raises CacheRefusedError unless the digest is the signed one."""

    def __init__(self, source: BinaryIO, file: File) -> None:
        self._source, self._file, self._made, self._left = source, file, hashlib.sha256(), file.size

    def read(self, size: int) -> bytes:
        """The next bytes; none at the end."""
        data = self._source.read(min(size, self._left))
        self._left -= len(data)
        self._made.update(data)
        if not data and (self._left or self._made.hexdigest() != self._file.sha256):
            raise CacheRefusedError(f"The archive's {self._file.path} is not the file that was signed: pack it again.")
        return data


@contextlib.contextmanager
def opened(archive: Path, signing_key: bytes) -> Iterator[tuple[CacheManifest, Iterator[tuple[File, Reader]]]]:
    """The signed manifest of an archive, and its files one after the other, each to be read to its end."""
    with contextlib.ExitStack() as stack:
        try:
            folder = stack.enter_context(opened_folder(archive.absolute().parent))
            source = stack.enter_context(read_in(folder, archive.name))
        except OSError as error:
            raise TrainerError(f"{archive} cannot be read ({error.strerror}): give an archive of recipes.") from None
        manifest = _read_manifest(source, signing_key)
        yield manifest, _contents(source, manifest)


def _read_manifest(source: BinaryIO, signing_key: bytes) -> CacheManifest:
    header = source.read(_BLOCK)
    octal = header[124:135]
    size = int(octal, 8) if re.fullmatch(rb"[0-7]{11}", octal) else -1
    if not 0 < size <= MANIFEST_BYTES or header != _header(MANIFEST, size):
        raise CacheRefusedError("The archive does not begin with the manifest of a recipe cache: pack it again.")
    text = source.read(size)
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        raise CacheRefusedError("The archive's manifest is not JSON: pack it again.") from None
    if not isinstance(record, dict) or set(record) != _FIELDS or record["version"] != VERSION:
        raise CacheRefusedError("The archive's manifest is none of this version: pack it again.")
    manifest = CacheManifest(of_record(record["key"]), tuple(_files(record["files"])))
    # Nothing that is not signed is acted upon: what was read so far was only compared.
    if not hmac.compare_digest(str(record["signature"]).encode(), _signature(signing_key, manifest).encode()):
        raise CacheRefusedError("The archive is not signed with this key: use the cluster's key, or pack it again.")
    _end_of_member(source, size)
    return manifest


def _contents(source: BinaryIO, manifest: CacheManifest) -> Iterator[tuple[File, Reader]]:
    for index, file in enumerate(manifest.files):
        if source.read(_BLOCK) != _header(_number(index), file.size):
            raise CacheRefusedError(f"The archive lacks {file.path} as it was signed: pack it again.")
        yield file, Reader(source, file)
        _end_of_member(source, file.size)
    if source.read(len(_END) + 1) != _END:
        raise CacheRefusedError("The archive does not end after the files that were signed: pack it again.")


def _end_of_member(source: BinaryIO, size: int) -> None:
    wanted = _padding(size)
    if source.read(len(wanted)) != wanted:
        raise CacheRefusedError("The archive is not as it was written: pack it again.")


def _files(records: Any) -> Iterator[File]:
    if not isinstance(records, list) or len(records) > FILES:
        raise CacheRefusedError(f"The archive's manifest has no list of at most {FILES:,} files: pack it again.")
    seen = set[str]()
    for record in records:
        try:
            file = File(**record)
            good = isinstance(file.size, int) and 0 <= file.size <= LARGEST and len(bytes.fromhex(file.sha256)) == 32
        except (TypeError, ValueError):
            good = False
        if not good or not _plain(file.path) or file.path in seen:
            raise CacheRefusedError("The archive's manifest names a file that it must not: pack it again.")
        seen.add(file.path)
        yield file


def _plain(path: Any) -> bool:
    """A relative path of plain names: none leads out of the folder, none is hidden by the spelling of another."""
    if not isinstance(path, str) or not 0 < len(path) <= 1000 or not path.isprintable() or "\\" in path:
        return False
    parts = path.split("/")
    return path == str(PurePosixPath(path)) and not {"", ".", ".."} & {*parts} and len(parts) <= 20


def _listed(folder: Path) -> list[str]:
    """The regular files below a folder. What is no file would be left out of the archive, so it is named."""
    found = []

    def fail(error: OSError) -> None:
        raise TrainerError(f"{error.filename} cannot be read ({error.strerror}): give the recipe cache's folder.")

    for at, folders, names in os.walk(folder, onerror=fail):
        folders.sort()
        for name in (*names, *(each for each in folders if Path(at, each).is_symlink())):
            path = Path(at, name)
            relative = str(path.relative_to(folder))
            if not stat.S_ISREG(path.lstat().st_mode) or not _plain(relative):
                raise TrainerError(f"{path} is no regular file with a plain name: a recipe cache is packed whole.")
            found.append(relative)
    return sorted(found)


@contextlib.contextmanager
def _opened(folder: Path, path: str) -> Iterator[BinaryIO]:
    *above, name = path.split("/")
    try:
        with opened_folder(folder, *above) as at, read_in(at, name) as file:
            yield file
    except OSError as error:
        raise TrainerError(f"{folder / path} cannot be read ({error.strerror}): end the job first.") from None


def _measured(folder: Path, path: str) -> tuple[int, str]:
    made, size = hashlib.sha256(), 0
    with _opened(folder, path) as file:
        while data := file.read(_PIECE):
            made.update(data)
            size += len(data)
    return size, made.hexdigest()


def _header(name: str, size: int) -> bytes:
    """The same files give the same archive: no owner, no time."""
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o644
    return member.tobuf(tarfile.USTAR_FORMAT)


def _number(index: int) -> str:
    return f"{index:06d}"


def _padding(size: int) -> bytes:
    return bytes(-size % _BLOCK)


def _signature(signing_key: bytes, manifest: CacheManifest) -> str:
    return hmac.new(signing_key, manifest.text, hashlib.sha256).hexdigest()
