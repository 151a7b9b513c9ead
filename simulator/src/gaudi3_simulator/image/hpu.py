"""The simulated `hpu` device as a wheel, built for the nodes' Python.

The compiler comes in a Debian of its own, beside torch. The result is kept until a source or torch changes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from ..home import home

_COMPILER = "g++,ninja-build,python3,libpython3-dev"
_BUILD = "from setuptools.build_meta import build_wheel; build_wheel('/out')"

Run = Callable[[list[str], str], None]
"""Runs a command; the text says in an error what failed."""


def source_folder() -> Path | None:
    """Sources of the device: from the checkout, or beside this package when it is installed; None without them."""
    here = Path(__file__).resolve().parent
    found = (folder for folder in (here.parents[2] / "torch", here / "torch") if (folder / "setup.py").exists())
    return next(found, None)


def source_files() -> list[Path]:
    """All that the built device depends on, in order."""
    folder = source_folder()
    if folder is None:
        return []
    kept = [folder / name for name in ("pyproject.toml", "setup.py")]
    for part, endings in (("csrc", (".h", ".cpp")), ("src", (".py",))):
        kept += [path for path in (folder / part).rglob("*") if path.suffix in endings]
    return sorted(kept)


def kept_wheel(requirements: Path, python: str) -> Path:
    """Where the built device is kept for a Python, by the hash of its inputs."""
    digest = hashlib.sha256(requirements.read_bytes())
    for path in source_files():
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return home() / f"hpu-python{python}-{digest.hexdigest()[:16]}.whl"


def ensure_wheel(
    packages: Callable[[], Path],
    work: Path,
    requirements: Path,
    python: str,
    debian: Callable[[Path, str], None],
    run: Run,
) -> Path:
    """The wheel of the device; where it is not kept yet, it is built against `packages` of that Python with torch.

    `work` is a folder on the same file system as these; `debian` makes a Debian with some packages in a new folder.
    """
    kept = kept_wheel(requirements, python)
    if not kept.exists():
        _build(packages(), work / "compiler", kept, debian, run)
        for older in set(home().glob(f"hpu-python{python}-*.whl")) - {kept}:
            older.unlink()
    return kept


def _build(packages: Path, root: Path, wheel: Path, debian: Callable[[Path, str], None], run: Run) -> None:
    source = source_folder()
    assert source is not None
    debian(root, _COMPILER)
    for path in source_files():
        target = root / "source" / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    (root / "out").mkdir()
    shutil.copytree(packages, root / "packages", copy_function=os.link, symlinks=True)
    command = ["env", "PYTHONPATH=/packages", "sh", "-c", f'cd /source && exec python3 -c "{_BUILD}"']
    run(["chroot", str(root), *command], "Building the simulated hpu device")
    (built,) = (root / "out").glob("*.whl")
    shutil.move(built, wheel)
    shutil.rmtree(root)
