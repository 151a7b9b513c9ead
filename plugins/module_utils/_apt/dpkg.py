# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What dpkg has of packages, and how they are put on hold."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

#: Runs a program: argv to exit status, output, errors.
Run = Callable[[list[str]], "tuple[int, str, str]"]

QUERY = "${Package}\t${Version}\t${db:Status-Want}\t${db:Status-Status}\t${Depends}\n"


@dataclass(frozen=True)
class Installed:
    """A package as dpkg has it."""

    version: str
    held: bool
    depends: str = ""
    """Its ``Depends``, as it stands there."""


def query(dpkg_query: str, names: Sequence[str]) -> list[str]:
    """The command that shows packages, of which names may be patterns."""
    return [dpkg_query, "-W", "-f", QUERY, *names]


def read(output: str) -> dict[str, Installed]:
    """Installed packages by name, from the lines of ``query``."""
    found = {}
    for line in output.splitlines():
        name, version, want, status, depends = [*line.split("\t"), "", "", "", ""][:5]
        if status == "installed":
            found[name] = Installed(version, want == "hold", depends)
    return found


def mark(run: Run, command: Sequence[str], seconds: float) -> tuple[int, str, str]:
    """Call apt-mark, and wait up to ``seconds`` for another program that has dpkg's database; its last answer."""
    deadline = time.monotonic() + seconds
    while True:
        status, output, errors = run([*command])
        if status == 0 or "lock" not in errors or time.monotonic() >= deadline:
            return int(status), str(output), str(errors)
        time.sleep(1)
