"""A copy of Terraform's local state: one that is killed while it writes the state leaves an empty file behind.

    deployments/NAME/terraform.tfstate.copy    the state as it was when a resource was last finished

Terraform's own backup is of before the last change, and there is none at first. What was made after the copy is taken
over as after any kill.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from gaudi3_deploy.record import write_atomically

COPY = "terraform.tfstate.copy"


class KeptState:
    """Of a workspace with a local backend; with another one there is no file, and nothing to do."""

    def __init__(self, directory: Path, workspace: str, private: Path) -> None:
        self._state = directory / "terraform.tfstate.d" / workspace / "terraform.tfstate"
        self._copy = private / COPY

    def keep(self) -> None:
        """Copy the state, unless it is just being written."""
        try:
            text = self._state.read_text()
        except (OSError, UnicodeDecodeError):
            return
        if _serial(text) is not None:
            write_atomically(self._copy, text)

    def restore(self) -> str:
        """Where the state is empty or broken and Terraform is not at work, put the newest copy back; which one."""
        try:
            with self._alone() as file:
                if file is None or _serial(file.read()) is not None:
                    return ""
                copies = ((path, _text(path)) for path in (self._copy, Path(f"{self._state}.backup")))
                found = [(serial, path, text) for path, text in copies if (serial := _serial(text)) is not None]
                if not found:
                    return ""
                _edition, newest, text = max(found, key=lambda each: each[0])
                file.seek(0)
                file.truncate()
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
                return str(newest)
        except (OSError, UnicodeDecodeError):
            return ""

    def forget(self) -> None:
        """There is no state any more."""
        self._copy.unlink(missing_ok=True)

    @contextmanager
    def _alone(self) -> Iterator[IO[str] | None]:
        """The state's file, held against Terraform, which locks it in the same way; None where it is at work."""
        if not self._state.exists():
            yield None
            return
        with self._state.open("r+") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                yield None
                return
            yield file


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""


def _serial(text: str) -> int | None:
    """Which edition of a state it is; None where it is none."""
    try:
        return int(json.loads(text)["serial"])
    except (ValueError, KeyError, TypeError):
        return None
