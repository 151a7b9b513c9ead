"""Bytecode into wheels, so that nodes' pip need not compile them: run by the nodes' Python, as its version is in it.

    python3 bytecode.py FOLDER

gives each wheel of a folder the bytecode of its modules, unless it has some. Compiling is two thirds of what
installing PyTorch costs, and each node would do it again. The bytecode carries the hash of its source, and Python
compares the two: a module that somebody edits on a node is compiled again, as it would be anywhere.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import py_compile
import sys
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

# Of a node for whose Python the wheels are; pip compiles each module again otherwise.
PIP_CONF = "# The simulator's: its wheels bring their bytecode along.\n[install]\ncompile = no\n"
# deb.EPOCH, as an archive has it.
_MOMENT = (2025, 1, 1, 0, 0, 0)


def of(source: bytes, name: str, work: Path) -> bytes:
    """The bytecode of a module; empty where it has none, such as a template that is no Python."""
    draft, target = work / "module.py", work / "module.pyc"
    draft.write_bytes(source)
    try:
        py_compile.compile(
            str(draft), str(target), name, doraise=True, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH
        )
    except (py_compile.PyCompileError, SyntaxError, ValueError):
        return b""
    return target.read_bytes()


def cache_path(name: str) -> str:
    """Where Python looks for the bytecode of a module."""
    path = PurePosixPath(name)
    return str(path.parent / "__pycache__" / f"{path.stem}.{sys.implementation.cache_tag}.pyc")


def add(wheel: Path) -> None:
    """Give a wheel bytecode, in place."""
    with zipfile.ZipFile(wheel) as old, tempfile.TemporaryDirectory() as work:
        names = old.namelist()
        if any(name.endswith(".pyc") for name in names):
            return
        record = next(name for name in names if name.endswith(".dist-info/RECORD"))
        rows = list(csv.reader(io.StringIO(old.read(record).decode())))
        draft = wheel.with_suffix(".draft")
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as new:
            for info in old.infolist():
                if info.filename == record or info.is_dir():
                    continue
                content = old.read(info)
                new.writestr(info, content, zipfile.ZIP_DEFLATED, 1)
                # What is below .data goes elsewhere, as scripts do.
                if not info.filename.endswith(".py") or ".data/" in info.filename:
                    continue
                made = of(content, info.filename, Path(work))
                if made:
                    path = cache_path(info.filename)
                    rows.append(recorded(path, made))
                    put(new, path, made)
            put(new, record, table(rows))
    draft.replace(wheel)


def recorded(path: str, content: bytes) -> list[str]:
    """The row of a file in a wheel's RECORD."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return [path, f"sha256={digest}", str(len(content))]


def table(rows: list[list[str]]) -> bytes:
    """The text of a RECORD."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def put(archive: zipfile.ZipFile, path: str, content: bytes, attributes: int = 0o644 << 16) -> None:
    """Add a file to a wheel; equal contents give equal bytes."""
    entry = zipfile.ZipInfo(path, _MOMENT)
    entry.external_attr = attributes
    archive.writestr(entry, content, zipfile.ZIP_DEFLATED, 1)


if __name__ == "__main__":
    for each in sorted(Path(sys.argv[1]).glob("*.whl")):
        add(each)
