"""Wheels: what they are called, and the simulated device's wheel with another release in the plugin's metadata."""

from __future__ import annotations

import hashlib
import re
import zipfile
from pathlib import Path

from . import bytecode

# What setup.py of simulator/torch writes: the metadata that libraries read the vendor's release from.
_METADATA = re.compile(r"habana_torch_plugin-[^/]+\.egg-info/")
_LABEL = "+gaudi3.simulator"


def name_and_version(wheel: Path) -> tuple[str, str]:
    """Distribution and version, from the file's name."""
    name, version, *_ = wheel.name.split("-")
    return name.replace("_", "-"), version


def file_name(wheel: Path) -> str:
    """The name that pip wants a wheel to have, from what is in it, whatever it is kept as."""
    with zipfile.ZipFile(wheel) as archive:
        tags = next(name for name in archive.namelist() if name.endswith(".dist-info/WHEEL"))
        text = archive.read(tags).decode()
    (tag,) = [line.partition(": ")[2].strip() for line in text.splitlines() if line.startswith("Tag: ")]
    return f"{tags.partition('.dist-info/')[0]}-{tag}.whl"


def requirements(wheels: Path) -> str:
    """Exactly the wheels of a folder, with their digests, as pip reads them in the folder above.

    By file and not by name: pip may be configured to look for wheels in other places too.
    """
    lines = []
    for path in sorted(wheels.glob("*.whl")):
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        lines.append(f"./{path.parent.name}/{path.name} --hash=sha256:{digest}\n")
    return "".join(lines)


def of_release(device: Path, release: str, target: Path) -> None:
    """Copy the wheel of the simulated device, with the metadata of habana-torch-plugin for ``1.24.0-1007``."""
    version = release.replace("-", ".") + _LABEL
    folder = f"habana_torch_plugin-{version}.egg-info/"
    rows: list[list[str]] = []
    with zipfile.ZipFile(device) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        record = next(name for name in old.namelist() if name.endswith(".dist-info/RECORD"))
        for info in sorted(old.infolist(), key=lambda each: each.filename):
            if info.filename == record or info.is_dir():
                continue
            content = old.read(info)
            path = _METADATA.sub(folder, info.filename)
            if path == f"{folder}PKG-INFO":
                content = re.sub(rb"(?m)^Version: .*$", f"Version: {version}".encode(), content)
            rows.append(bytecode.recorded(path, content))
            bytecode.put(new, path, content, info.external_attr)
        bytecode.put(new, record, bytecode.table([*rows, [record, "", ""]]))
