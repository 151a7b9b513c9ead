"""Libraries of simulated nodes, compiled with this machine's C compiler once per set of inputs.

They take nothing but the C library, and of that only what glibc had long before the oldest system that nodes run, so
what is built here runs on every node.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from . import SimulatorError
from .home import home

_FLAGS = (
    "-std=c11", "-O2", "-fPIC", "-shared", "-pthread", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror",
    "-Wl,-z,defs", "-Wl,--build-id=sha1", "-s",
)  # fmt: skip


def library(name: str, folder: str, sources: Sequence[Path], flags: Sequence[str]) -> Path:
    """The shared library ``name`` of C sources and headers, kept below ``folder`` of the simulator's home."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise SimulatorError(f"The simulated {name} needs a C compiler: apt-get install gcc libc6-dev.")
    command = [compiler, *_FLAGS, f"-Wl,-soname,{name}", *flags]
    version = subprocess.run([compiler, "--version"], capture_output=True, check=True).stdout
    digest = hashlib.sha256("\0".join(command).encode() + version)
    for path in sources:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    kept = home() / folder / f"{name.removesuffix('.so')}-{digest.hexdigest()[:16]}.so"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        _compile(name, [*command, *(str(path) for path in sources if path.suffix == ".c")], kept)
    return kept


def _compile(name: str, command: list[str], target: Path) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    os.close(descriptor)
    try:
        done = subprocess.run([*command, "-o", temporary], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SimulatorError(f"The simulated {name} could not be compiled: {done.stderr.strip()}")
        Path(temporary).chmod(0o644)
        Path(temporary).replace(target)
    finally:
        Path(temporary).unlink(missing_ok=True)
