# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A set in an object store, read by rclone: S3 and what speaks it, and every other remote that rclone knows.

rclone gets the remote's options in its environment, so that no secret lies on the disk or stands in a command line.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

from .._printable import printable
from .._refusal import Refusal
from .._secret_words import is_place, names_secret, secret_kind
from .index import INDEX, TOKENIZER
from .judge import BLOCK
from .source import checked_index

_OPTION = re.compile(r"[a-z][a-z0-9_]{0,60}\Z")
_PATH = re.compile(r"[^\x00-\x1f\x7f:]{1,1000}\Z")
_TOKENIZER_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,200}\Z")
#: Exit code of rclone for a folder or file that is not there.
_MISSING = (3, 4)
#: What rclone says last where nothing is behind an address; it ends with 1 then, or 3.
_GONE = ("directory not found", "object not found")


def is_secret(option: str, value: object) -> bool:
    """Whether an option of rclone is a secret by its name or its value."""
    named = option == "pass" or names_secret(option)
    return isinstance(value, str) and bool((named and not is_place(value)) or secret_kind(value))


def environment(options: Mapping[str, Any], secrets: Mapping[str, Any], own: Mapping[str, str]) -> dict[str, str]:
    """Variables of rclone for a remote `source`; Refusal where an option cannot be one.

    `own` is the environment of the module. What it has of other accounts is left out.
    """
    found = {name: value for name, value in own.items() if not name.startswith(("RCLONE_", "AWS_"))}
    for name, value in {**options, **secrets}.items():
        if not _OPTION.match(str(name)):
            raise Refusal(
                f"remote has the option {printable(name, 60)}, and small letters, digits and _ are allowed: write it "
                "as rclone's configuration has it, such as access_key_id"
            )
        text = ("false", "true")[value] if isinstance(value, bool) else str(value)
        if "\0" in text or "\n" in text:
            raise Refusal(f"The option {name} of remote has several lines: give one line")
        found[f"RCLONE_CONFIG_SOURCE_{str(name).upper()}"] = text
    if "RCLONE_CONFIG_SOURCE_TYPE" not in found:
        raise Refusal("remote has no type: give the kind of store, such as s3 (see rclone.org/overview)")
    return found


class Rclone:
    """A set behind a path of a remote."""

    def __init__(self, path: str, variables: Mapping[str, str], executable: str = "rclone") -> None:
        if not _PATH.match(path):
            raise Refusal(f"source is {printable(path, 100)!r}, and BUCKET/FOLDER/NAME of the remote is allowed")
        self._path, self._variables = path.rstrip("/"), variables
        found = shutil.which(executable)
        if found is None:
            raise Refusal(f"{executable} is not installed here: install rclone, which reads object stores")
        self._executable = found
        self._sizes: dict[str, int] = {}

    def name_of(self, file: str) -> str:
        """A file's path in the remote."""
        return f"{self._path}/{file}"

    def index(self) -> bytes:
        """The index, and with it the sizes of all files."""
        self._sizes = self._listed()
        where = self.name_of(INDEX)
        if INDEX not in self._sizes:
            raise Refusal(f"{where} is not in the object store: has gaudi3-train prepare ended, and was all uploaded?")
        return checked_index(b"".join(self.blocks(INDEX, 0)), where)

    def tokenizer_files(self) -> dict[str, int]:
        """Bytes by the names of files."""
        found = {}
        for path, size in sorted(self._sizes.items()):
            folder, _slash, name = path.rpartition("/")
            if folder == TOKENIZER:
                if not _TOKENIZER_FILE.match(name):
                    raise Refusal(f"{printable(self.name_of(path), 200)} is no name of a tokenizer's file: rename it")
                found[name] = size
        return found

    def size(self, file: str) -> int:
        """Bytes of a file."""
        if file not in self._sizes:
            raise FileNotFoundError(2, "is not in the object store", self.name_of(file))
        return self._sizes[file]

    def blocks(self, file: str, start: int) -> Iterator[bytes]:
        """Read a file; OSError where it cannot be, be it in its middle."""
        process = self._start("cat", "--offset", str(start), self._of(file))
        if process.stdout is None or process.stderr is None:
            raise AssertionError("rclone was started without pipes")
        with process:
            try:
                yield from iter(lambda: process.stdout.read(BLOCK), b"")  # type: ignore[union-attr]
            except GeneratorExit:
                process.kill()
                raise
            said = process.stderr.read()
        if process.returncode:
            raise OSError(5, _reason(said), self.name_of(file))

    def _listed(self) -> dict[str, int]:
        process = self._start("lsjson", "--recursive", "--files-only", self._of(""))
        output, said = process.communicate()
        if process.returncode in _MISSING or (process.returncode and _reason(said).endswith(_GONE)):
            return {}
        if process.returncode:
            raise OSError(5, _reason(said), self._path)
        found = {}
        with contextlib.suppress(ValueError, TypeError, KeyError):
            found = {str(each["Path"]): int(each["Size"]) for each in json.loads(output)}
        return found

    def _of(self, file: str) -> str:
        return f"source:{self._path}/{file}" if file else f"source:{self._path}"

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        # The whole is asked for again by the module's next run; a read that fails is tried again by rclone itself.
        command = [self._executable, "--config=", "--retries=1", "--low-level-retries=5", "--contimeout=20s"]
        return subprocess.Popen(
            [*command, *arguments],
            env=dict(self._variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=os.sep,
        )


def _reason(said: bytes) -> str:
    """The last line that rclone wrote, without its time."""
    lines = [line for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    last = re.sub(r"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d ", "", lines[-1]) if lines else "rclone ended with an error"
    return printable(last.rpartition("last error was: ")[2] or last, 300)
