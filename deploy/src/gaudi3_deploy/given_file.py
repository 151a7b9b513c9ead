"""Files that a user names: to read, without waiting for a named pipe or reading an endless device, and to write."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from pathlib import Path
from typing import BinaryIO

from gaudi3_deploy.collection._files import open_to_read, write_file

#: Names of what a process has open. Where that is a file, it is not to be replaced, as the shell's ``>`` goes on in it.
_OPEN_ALREADY = re.compile(r"/dev/(std(in|out|err)$|fd/)|/proc/")


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


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all; into a pipe or a terminal, as ``/dev/stdout`` is one, and through a link.

    None of these is replaced by a file. OSError where it cannot be written.
    """
    # Not resolve(), which raises RuntimeError where links lead in a circle: stat has an OSError for that.
    target = Path(os.path.realpath(path))
    with contextlib.suppress(FileNotFoundError):
        if _OPEN_ALREADY.match(str(path.absolute())) or not stat.S_ISREG(target.stat().st_mode):
            with path.open("a", encoding="utf-8") as stream:
                stream.write(text)
            return
    write_file(str(target), text)
