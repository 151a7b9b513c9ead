# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Where a set is copied from: a folder of the node, or a remote of rclone (see `remote`)."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from typing import Protocol

from .._refusal import Refusal
from .index import INDEX, LARGEST_INDEX, TOKENIZER
from .judge import BLOCK


class Source(Protocol):
    """A set as it is where it comes from. OSError where it cannot be read, Refusal where it is not as a set is."""

    def name_of(self, file: str) -> str:
        """A file as it is named to a person."""

    def index(self) -> bytes:
        """The index; Refusal where there is none."""

    def tokenizer_files(self) -> dict[str, int]:
        """Bytes of the tokenizer's files by their names; it is one folder of files, without digests."""

    def size(self, file: str) -> int:
        """Bytes of a file."""

    def blocks(self, file: str, start: int) -> Iterable[bytes]:
        """What a file has from its byte `start` on."""


class Folder:
    """A set in a folder of the node, which may be a mount."""

    def __init__(self, path: str) -> None:
        self.path = path

    def name_of(self, file: str) -> str:
        """The path of a file."""
        return os.path.join(self.path, file)

    def index(self) -> bytes:
        """The index, as it is read."""
        where = self.name_of(INDEX)
        try:
            with open_plain(where) as handle, os.fdopen(os.dup(handle), "rb") as file:
                return checked_index(file.read(LARGEST_INDEX + 1), where)
        except (FileNotFoundError, NotADirectoryError):
            raise Refusal(
                f"{where} is not there: is {self.path} mounted, and has gaudi3-train prepare ended there?"
            ) from None

    def tokenizer_files(self) -> dict[str, int]:
        """Bytes by the names of files."""
        return tokenizer_files(self.path)

    def size(self, file: str) -> int:
        """Bytes of a file that is no link."""
        with open_plain(self.name_of(file)) as reader:
            return os.fstat(reader).st_size

    def blocks(self, file: str, start: int) -> Iterator[bytes]:
        """Read a file that is no link."""
        with open_plain(self.name_of(file)) as reader:
            os.lseek(reader, start, os.SEEK_SET)
            yield from iter(lambda: os.read(reader, BLOCK), b"")


def checked_index(text: bytes, where: str) -> bytes:
    """The text of an index, if it is no larger than one may be; Refusal if it is."""
    if len(text) > LARGEST_INDEX:
        raise Refusal(f"{where} is larger than {LARGEST_INDEX} bytes: prepare the data with a larger shard_tokens")
    return text


@contextlib.contextmanager
def open_plain(path: str) -> Iterator[int]:
    """Open a file to read, if it is one: no link, no device. The number of the open file; Refusal if it is none."""
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise Refusal(f"{path} is a link or no file, and a set has files alone: mend the source")
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield handle
    finally:
        os.close(handle)


def tokenizer_files(folder: str) -> dict[str, int]:
    """Bytes of the files of a set's tokenizer by their names."""
    try:
        names = sorted(os.listdir(os.path.join(folder, TOKENIZER)))
    except FileNotFoundError:
        return {}
    found = {}
    for name in names:
        path = os.path.join(folder, TOKENIZER, name)
        about = os.lstat(path)
        if not stat.S_ISREG(about.st_mode):
            raise Refusal(f"{path} is a link or no file, and a tokenizer has files alone: mend the source")
        found[name] = about.st_size
    return found
