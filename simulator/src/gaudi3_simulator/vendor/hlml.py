"""``libhlml.so`` of a release: compiled from ``simulator/hlml`` with this machine's C compiler, once per set of inputs.

The library takes nothing but the C library, and of that only what glibc had long before the oldest system that the
vendor supports, so what is built here runs on every node.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from .. import SimulatorError
from ..home import home
from ..node import releases

LIBRARY = "/usr/lib/habanalabs/libhlml.so"

# The library's own name inside the file is UNCONFIRMED.
_FLAGS = (
    "-std=c11", "-O2", "-fPIC", "-shared", "-pthread", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror",
    "-Wl,-soname,libhlml.so", "-Wl,-z,defs", "-Wl,--build-id=sha1", "-s",
)  # fmt: skip


def source_folder() -> Path | None:
    """Sources of the library: from the checkout, or beside this package when it is installed; None without them."""
    here = Path(__file__).resolve().parent
    found = (folder for folder in (here.parents[2] / "hlml", here / "hlml") if (folder / "hlml.h").exists())
    return next(found, None)


def source_files() -> list[Path]:
    """All that the library is compiled from, in order."""
    folder = source_folder()
    return sorted(path for path in folder.iterdir() if path.suffix in (".c", ".h")) if folder else []


def library(release: str) -> Path:
    """The compiled library of ``release`` (``1.23.0-695``)."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise SimulatorError("The simulated libhlml.so needs a C compiler: apt-get install gcc libc6-dev.")
    sources = source_files()
    if not sources:
        raise SimulatorError("The sources of the simulated libhlml.so (simulator/hlml) are missing: use a checkout.")
    command = [compiler, *_FLAGS, *_definitions(release)]
    version = subprocess.run([compiler, "--version"], capture_output=True, check=True).stdout
    digest = hashlib.sha256("\0".join(command).encode() + version)
    for path in sources:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    kept = home() / "hlml" / f"libhlml-{digest.hexdigest()[:16]}.so"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        _compile([*command, *(str(path) for path in sources if path.suffix == ".c")], kept)
    return kept


def _definitions(release: str) -> list[str]:
    major, minor = releases.version_key(release)[:2]
    return [f"-DHLML_API={major * 100 + minor}", f'-DHLML_RELEASE="{release}"']


def _compile(command: list[str], target: Path) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    os.close(descriptor)
    try:
        done = subprocess.run([*command, "-o", temporary], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SimulatorError(f"The simulated libhlml.so could not be compiled: {done.stderr.strip()}")
        Path(temporary).chmod(0o644)
        Path(temporary).replace(target)
    finally:
        Path(temporary).unlink(missing_ok=True)
