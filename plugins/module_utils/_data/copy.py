# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Copying a set so that a kill at any instant leaves a draft that the next copy goes on with.

A file is copied under a draft name, compared with its digest on the way, synced, and named. The folder is a draft too,
until nothing is missing; a set has its name only when it is whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterable

from .._files import make_folder, sync_folder, write_file
from .._refusal import Refusal
from .index import CHECKED, INDEX, TOKENIZER, File
from .judge import BLOCK, Judged, Stamps, compare_files
from .source import Source

DRAFT = ".part"


def draft_of(path: str, key: str) -> str:
    """The folder in which a set is gathered."""
    return os.path.join(path, f".{key}{DRAFT}")


def copy(source: Source, path: str, key: str, text: bytes, files: dict[str, File], judged: Judged) -> int:
    """Bring a set, or those of its files that are missing or wrong, and return the bytes that were copied.

    `judged` is the set that is there, or its draft; `text` the index, as it was read. OSError where a file cannot be
    read or written, Refusal where one of the source is not as its index says.
    """
    draft, target = draft_of(path, key), os.path.join(path, key)
    if os.path.isdir(target):
        # Files that were found wrong lose their stamp first: after a kill they are read again, and not believed.
        write_file(os.path.join(target, CHECKED), json.dumps(judged.good))
        if os.path.isdir(draft):
            shutil.rmtree(draft)
        os.rename(target, draft)
        sync_folder(path)
    make_folder(draft)
    _remove(os.path.join(draft, INDEX))
    good: Stamps = dict(judged.good)
    copied = 0
    for name in [each for each in files if each in judged.bad]:
        copied += copy_file(source, name, os.path.join(draft, name), files[name])
        good[name] = [files[name].size, os.stat(os.path.join(draft, name)).st_mtime_ns, files[name].sha256]
        write_file(os.path.join(draft, CHECKED), json.dumps(good))
    copied += _copy_tokenizer(source, draft)
    for name in set(os.listdir(draft)) - files.keys() - {CHECKED, TOKENIZER}:
        _remove_all(os.path.join(draft, name))
    write_file(os.path.join(draft, CHECKED), json.dumps({name: good[name] for name in files}))
    write_file(os.path.join(draft, INDEX), text)
    os.rename(draft, target)
    sync_folder(path)
    return copied


def copy_file(source: Source, name: str, target: str, file: File) -> int:
    """Copy a file of known size and digest, or resume an earlier copy that was cut; returns the bytes copied."""
    part = target + DRAFT
    _remove(target)
    begun = _size(part)
    if begun > file.size:
        begun = 0
    for start in (begun, 0) if begun else (0,):
        if _fill(source, name, part, start, file):
            os.rename(part, target)
            sync_folder(os.path.dirname(target))
            return file.size - start
        _remove(part)
    raise Refusal(
        f"{source.name_of(name)} is not as its index says: its SHA-256 differs; prepare the data again or mend the "
        "source"
    )


def _fill(source: Source, name: str, part: str, start: int, file: File) -> bool:
    """Write the rest of a file behind its first bytes, and say whether the whole has its digest."""
    found, size = hashlib.sha256(), source.size(name)
    if size != file.size:
        raise Refusal(f"{source.name_of(name)} has {size} bytes, and its index says {file.size}: mend the source")
    begin = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(part, begin, 0o600), "r+b") as writer:
        os.fchmod(writer.fileno(), 0o644)
        writer.truncate(start)
        left = start
        while left:
            block = writer.read(min(BLOCK, left))
            if not block:
                return False
            found.update(block)
            left -= len(block)
        writer.seek(start)
        left = file.size - start
        for block in source.blocks(name, start) if left else ():
            left -= len(block)
            if left < 0:
                return False
            found.update(block)
            # As cp does: blocks of zeros take no room.
            writer.seek(len(block), os.SEEK_CUR) if block == bytes(len(block)) else writer.write(block)
        writer.truncate()
        writer.flush()
        os.fsync(writer.fileno())
    return found.hexdigest() == file.sha256


def _copy_tokenizer(source: Source, draft: str) -> int:
    names = source.tokenizer_files()
    folder = os.path.join(draft, TOKENIZER)
    if os.path.isdir(folder):
        shutil.rmtree(folder)
    if names:
        make_folder(folder)
    for name in names:
        write_file(os.path.join(folder, name), b"".join(source.blocks(f"{TOKENIZER}/{name}", 0)))
    return sum(names.values())


def remove(path: str, key: str) -> None:
    """Remove a set and its draft. It loses its name first, so that none is ever half there under it."""
    draft, target = draft_of(path, key), os.path.join(path, key)
    if os.path.isdir(draft):
        shutil.rmtree(draft)
    if os.path.isdir(target):
        os.rename(target, draft)
        sync_folder(path)
        shutil.rmtree(draft)


def begun(path: str, key: str, files: dict[str, File]) -> Judged:
    """What a cut copy left."""
    return compare_files(draft_of(path, key), files)


def half(path: str, key: str, names: Iterable[str]) -> int:
    """Bytes that a cut copy has already of files that are not whole."""
    return sum(_size(os.path.join(draft_of(path, key), name + DRAFT)) for name in names)


def _size(path: str) -> int:
    try:
        about = os.lstat(path)
    except FileNotFoundError:
        return 0
    return about.st_size if stat.S_ISREG(about.st_mode) else 0


def _remove_all(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        _remove(path)


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
