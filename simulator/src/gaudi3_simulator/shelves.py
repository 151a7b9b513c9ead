"""What the simulated vendor's repository has: releases, a fault, and shelves that are built only when asked for.

The choice is kept, and every cluster of this simulator home gets its packages from the same repository.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import RequestError, SimulatorError
from .at_once import at_once
from .home import home, write_atomically
from .image import BESIDE_TORCH, ensure_device, ensure_image, pip_runs, requirements_files
from .podman import Podman
from .suggestions import meant
from .systems import DEFAULT, SYSTEMS
from .vendor import (
    DEFAULT_RELEASE,
    FAULTS,
    RELEASES,
    Fault,
    build_repository,
    bytecode,
    container_image,
    pip_index,
    pytorch,
)
from .vendor.repository import check_releases

SHELVES = ("pytorch", "image")

Log = Callable[[str], None]


@dataclass(frozen=True)
class Choice:
    """The releases of the repository, and what is wrong with it."""

    releases: tuple[str, ...] = RELEASES
    fault: Fault | None = None


def _record() -> Path:
    return home() / "vendor-signing" / "choice.json"


def chosen() -> Choice:
    """The last choice, or the default where none was made."""
    try:
        record = json.loads(_record().read_text())
    except FileNotFoundError:
        return Choice()
    return Choice(tuple(record["releases"]), record["fault"])


def build_chosen() -> Choice:
    """Build the repository that was chosen last, or leave it alone where it is built."""
    choice = chosen()
    build_repository(home() / "vendor", choice.releases, choice.fault)
    return choice


def arrange(releases: Sequence[str], fault: str | None, shelves: Sequence[str], log: Log) -> Choice:
    """Build the repository with ``releases`` (none given: the default ones), a fault or none, and further shelves."""
    check_releases(releases)
    found = next((each for each in FAULTS if each == fault), None)
    if fault and not found:
        raise RequestError(f"--fault was {fault}: give one of {', '.join(FAULTS)}.{meant(fault, FAULTS)}")
    for shelf in shelves:
        if shelf not in SHELVES:
            raise RequestError(f"--shelf was {shelf}: give one of {', '.join(SHELVES)}.{meant(shelf, SHELVES)}")
    # Not of each release that the repository has by default: a tarball has 200 MB.
    wanted = tuple(releases) or (DEFAULT_RELEASE,)
    if shelves:
        for release in wanted:
            pytorch.torch_version(release)
    choice = Choice(tuple(releases) or RELEASES, found)
    build_repository(home() / "vendor", choice.releases, choice.fault)
    write_atomically(_record(), json.dumps({"releases": choice.releases, "fault": choice.fault}))
    if "pytorch" in shelves:
        for path in _pytorch(wanted, log):
            log(f"  http://vault/{path.relative_to(home() / 'vendor')}")
    if "image" in shelves:
        _image(wanted, log)
    return choice


def ensure_pytorch(log: Log) -> None:
    """The tarballs that nodes get PyTorch from, and the index of what the trainer needs beside it."""
    wanted = dict.fromkeys((DEFAULT_RELEASE, *pytorch.built(home() / "vendor")))
    at_once(lambda: _pytorch(tuple(wanted), log), lambda: _index(log))


def _download(folder: Path, what: str, arguments: list[str]) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:", "--require-hashes"]
    command += ["--dest", str(folder)]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise SimulatorError(f"pip could not download {what}: {last}")


def _compile(folder: Path, log: Log) -> None:
    """Put bytecode into a folder's wheels: of the nodes' Python, whatever runs this program."""
    podman = Podman()
    podman.run(
        "run", "--rm", "--network", "none", "-v", f"{folder}:/wheels",
        "-v", f"{bytecode.__file__}:/bytecode.py:ro", ensure_image(podman, log), "python3", "/bytecode.py", "/wheels",
        timeout=1800,
    )  # fmt: skip


def _inputs() -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in requirements_files())).hexdigest()


def _pytorch(releases: tuple[str, ...], log: Log) -> list[Path]:
    def gather(folder: Path) -> None:
        log(f"building PyTorch's tarball of {', '.join(releases)}")
        with tempfile.TemporaryDirectory() as work:
            for arguments in pip_runs(SYSTEMS[DEFAULT], Path(work), BESIDE_TORCH):
                _download(folder, "torch for the PyTorch shelf", arguments)

    device = ensure_device(log)
    python = SYSTEMS[DEFAULT].python
    return pytorch.build_shelf(
        home() / "vendor", releases, python, device, gather, lambda folder: _compile(folder, log), _inputs()
    )


def _index(log: Log) -> None:
    def gather(folder: Path) -> None:
        log("building the index of what the trainer needs beside PyTorch")
        _torch, beside = pip_runs(SYSTEMS[DEFAULT], folder)
        _download(folder, "the trainer's requirements", beside)
        _compile(folder, log)

    pip_index.build_index(home() / "vendor", gather, _inputs())


def _image(releases: tuple[str, ...], log: Log) -> None:
    """Hand a node image with torch out under the vendor's names, one for each release and system."""
    podman = Podman()
    source = ensure_image(podman, log, torch=True)
    digest = hashlib.sha256(source.encode())
    for path in sorted(Path(container_image.__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    record = home() / "vendor-signing" / "built-image.json"
    built = json.loads(record.read_text()) if record.exists() else {}
    shelf = home() / "vendor" / "v2"
    there = set(built["names"]) if built.get("inputs") == digest.hexdigest() and shelf.is_dir() else set()
    pairs = [(release, system) for release in releases for system in container_image.systems(release)]
    missing = [pair for pair in pairs if " ".join(pair) not in there]
    if not missing:
        return
    if not there:
        shutil.rmtree(shelf, ignore_errors=True)
    log("writing the image with torch under the vendor's names")
    with tempfile.TemporaryDirectory(dir=home(), prefix="layout-") as folder:
        layout = Path(folder) / "image"
        podman.run("save", "--quiet", "--format", "oci-dir", "--output", str(layout), source)
        for release, system in missing:
            log(f"  vault/{container_image.shelve(layout, home() / 'vendor', release, system)}")
    names = sorted(there | {" ".join(pair) for pair in missing})
    write_atomically(record, json.dumps({"inputs": digest.hexdigest(), "names": names}))
