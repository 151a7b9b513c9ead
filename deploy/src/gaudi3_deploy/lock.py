"""One command at a time on a deployment: what one person confirms is not changed by another before it is applied."""

from __future__ import annotations

import contextlib
import fcntl
import getpass
import os
import shutil
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from gaudi3_deploy.errors import UsageError


@contextlib.contextmanager
def held(directory: Path, command: str) -> Iterator[None]:
    """Hold a deployment's directory. Raises UsageError, which names the holder, where another command does.

    The lock ends with the process, however that ends. Terraform that goes on by itself has a lock of its own.
    """
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    directory.chmod(0o700)
    with os.fdopen(os.open(directory / ".lock", os.O_RDWR | os.O_CREAT, 0o600), "r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = file.read().strip() or "another command"
            raise UsageError(
                f"Deployment {directory.name!r} is being worked on by {holder}: wait until it has ended, or end it."
            ) from None
        since = time.strftime("%Y-%m-%d %H:%M:%S")
        file.seek(0)
        file.truncate()
        file.write(
            f"{_user()} on {socket.gethostname()} (gaudi3-deploy {command}, process {os.getpid()}, since {since})"
        )
        file.flush()
        for plan in directory.glob("plan-*"):  # of a command that was killed
            shutil.rmtree(plan, ignore_errors=True)
        try:
            yield
        finally:
            file.truncate(0)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return f"user {os.getuid()}"
