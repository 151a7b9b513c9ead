"""PyTorch's tarball under the vendor's names, with the simulated device in the place of the closed plugin.

It holds the CPU build of torch, the simulated `hpu` device and what torch needs, and an ``install.sh`` with the
vendor's arguments (HabanaAI/Setup_and_Install, dockerfiles/pytorch/install_packages.sh). What the vendor's own script
does inside, and what else the vendor's tarball holds, is not public. The version in the file's name is that of the
release. The README in the tarball, which ``install.sh`` prints, says which torch it really is.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from .. import RequestError
from ..node import releases as known
from . import bytecode, wheels
from .deb import EPOCH

# The first release of each system, from the vendor's support matrix, which does not show 1.15, 1.19 and 1.20: those are
# UNCONFIRMED, and so are 1.24.0 and 1.24.2.
FIRST = {"ubuntu22.04": (1, 15), "ubuntu24.04": (1, 18), "rhel9.4": (1, 17), "rhel9.6": (1, 22)}
# The first release without a system.
DROPPED = {"rhel9.4": (1, 24, 1)}
_INSTALL = Path(__file__).resolve().parent / "install.sh"

# Version of PyTorch in the names of a release's tarball and image, by minor release. 1.19 to 1.22 are from
# HabanaAI/Setup_and_Install, dockerfiles/common.mk of each release, 1.15 from an image's name, the others from the
# vendor's support matrix. That patch releases keep the version of their minor release is UNCONFIRMED, and 1.24.1
# shows that they need not.
_BY_MINOR = {
    "1.15": "2.2.0",
    "1.16": "2.2.2",
    "1.17": "2.3.1",
    "1.18": "2.4.0",
    "1.19": "2.5.1",
    "1.20": "2.6.0",
    "1.21": "2.6.0",
    "1.22": "2.7.1",
    "1.23": "2.9.0",
}
# From names of images and wheels that others use; no support matrix of 1.24 was found.
_BY_RELEASE = {"1.24.0": "2.10.0", "1.24.1": "2.11.0"}

Gather = Callable[[Path], None]
"""Puts the wheels of torch, of what it needs and of numpy into a folder."""


def offered() -> dict[str, str]:
    """The version of PyTorch in the names of each published release that has a public one."""
    found = {}
    for number, row in known.RELEASES.items():
        version = _BY_RELEASE.get(number) or _BY_MINOR.get(number.rpartition(".")[0])
        if version:
            found[f"{number}-{row[0]}"] = version
    return found


def torch_version(release: str) -> str:
    """The version of PyTorch that the vendor's names for ``release`` (``1.23.0-695``) carry."""
    versions = offered()
    if release not in versions:
        raise RequestError(
            f"No public source names a PyTorch version of release {release}: give one of {', '.join(versions)}."
        )
    return versions[release]


def is_for(release: str, system: str) -> bool:
    """Whether the vendor's matrix has the system (``rhel9.4``) for a release."""
    key = known.version_key(release)
    return FIRST[system] <= key and not (system in DROPPED and key >= DROPPED[system])


def systems(release: str) -> tuple[str, ...]:
    """The systems that the tarball of a release is for, as its folders name them."""
    return tuple(system.replace(".", "") for system in FIRST if is_for(release, system))


def paths(dest: Path, release: str) -> list[Path]:
    """Where the tarball of a release lies, for each of its systems."""
    number, _, build = release.partition("-")
    folder = dest / "artifactory" / "gaudi-pt-modules" / number / build / "pytorch"
    name = f"pytorch_modules-v{torch_version(release)}_{number}_{build}.tgz"
    return [folder / system / name for system in systems(release)]


def _record(dest: Path) -> Path:
    return dest.with_name(f"{dest.name}-signing") / "built-pytorch.json"


def _read(record: Path) -> dict[str, str]:
    return dict(json.loads(record.read_text())) if record.exists() else {}


def built(dest: Path) -> list[str]:
    """The releases whose tarballs were built, of whatever sources."""
    return [release for release in _read(_record(dest)) if release in offered()]


def build_shelf(
    dest: Path,
    releases: Sequence[str],
    python: str,
    device: Path,
    gather: Gather,
    compiled: Callable[[Path], None],
    inputs: str,
) -> list[Path]:
    """Build the tarballs of ``releases`` for a Python, or leave them alone where they are what would be built.

    ``device`` is the wheel of the simulated device, ``inputs`` stands for what ``gather`` gets, ``compiled`` puts
    bytecode into a folder's wheels. One file serves every system, by hard links.
    """
    targets = {release: paths(dest, release) for release in releases}
    record, found = _record(dest), _read(_record(dest))
    digest = hashlib.sha256(f"{python}\0{inputs}\0{device.name}\0".encode())
    for source in (Path(__file__), Path(wheels.__file__), Path(bytecode.__file__), _INSTALL, device):
        digest.update(source.read_bytes())
    stale = [
        release
        for release, files in targets.items()
        if found.get(release) != digest.hexdigest() or not all(path.is_file() for path in files)
    ]
    if stale:
        dest.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=dest.parent, prefix="pytorch-") as work:
            folder = Path(work) / "wheels"
            folder.mkdir()
            gather(folder)
            for release in stale:
                wheels.of_release(device, release, folder / wheels.file_name(device))
                compiled(folder)
                tarball = Path(work) / "pytorch.tgz"
                _write(tarball, folder, release, python)
                _move(tarball, targets[release])
                found[release] = digest.hexdigest()
                record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                record.write_text(json.dumps(found))
    return [path for files in targets.values() for path in files]


def readme(release: str, python: str, folder: Path) -> str:
    """What the tarball holds, in words."""
    versions = dict(wheels.name_and_version(path) for path in folder.glob("*.whl"))
    return (
        f"This is a simulated tarball, made by the gaudi3.scale simulator. It holds torch {versions['torch']}, "
        f"pytorch.org's build for CPUs, and\ngaudi3-hpu-simulator {versions['gaudi3-hpu-simulator']}, not PyTorch "
        f"{torch_version(release)} of release {release}, which the file's name stands for.\n"
        f"The wheels are for Python {python}, whatever system the folder names. `fork` and `public` install the same.\n"
        "Nothing of the vendor's is in it, and it runs on no hardware.\n"
    )


def _write(tarball: Path, folder: Path, release: str, python: str) -> None:
    number, _, build = release.partition("-")
    texts = {
        "README": readme(release, python, folder),
        "python": f"{python}\n",
        "release": f"{number} {build}\n",
        "requirements.txt": wheels.requirements(folder),
    }
    # Wheels are compressed already: packing them again would take a minute and save nothing.
    with (
        tarball.open("wb") as raw,
        gzip.GzipFile("", "wb", compresslevel=0, fileobj=raw, mtime=EPOCH) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive,
    ):
        archive.addfile(*_entry("install.sh", _INSTALL.read_bytes(), 0o755))
        for name, text in texts.items():
            archive.addfile(*_entry(name, text.encode(), 0o644))
        for path in sorted(folder.glob("*.whl")):
            entry = tarfile.TarInfo(f"wheels/{path.name}")
            entry.size, entry.mode, entry.mtime = path.stat().st_size, 0o644, EPOCH
            with path.open("rb") as stream:
                archive.addfile(entry, stream)


def _entry(name: str, content: bytes, mode: int) -> tuple[tarfile.TarInfo, io.BytesIO]:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = len(content), mode, EPOCH
    return entry, io.BytesIO(content)


def _move(tarball: Path, targets: Sequence[Path]) -> None:
    """Move a file to the first of its places and link it from the others."""
    for path in targets:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A tarball of a release whose version in the name has changed since.
        for older in set(path.parent.glob("*.tgz")):
            older.unlink()
    shutil.move(tarball, targets[0])
    targets[0].chmod(0o644)
    for path in targets[1:]:
        os.link(targets[0], path)
