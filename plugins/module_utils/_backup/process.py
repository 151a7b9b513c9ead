# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Runs another program: its secrets are in its environment or its input, and never in its arguments."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import Optional

from .._printable import printable


def command(
    argv: Sequence[str],
    environment: Optional[Mapping[str, str]] = None,
    stdin: Optional[str] = None,
    stdout: Optional[str] = None,
) -> tuple[int, str, str]:
    """Exit status, output, and the errors as one line. ``stdin`` and ``stdout`` are files; 127 for no such program."""
    with contextlib.ExitStack() as stack:
        given = stack.enter_context(open(stdin, "rb")).fileno() if stdin else subprocess.DEVNULL
        taken = subprocess.PIPE
        if stdout:
            taken = os.open(stdout, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            stack.callback(os.close, taken)
        try:
            done = subprocess.run(
                [*argv],
                stdin=given,
                stdout=taken,
                stderr=subprocess.PIPE,
                env={**os.environ, "LC_ALL": "C", **(environment or {})},
                check=False,
            )
        except FileNotFoundError:
            return 127, "", f"{argv[0]} is not on this machine"
    errors = " ".join(done.stderr.decode(errors="replace").split())
    return done.returncode, (done.stdout or b"").decode(errors="surrogateescape"), printable(errors, 300)
