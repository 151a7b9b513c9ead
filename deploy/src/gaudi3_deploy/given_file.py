"""Reads files that a user names. A named pipe is not waited for, and an endless device not read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from gaudi3_deploy.collection._files import open_to_read


def opened(path: Path) -> BinaryIO:
    """The file, open to read. OSError where it cannot be, or is no file."""
    return os.fdopen(open_to_read(str(path)), "rb")


def read_bytes(path: Path, most: int = -1) -> bytes:
    """The first `most` bytes of a file, or all of it. OSError as `opened`."""
    with opened(path) as file:
        return file.read(most)


def read_text(path: Path) -> str:
    """The text of a file, in UTF-8. OSError as `opened`, UnicodeDecodeError for what is no text."""
    return read_bytes(path).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
