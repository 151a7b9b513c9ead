"""The kernel that nodes show instead of this machine's, which all containers run on.

Programs ask the C library, which asks a library of ours first. Programs without the C library (those in Go) and the
node's own containers see the machine's.
"""

from __future__ import annotations

import re
from pathlib import Path

from .. import RequestError, compiled

LIBRARY = "/usr/lib/gaudi3-simulator/libuname.so"
PRELOADED = "/etc/ld.so.preload"

# As struct utsname takes it: 64 characters and the end. Headers' packages bear it, and apt's have no ~ in their names.
_RELEASE = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+[A-Za-z0-9.+_-]*")
_LONGEST = 64


def check(release: str) -> None:
    """Raise RequestError for what no kernel's release looks like."""
    if not _RELEASE.fullmatch(release) or len(release) > _LONGEST:
        raise RequestError(
            f"--kernel was {release!r}: give a release as 'uname -r' prints it, as in 6.8.0-51-generic, of at most "
            f"{_LONGEST} characters."
        )


def files(release: str) -> dict[str, bytes]:
    """Every file that makes a node show this kernel, by absolute path."""
    source = Path(__file__).resolve().parent / "uname.c"
    built = compiled.library("libuname.so", "kernel", [source], [f'-DKERNEL="{release}"'])
    return {LIBRARY: built.read_bytes(), PRELOADED: f"{LIBRARY}\n".encode()}
