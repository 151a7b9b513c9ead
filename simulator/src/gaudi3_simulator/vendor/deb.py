"""Debian packages written without dpkg-deb, byte for byte the same each time.

A ``.deb`` is an ``ar`` archive of three members: the format version, the control archive and the data
archive.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

# Every file of every package carries this time, so that equal inputs give equal packages.
EPOCH = 1_735_689_600  # 2025-01-01 00:00:00 UTC


@dataclass(frozen=True)
class File:
    """A file that a package installs."""

    text: str | bytes
    mode: int = 0o644

    @property
    def data(self) -> bytes:
        """What the file holds."""
        return self.text.encode() if isinstance(self.text, str) else self.text


@dataclass(frozen=True)
class Package:
    """One binary package of one release."""

    name: str
    version: str
    architecture: str
    summary: str
    depends: tuple[str, ...] = ()
    files: Mapping[str, File] = field(default_factory=dict)
    scripts: Mapping[str, str] = field(default_factory=dict)

    @property
    def filename(self) -> str:
        """File name as the vendor's pool has it."""
        return f"{self.name}_{self.version}_{self.architecture}.deb"

    @property
    def control(self) -> dict[str, str]:
        """Fields that both the package and the index carry, in their order."""
        size = sum(len(each.data) for each in self.files.values())
        fields = {
            "Package": self.name,
            "Version": self.version,
            "Architecture": self.architecture,
            "Maintainer": "gaudi3.scale contributors <simulator@gaudi3-scale.invalid>",
            "Installed-Size": str(max(1, -(-size // 1024))),
            "Depends": ", ".join(self.depends),
            "Section": "simulated",
            "Priority": "optional",
            "Description": f"Simulated stand-in for {self.name}\n"
            f" {self.summary}\n Made by the gaudi3.scale simulator: it holds nothing of the vendor's and runs on no "
            "hardware.",
        }
        return {key: value for key, value in fields.items() if value}

    @cached_property
    def content(self) -> bytes:
        """The package file itself."""
        configuration = "".join(f"{path}\n" for path in sorted(self.files) if path.startswith("/etc/"))
        control = {"control": File(stanza(self.control)), "md5sums": File(self._md5sums())}
        if configuration:
            control["conffiles"] = File(configuration)
        control.update({name: File(text, 0o755) for name, text in self.scripts.items()})
        return _ar(
            {
                "debian-binary": b"2.0\n",
                "control.tar.gz": tar_gz(control),
                "data.tar.gz": tar_gz({path.lstrip("/"): each for path, each in self.files.items()}),
            }
        )

    def _md5sums(self) -> str:
        return "".join(
            f"{hashlib.md5(each.data, usedforsecurity=False).hexdigest()}  {path.lstrip('/')}\n"
            for path, each in sorted(self.files.items())
        )


def stanza(fields: Mapping[str, str]) -> str:
    """One paragraph of a control file or an index."""
    return "".join(f"{key}: {value}\n" for key, value in fields.items())


def tar_gz(files: Mapping[str, File]) -> bytes:
    """An archive of files, with the folders above them."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.GNU_FORMAT) as archive:
        folders = sorted({parent for path in files for parent in _parents(path)})
        for folder in ["", *folders]:
            entry = tarfile.TarInfo(f"./{folder}")
            entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, 0o755, EPOCH
            archive.addfile(entry)
        for path, each in sorted(files.items()):
            data = each.data
            entry = tarfile.TarInfo(f"./{path}")
            entry.size, entry.mode, entry.mtime = len(data), each.mode, EPOCH
            archive.addfile(entry, io.BytesIO(data))
    return gzip.compress(raw.getvalue(), mtime=EPOCH)


def _parents(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[: count + 1]) for count in range(len(parts))]


def _ar(members: Mapping[str, bytes]) -> bytes:
    result = bytearray(b"!<arch>\n")
    for name, data in members.items():
        result += f"{name:<16}{EPOCH:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode()
        result += data + b"\n" * (len(data) % 2)
    return bytes(result)
