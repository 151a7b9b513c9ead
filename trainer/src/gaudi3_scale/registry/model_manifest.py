"""What a registered model consists of, and where it comes from: a file of its own beside the model's files."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gaudi3_scale.errors import ConfigError

FILE = "gaudi3_manifest.json"
FORMAT = 1
LARGEST = 16 * 2**20
"""Bytes of a manifest that is read."""
MOST_FILES = 10_000
PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")
"""Of a file's path: none is hidden, and none leads out of its folder."""
DEEPEST = 3
DIGEST = re.compile(r"[0-9a-f]{64}")


class TamperedError(ConfigError):
    """What a registry holds is not what was registered."""


@dataclass(frozen=True)
class FileEntry:
    """One file."""

    size: int
    sha256: str


@dataclass(frozen=True)
class ModelManifest:
    """The files of a model, by their paths below its folder, and its lineage."""

    files: Mapping[str, FileEntry]
    lineage: Mapping[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(entry.size for entry in self.files.values())

    def dump(self) -> str:
        """As JSON, equal for equal manifests."""
        files = {name: {"size": each.size, "sha256": each.sha256} for name, each in sorted(self.files.items())}
        return json.dumps({"format": FORMAT, "files": files, "lineage": self.lineage}, indent=1, sort_keys=True) + "\n"

    @property
    def content(self) -> str:
        """SHA-256 over the files alone: equal where two registrations are of the same model."""
        return hashlib.sha256(json.dumps({n: e.sha256 for n, e in sorted(self.files.items())}).encode()).hexdigest()

    @classmethod
    def of_folder(cls, folder: Path, lineage: Mapping[str, Any]) -> ModelManifest:
        """Read every file of a folder; ConfigError for a name that could not be fetched again."""
        files = {}
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder).as_posix()
            if path.is_dir() and not path.is_symlink():
                continue
            if path.is_symlink() or not path.is_file() or not is_plain(name):
                raise ConfigError(
                    f"{path} cannot be registered, as it is a link or has no plain name: take it out of the folder."
                )
            if name != FILE:
                files[name] = entry_of(path)
        if not files:
            raise ConfigError(f"{folder} has no files: give the folder of an export.")
        return cls(files, lineage)

    @classmethod
    def load(cls, text: bytes, where: str) -> ModelManifest:
        """From what a registry gave; TamperedError where that is no manifest. Names in it are looked at one by one."""
        try:
            read = json.loads(text)
            form = read["format"]
            files = {str(name): FileEntry(_count(e["size"]), _digest(e["sha256"])) for name, e in read["files"].items()}
            lineage = dict(read["lineage"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise TamperedError(
                f"{where} has a manifest that is none ({type(error).__name__}): it is not used; register it again."
            ) from None
        if form != FORMAT:
            raise ConfigError(f"{where} has a manifest of format {form!r}, and this version reads {FORMAT}: update it.")
        odd = next((name for name in files if not is_plain(name) or name == FILE), None)
        if odd is not None or not 0 < len(files) <= MOST_FILES:
            raise TamperedError(
                f"{where} has a manifest with {f'the file {odd!r}' if odd is not None else f'{len(files)} files'}, "
                "which no registration writes: it is not used; register it again."
            )
        return cls(files, lineage)

    def check(self, name: str, path: Path, where: str) -> None:
        """Read a file whole; TamperedError names it where it is another than was registered."""
        wanted = self.files[name]
        try:
            if path.is_symlink() or not path.is_file():
                raise FileNotFoundError
            size = path.stat().st_size
            found = entry_of(path) if size == wanted.size else FileEntry(size, "")
        except OSError:
            raise TamperedError(f"{where} lacks the file {name}: it is not used; register it again.") from None
        if found != wanted:
            what = f"has {size:,} bytes instead of {wanted.size:,}" if size != wanted.size else "has another SHA-256"
            raise TamperedError(
                f"In {where} the file {name} {what} than when it was registered: it is not used; fetch it again, and "
                "if it stays so, find out who wrote to the registry's storage and register the model again."
            )


def is_plain(name: str) -> bool:
    """Is this the path of a file within its folder, of plain names?

    >>> is_plain("model.safetensors"), is_plain("../model.safetensors"), is_plain("/etc/passwd")
    (True, False, False)
    """
    parts = name.split("/")
    return len(parts) <= DEEPEST and all(PART.fullmatch(part) for part in parts)


def entry_of(path: Path) -> FileEntry:
    """Size and digest of a file."""
    with path.open("rb") as file:
        return FileEntry(path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest())


def digest_of(text: str | bytes) -> str:
    """SHA-256 of a manifest, which stands in the registry beside it."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(value)
    return value


def _digest(value: Any) -> str:
    if not isinstance(value, str) or not DIGEST.fullmatch(value):
        raise ValueError(value)
    return value
