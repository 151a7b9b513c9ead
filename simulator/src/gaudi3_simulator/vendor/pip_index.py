"""A package index of a site's own: pinned wheels for the nodes' Python, as pip reads them (PEP 503).

Nodes of a real site ask the public index or a mirror of it. Simulated ones need no way out of their network. The wheels
are not the public ones, as bytecode was put into them: the index has a list of its own, with their hashes.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from . import bytecode, wheels

LIST = "pypi/requirements.txt"
"""The pins of the index's wheels, one in a line, below the folder of the repository."""

Gather = Callable[[Path], None]
"""Puts the wheels into a folder."""


def build_index(dest: Path, gather: Gather, inputs: str) -> Path:
    """Build the index under ``dest``, or leave it alone where it is what would be built; gives its folder.

    ``inputs`` stands for what ``gather`` gets.
    """
    folder = dest / "pypi"
    sources = Path(__file__).read_bytes() + Path(bytecode.__file__).read_bytes()
    digest = hashlib.sha256(f"{inputs}\0".encode() + sources).hexdigest()
    record = dest.with_name(f"{dest.name}-signing") / "built-pypi.json"
    if folder.is_dir() and record.exists() and json.loads(record.read_text()) == digest:
        return folder / "simple"
    dest.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=dest.parent, prefix="pypi-") as work:
        new = Path(work) / "pypi"
        files = new / "files"
        files.mkdir(parents=True)
        gather(files)
        pins = []
        for path in sorted(files.glob("*.whl")):
            name, version = wheels.name_and_version(path)
            page = new / "simple" / name.lower().replace(".", "-") / "index.html"
            page.parent.mkdir(parents=True, exist_ok=True)
            with path.open("rb") as stream:
                sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
            pins.append(f"{name}=={version} --hash=sha256:{sha256}\n")
            with page.open("a") as output:
                output.write(f'<a href="../../files/{path.name}#sha256={sha256}">{path.name}</a><br>\n')
        (new / Path(LIST).name).write_text("".join(pins))
        for each in new.rglob("*"):
            each.chmod(0o755 if each.is_dir() else 0o644)
        shutil.rmtree(folder, ignore_errors=True)
        new.rename(folder)
    record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    record.write_text(json.dumps(digest))
    return folder / "simple"
