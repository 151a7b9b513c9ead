"""Opens what a node reported of itself: a doctor's report (JSON), a support bundle (tar, gzipped), or hl-smi's table.

A report comes from another machine: it is data, of bounded size, and nothing in it names a place to write to.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import stat
import tarfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from .. import RequestError
from . import table

DOCTOR, BUNDLE, TABLE = "doctor's report", "support bundle", "table of hl-smi"
FORMAT = 1
#: Above the 900 kB that a doctor's report may have, and the 18 MiB of all texts of a bundle.
MAX_REPORT = 4 << 20
MAX_BUNDLE = 32 << 20
_MAX_MEMBERS = 2000
_DEPTH = 40
_TOP = "gaudi-support"
_EXAMPLE = "give what 'gaudi3-train doctor' or gaudi_support_bundle wrote"


@dataclass(frozen=True)
class Report:
    """One report. ``data`` is a doctor's; ``texts`` are a bundle's, by name, or the table."""

    kind: str
    content: bytes
    data: dict[str, Any] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    def section(self, name: str) -> dict[str, Any]:
        """What a section of a doctor's report found; empty where it found nothing or was not tried."""
        entry = self.data.get("sections", {}).get(name)
        found = entry.get("data") if isinstance(entry, dict) else None
        return found if isinstance(found, dict) else {}


def open_report(path: Path) -> Report:
    """The report in a file; ``RequestError`` in one sentence where there is none."""
    try:
        content = read_file(path, MAX_BUNDLE + 1)
    except OSError as error:
        raise RequestError(f"The report {path} cannot be read ({error.strerror}): {_EXAMPLE}.") from None
    if content is None:
        raise RequestError(f"The report {path} is no file: {_EXAMPLE}.")
    if content[:2] == b"PK":
        raise RequestError(f"The report {path} is a zip archive: {_EXAMPLE}, a JSON file or a tar archive.")
    if content[:2] == b"\x1f\x8b" or content[257:262] == b"ustar":
        _check_size(path, content, MAX_BUNDLE)
        return Report(BUNDLE, content, texts=_texts(path, content))
    _check_size(path, content, MAX_REPORT)
    if table.is_table(content):
        return Report(TABLE, content, texts={"hl-smi.txt": content.decode("utf-8", "replace")})
    return Report(DOCTOR, content, data=_doctor(path, content))


def read_file(path: Path, most: int) -> bytes | None:
    """A file up to a number of bytes; None of what is none, such as a pipe, which nobody may write to. OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    with os.fdopen(descriptor, "rb") as file:
        return file.read(most)


def _check_size(path: Path, content: bytes, most: int) -> None:
    if len(content) > most:
        raise RequestError(f"The report {path} has more than {most >> 20} MiB, which no report has: {_EXAMPLE}.")


def _doctor(path: Path, content: bytes) -> dict[str, Any]:
    try:
        data = json.loads(content.decode("utf-8-sig"))
    except (UnicodeDecodeError, ValueError, RecursionError):
        ended = content.rstrip()[-1:] != b"}" and content.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"
        how = "ends in the middle" if ended else "is no JSON"
        raise RequestError(f"The report {path} {how}: {_EXAMPLE}, whole.") from None
    if not isinstance(data, dict) or "sections" not in data or "format" not in data:
        raise RequestError(f"The report {path} is no doctor's report, as it has no format and sections: {_EXAMPLE}.")
    if data["format"] != FORMAT or isinstance(data["format"], bool):
        said = str(data["format"])[:20]
        age = "a newer" if isinstance(data["format"], int) and data["format"] > FORMAT else "another"
        raise RequestError(
            f"The report {path} has format {said}, which is of {age} version than this one, which reads {FORMAT}: "
            "use the checkout that the report was made with."
        )
    if not isinstance(data["sections"], dict) or _is_deep(data, _DEPTH):
        raise RequestError(f"The report {path} is no doctor's report, as its sections are no mapping: {_EXAMPLE}.")
    return data


def _is_deep(value: Any, left: int) -> bool:
    if left == 0:
        return True
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(_is_deep(each, left - 1) for each in below)


def _texts(path: Path, content: bytes) -> dict[str, str]:
    """The texts of a bundle. Nothing is unpacked to disk, and names that lead elsewhere and links are refused."""
    whole = _unpacked(path, content)
    found: dict[str, str] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(whole), mode="r:") as tar:
            for member in tar:
                name = _checked(path, member)
                if len(found) >= _MAX_MEMBERS:
                    raise RequestError(f"The report {path} has more than {_MAX_MEMBERS} files: {_EXAMPLE}.")
                file = tar.extractfile(member)
                text = file.read() if file else b""
                if len(text) != member.size:
                    raise EOFError
                if name:
                    found[name] = text.decode("utf-8", "replace")
    except (tarfile.TarError, EOFError, OSError):
        raise RequestError(f"The report {path} ends in the middle or is no tar archive: {_EXAMPLE}, whole.") from None
    if "hl-smi-log.txt" not in found:
        raise RequestError(f"The report {path} is no support bundle, as it has no {_TOP}/hl-smi-log.txt: {_EXAMPLE}.")
    return found


def _unpacked(path: Path, content: bytes) -> bytes:
    if content[:2] != b"\x1f\x8b":
        return content
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            whole = file.read(MAX_BUNDLE + 1)
    except (EOFError, OSError, zlib.error):
        raise RequestError(f"The report {path} ends in the middle or is damaged: {_EXAMPLE}, whole.") from None
    _check_size(path, whole, MAX_BUNDLE)
    return whole


def _checked(path: Path, member: tarfile.TarInfo) -> str:
    """The name of a bundle's file below its top folder; empty of a folder."""
    name = PurePosixPath(member.name)
    shown = re.sub(r"[^ -~]", "?", member.name)[:80]
    if member.issym() or member.islnk():
        raise RequestError(f"The report {path} has the link {shown} in it, which no bundle has: {_EXAMPLE}.")
    if name.is_absolute() or ".." in name.parts:
        raise RequestError(f"The report {path} has {shown} in it, which leads out of its folder: {_EXAMPLE}.")
    if member.isdir():
        return ""
    if not member.isreg():
        raise RequestError(f"The report {path} has {shown} in it, which is no plain file: {_EXAMPLE}.")
    return str(name.relative_to(_TOP)) if name.parts[:1] == (_TOP,) else str(name)
