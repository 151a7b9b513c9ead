# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Python wheels and what they require, with nothing but the standard library."""

from __future__ import annotations

import base64
import configparser
import csv
import glob
import hashlib
import os
import re
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Optional

from ._refusal import Refusal

#: Files and folders which do not get into a wheel, wherever they are, and at the top of the source tree only.
LEFT_OUT = re.compile(r"\..*|__pycache__|.*\.egg-info|.*\.pyc")
LEFT_OUT_AT_TOP = re.compile(r"tests|dist|build")
#: Folders beside the trainer's of which its wheel has a part (``trainer/hatch_build.py``).
BESIDE = ("benchmark-tool", "doctor", "migration", "watch")

_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^]]*\])?\s*\(?([^;)]*)\)?\s*(?:;(.*))?$")
_CLAUSE = re.compile(r"(===|==|~=|!=|<=|>=|<|>)\s*([A-Za-z0-9.+!_-]+?)(\.\*)?$")


@dataclass(frozen=True)
class Wheel:
    """What a wheel says about itself."""

    name: str
    version: str
    requires_python: str
    requirements: tuple[str, ...]
    #: Console scripts: name to ``module:function``.
    scripts: Mapping[str, str]


def sha256_of(path: str) -> str:
    """SHA-256 of a file."""
    digest = hashlib.sha256()
    with open(path, "rb") as handle:
        for block in iter(lambda: handle.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def is_intact(folder: str) -> bool:
    """Whether an unpacked wheel has all files of its RECORD, as they were."""
    records = glob.glob(os.path.join(glob.escape(folder), "*.dist-info", "RECORD"))
    if len(records) != 1:
        return False
    with open(records[0], encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.reader(stream) if len(row) == 3 and row[1].startswith("sha256=")]
    return bool(rows) and all(recorded_digest(os.path.join(folder, name)) == said for name, said, _size in rows)


def recorded_digest(path: str) -> str:
    """SHA-256 of a file as a RECORD has it; empty where there is no file."""
    try:
        digest = bytes.fromhex(sha256_of(path))
    except OSError:
        return ""
    return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def source_files(folder: str) -> list[str]:
    """Files of a source tree that can get into a wheel, relative to it and in order."""
    found = []
    for here, folders, files in os.walk(folder):
        folders[:] = [
            name
            for name in folders
            if not LEFT_OUT.fullmatch(name) and not (here == folder and LEFT_OUT_AT_TOP.fullmatch(name))
        ]
        found += [os.path.relpath(os.path.join(here, name), folder) for name in files if not LEFT_OUT.fullmatch(name)]
    return sorted(found)


def source_folders(trainer: str) -> dict[str, str]:
    """The source trees of the trainer's wheel, by where they lie seen from each other: its own, and those beside it."""
    above = os.path.dirname(os.path.realpath(trainer))
    beside = {name: os.path.join(above, name) for name in BESIDE}
    found = {name: folder for name, folder in beside.items() if os.path.isfile(os.path.join(folder, "pyproject.toml"))}
    return {"trainer": trainer, **found}


def source_digest(trainer: str) -> str:
    """SHA-256 over names and contents of the source trees of the trainer's wheel."""
    digest = hashlib.sha256()
    for place, folder in source_folders(trainer).items():
        for name in source_files(folder):
            digest.update(f"{place}/{name}\0{sha256_of(os.path.join(folder, name))}\n".encode())
    return digest.hexdigest()


def read_wheel(path: str) -> Wheel:
    """Read a wheel's metadata."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            info = next(name for name in names if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
            metadata = archive.read(info).decode("utf-8")
            entry = info.rpartition("/")[0] + "/entry_points.txt"
            entries = archive.read(entry).decode("utf-8") if entry in names else ""
    except (OSError, zipfile.BadZipFile, StopIteration, UnicodeDecodeError):
        raise Refusal(f"{path} is not a readable wheel: give the path of a .whl file.") from None
    fields: dict[str, list[str]] = {}
    for line in metadata.partition("\n\n")[0].splitlines():
        key, colon, value = line.partition(":")
        if colon and not line[:1].isspace():
            fields.setdefault(key.strip().lower(), []).append(value.strip())
    return Wheel(
        name=fields.get("name", [""])[0],
        version=fields.get("version", [""])[0],
        requires_python=fields.get("requires-python", [""])[0],
        requirements=tuple(fields.get("requires-dist", [])),
        scripts=_console_scripts(entries),
    )


def unpacked_scripts(folder: str) -> dict[str, str]:
    """The console scripts of the one package that is unpacked in a folder."""
    found: dict[str, str] = {}
    for path in glob.glob(os.path.join(glob.escape(folder), "*.dist-info", "entry_points.txt")):
        with open(path, encoding="utf-8") as stream:
            found.update(_console_scripts(stream.read()))
    return found


def _console_scripts(entries: str) -> dict[str, str]:
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(entries)
    return dict(parser["console_scripts"]) if parser.has_section("console_scripts") else {}


def python_admitted(requires_python: str, version: str) -> bool:
    """Whether a Python version fulfils a wheel's Requires-Python."""
    return Requirement("python", requires_python.replace(" ", "")).admits(version)


def normal(name: str) -> str:
    """A distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def release(version: str) -> tuple[int, ...]:
    """The numbers of a version; local parts and pre-release marks do not count (2.6.0+hpu is 2.6)."""
    match = re.match(r"v?(?:\d+!)?(\d+(?:\.\d+)*)", version.strip())
    numbers = tuple(int(part) for part in match.group(1).split(".")) if match else (0,)
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers = numbers[:-1]
    return numbers


@dataclass(frozen=True)
class Requirement:
    """One requirement of a wheel, such as ``lightning<2.7,>=2.6``."""

    name: str
    clauses: str

    @classmethod
    def parse(cls, text: str) -> Optional[Requirement]:
        """Read a requirement; None for one that holds under a condition only, such as an extra."""
        match = _REQUIREMENT.match(text)
        if not match:
            raise Refusal(f"{text!r} is not a requirement as wheels write them.")
        if match.group(3):
            return None
        return cls(normal(match.group(1)), match.group(2).replace(" ", ""))

    def admits(self, version: str) -> bool:
        """Whether an installed version will do."""
        return all(_admits(clause, version) for clause in self.clauses.split(",") if clause)

    def __str__(self) -> str:
        return self.name + self.clauses


def _admits(clause: str, version: str) -> bool:
    match = _CLAUSE.match(clause.strip())
    if not match:
        raise Refusal(f"{clause!r} is not a version clause as wheels write them.")
    sign, bound, star = match.groups()
    have, want = release(version), release(bound)
    parts = bound.split("+")[0].split(".")
    padded = have + (0,) * len(parts)
    prefix = tuple(int(part) for part in parts if part.isdigit())
    if star:
        inside = padded[: len(prefix)] == prefix
        return inside if sign in ("==", "===") else not inside
    if sign == "~=":
        return have >= want and padded[: len(prefix) - 1] == prefix[:-1]
    return {
        "==": have == want,
        "===": have == want,
        "!=": have != want,
        "<": have < want,
        "<=": have <= want,
        ">": have > want,
        ">=": have >= want,
    }[sign]


def unmet(requirements: Iterable[str], installed: Mapping[str, str]) -> list[tuple[Requirement, Optional[str]]]:
    """Requirements which are not fulfilled, each with the version found instead."""
    result: list[tuple[Requirement, Optional[str]]] = []
    for text in requirements:
        wanted = Requirement.parse(text)
        if wanted is None:
            continue
        version = installed.get(wanted.name)
        if version is None or not wanted.admits(version):
            result.append((wanted, version))
    return result


def described(missing: Iterable[tuple[Requirement, Optional[str]]]) -> str:
    """Unmet requirements, for use inside a sentence."""
    return ", ".join(
        f"{wanted} ({'missing' if version is None else 'found ' + version})" for wanted, version in missing
    )
