"""A node's own recipe caches, one folder for each key, within a number of bytes.

    ROOT/1.24.1_gaudi3_bfloat16_0123456789abcdef/
        key.json       the key, and the digest of what was taken
        used           its time: when it was used last
        recipes/       what PT_HPU_RECIPE_CACHE_CONFIG names; the bridge adds to it and removes from it

A folder appears under its name whole, by one rename, and leaves in the same way: whoever is killed in between leaves a
hidden folder, which the next call removes. Calls take turns by a lock, and a cache that a job holds is not removed.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.files import lock_file, opened_folder, sync_directory
from gaudi3_scale.recipe_cache.archive import CacheManifest, File, Reader, opened
from gaudi3_scale.recipe_cache.key import CacheKey, CacheRefusedError, of_record

RECIPES = "recipes"
_RECORD = "key.json"
_USED = "used"
_LOCK = ".lock"
_PIECE = 2**20
_ROOM = 64 * 2**20
"""Bytes that are left free on the disk."""


@dataclass(frozen=True)
class NodeCache:
    """A cache on this node."""

    folder: Path
    key: CacheKey

    @property
    def recipes(self) -> Path:
        """What the bridge reads and writes."""
        return self.folder / RECIPES

    @property
    def size(self) -> int:
        """Bytes of its files now."""
        return _size(self.folder)

    @property
    def used(self) -> float:
        """When it was used last, by the clock of the file system."""
        try:
            return (self.folder / _USED).stat().st_mtime
        except OSError:
            return 0.0

    def variable(self, megabytes: int) -> str:
        """PT_HPU_RECIPE_CACHE_CONFIG: this folder, kept at the start, with at most this many MB."""
        return f"{self.recipes},false,{megabytes}"


class Store:
    """The caches below one folder, which is on a local disk: the bridge locks its files."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        if "," in str(self.root):
            raise ConfigError(f"{root} has a comma, which ends a path in PT_HPU_RECIPE_CACHE_CONFIG: use another name.")

    def entries(self) -> list[NodeCache]:
        """All caches, the one that was used last at the end; folders that are none are left alone."""
        found = []
        for folder in self.root.iterdir() if self.root.is_dir() else ():
            if not folder.name.startswith(".") and folder.is_dir() and not folder.is_symlink():
                with contextlib.suppress(CacheRefusedError):
                    found.append(_entry(folder))
        return sorted(found, key=lambda entry: (entry.used, entry.folder.name))

    def take(
        self, archive: Path, signing_key: bytes, wanted: Mapping[str, str], replace: bool = False
    ) -> tuple[NodeCache, bool]:
        """The cache of an archive, unpacked if it is not here yet; and whether it was unpacked now.

        A cache that is here stays as it is, since the bridge has added to it, unless it is to be replaced. Raises
        CacheRefusedError for an archive that is not whole, not signed, or for another key, before anything is written.
        """
        with self._alone(), opened(archive, signing_key) as (manifest, contents):
            manifest.key.refuse_unless(wanted)
            here = self.root / manifest.key.name
            if here.is_dir() and not replace:
                entry = _entry(here)
                _touch(here)
                return entry, False
            if here.is_dir() and not self._free(here):
                raise TrainerError(f"{here} is used by a job, so it is not replaced: end the job first.")
            self._refuse_full_disk(manifest)
            new = self._new(manifest.key)
            try:
                for file, reader in contents:
                    _unpack(new / RECIPES, file, reader)
                self._put(new, here)
            except BaseException:
                shutil.rmtree(new, ignore_errors=True)
                raise
        return NodeCache(here, manifest.key), True

    def make(self, key: CacheKey) -> NodeCache:
        """The cache of a key, empty if it is not here yet."""
        with self._alone():
            here = self.root / key.name
            if here.is_dir():
                entry = _entry(here)
                _touch(here)
                return entry
            self._put(self._new(key), here)
        return NodeCache(here, key)

    def prune(self, most: int, keep: NodeCache | None = None) -> list[NodeCache]:
        """Remove caches that were used longest ago until the others have at most this many bytes; those removed.

        One that a job holds stays, and so does ``keep``.
        """
        removed = []
        with self._alone():
            entries = self.entries()
            sizes = {entry.folder: entry.size for entry in entries}
            left = sum(sizes.values())
            for entry in entries:
                if left <= most:
                    break
                if (keep is None or entry.folder != keep.folder) and self._free(entry.folder):
                    self._remove(entry.folder)
                    left -= sizes[entry.folder]
                    removed.append(entry)
        return removed

    def hold(self, entry: NodeCache) -> BinaryIO:
        """Keep a cache from being removed or replaced, as long as the returned file is open."""
        held = lock_file(self._lock_of(entry.folder))
        fcntl.flock(held, fcntl.LOCK_SH)
        return held

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """One call at a time; what a killed one left is removed."""
        try:
            self.root.mkdir(parents=True, exist_ok=True, mode=0o755)
            lock = lock_file(self.root / _LOCK)
        except OSError as error:
            raise TrainerError(f"{self.root} cannot be used ({error.strerror}): give another folder.") from None
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for left in self.root.iterdir():
                if left.name.startswith(".") and left.name.endswith((".new", ".gone")):
                    shutil.rmtree(left, ignore_errors=True)
            try:
                yield
            except OSError as error:
                where, why = error.filename or self.root, error.strerror or error
                raise TrainerError(f"{where} cannot be written ({why}): make room, or give another folder.") from None

    def _new(self, key: CacheKey) -> Path:
        """A hidden folder with the key and no recipes."""
        new = self.root / f".{key.name}.{secrets.token_hex(8)}.new"
        (new / RECIPES).mkdir(parents=True)
        (new / _RECORD).write_text(json.dumps({"key": asdict(key)}, sort_keys=True) + "\n")
        _touch(new)
        return new

    def _put(self, new: Path, here: Path) -> None:
        """Make a complete folder appear under its name, instead of what is there."""
        _sync(new)
        if here.is_dir():
            self._aside(here)
        new.rename(here)
        sync_directory(self.root)

    def _remove(self, folder: Path) -> None:
        shutil.rmtree(self._aside(folder))
        with contextlib.suppress(FileNotFoundError):
            self._lock_of(folder).unlink()

    def _aside(self, folder: Path) -> Path:
        gone = self.root / f".{folder.name}.{secrets.token_hex(8)}.gone"
        folder.rename(gone)
        return gone

    def _lock_of(self, folder: Path) -> Path:
        return self.root / f".{folder.name}.lock"

    def _free(self, folder: Path) -> bool:
        """Whether no job holds it."""
        with lock_file(self._lock_of(folder)) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
        return True

    def _refuse_full_disk(self, manifest: CacheManifest) -> None:
        free = shutil.disk_usage(self.root).free
        if manifest.size + _ROOM > free:
            raise TrainerError(
                f"The recipe cache has {manifest.size:,} bytes and {self.root} has {free:,} free:"
                " make room, or prune it."
            )


def _entry(folder: Path) -> NodeCache:
    try:
        with opened_folder(folder) as _:
            record = json.loads((folder / _RECORD).read_text())
        key = of_record(record["key"])
    except (OSError, ValueError, KeyError, TypeError):
        raise CacheRefusedError(f"{folder} is no recipe cache: remove it.") from None
    if key.name != folder.name:
        raise CacheRefusedError(f"{folder} has the key of another recipe cache: remove it.")
    return NodeCache(folder, key)


def entry_at(folder: Path) -> NodeCache | None:
    """The cache of which this is the folder, or the folder of its recipes; None where it is neither."""
    for each in (folder.absolute(), folder.absolute().parent):
        with contextlib.suppress(CacheRefusedError):
            return _entry(each)
    return None


def _unpack(recipes: Path, file: File, reader: Reader) -> None:
    """One file, into a folder that nobody else knows; its name was checked with the manifest."""
    *above, name = file.path.split("/")
    with opened_folder(recipes, *above, make=True) as at:
        handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=at)
        with os.fdopen(handle, "wb") as out:
            while data := reader.read(_PIECE):
                out.write(data)


def _sync(folder: Path) -> None:
    """Have the whole folder on the disk, so that after a power cut it is not whole in name alone."""
    for at, _, names in os.walk(folder):
        for name in names:
            handle = os.open(Path(at, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        sync_directory(Path(at))


def _touch(folder: Path) -> None:
    with contextlib.suppress(OSError):
        (folder / _USED).touch()


def _size(folder: Path) -> int:
    total = 0
    for at, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):  # the bridge removes files, too
                total += Path(at, name).lstat().st_size
    return total
