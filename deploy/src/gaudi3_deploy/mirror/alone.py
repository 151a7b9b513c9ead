"""One run at a time fills a mirror, and a disk that does not take it is one sentence."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.messages import reason


@contextlib.contextmanager
def alone(where: Path) -> Iterator[None]:
    """Hold the folder of a mirror, which is made. The hold ends with the process, however that ends.

    What is written meanwhile can be read by a web server of another user, whatever this user's umask.

    Raises:
        UsageError: Another run fills it.
        DeployError: It cannot be written.
    """
    mask = os.umask(0o022)
    os.umask(mask & 0o022)
    try:
        where.mkdir(parents=True, exist_ok=True)
        handle = os.open(where, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _hold(handle, where)
            yield
        finally:
            os.close(handle)
    except OSError as error:
        raise DeployError(
            f"{error.filename or where} cannot be read or written ({reason(error)}): mend that, and start the command "
            "again, it goes on."
        ) from error
    finally:
        os.umask(mask)


def _hold(handle: int, where: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(f"{where} is being filled by another run: wait until it has ended, or end it.") from None
    except OSError:
        return  # a file system without such locks
