# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Packages from an index: exactly the listed ones, each by the SHA-256 of its file.

Everything that pip installs on a node from an index goes through ``install``. No package is built: a build would
fetch what it needs without hashes.
"""

from __future__ import annotations

import ipaddress
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Optional
from urllib.parse import urlsplit

from ._printable import printable
from ._refusal import Refusal
from ._wheels import normal

Run = Callable[..., tuple[int, str, str]]

_PIN = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9.+!_-]+)((?: --hash=sha256:[0-9a-f]{64})+)")
_COMMENT = re.compile(r"(?:^|\s)#.*")


@dataclass(frozen=True)
class Pin:
    """One version of a package, and the line for pip, which has the hashes of its files."""

    name: str
    version: str
    line: str

    def __str__(self) -> str:
        return f"{self.name}=={self.version}"


def read_pins(text: str, line_refusal: Callable[[str], Refusal]) -> dict[str, Pin]:
    """Pins by normalized name, from a file of requirements; ``line_refusal`` makes the refusal of another line."""
    found: dict[str, Pin] = {}
    for joined in text.replace("\\\n", " ").splitlines():
        line = " ".join(_COMMENT.sub("", joined).split())
        if not line:
            continue
        match = _PIN.fullmatch(line)
        if match is None:
            raise line_refusal(line)
        name = normal(match.group(1))
        found[name] = Pin(name, match.group(2), line)
    return found


def install(
    run: Run, python: str, pins: Iterable[Pin], environ: Mapping[str, str], folder: Optional[str] = None
) -> tuple[int, str, str]:
    """Have a Python's pip install the pins and nothing that they require; returns what ``run`` does.

    ``folder`` is where the list for pip is put for the time being.
    """
    handle, path = tempfile.mkstemp(dir=folder, prefix=".gaudi3-scale-", suffix=".txt")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write("".join(f"{pin.line}\n" for pin in pins))
        argv = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--no-deps"]
        argv += ["--only-binary=:all:", "--require-hashes", "--requirement", path]
        return run(argv, environ_update=dict(environ))
    finally:
        os.unlink(path)


def other_file(err: str) -> str:
    """The pin of which pip says that a file has another hash than the list; empty where it says nothing of it."""
    match = re.search(r"DO NOT MATCH THE HASHES.*\n\s+(\S+) from ", err)
    return match.group(1) if match else ""


def index_environment(url: Optional[str], plain_http: bool, option: str) -> dict[str, str]:
    """pip's variables for an index; Refusal for one over plain HTTP to which nobody has consented.

    Variables, as every user of the node could read a password on the command line. pip has to trust the host of an
    index without TLS expressly. Hashes keep other files out, but nobody from reading along. ``option`` is the role's
    variable for the address.
    """
    if not url:
        return {}
    parts = urlsplit(url)
    if parts.scheme != "http":
        return {"PIP_INDEX_URL": url}
    host = parts.hostname or ""
    if not plain_http and not _loopback(host):
        raise Refusal(
            f"{option} is a plain http address on {printable(host, 200) or 'no host'}: give an https address, or set "
            f"{option.replace('_url', '_plain_http')} to true if everyone on the way may read the traffic."
        )
    return {"PIP_INDEX_URL": url, "PIP_TRUSTED_HOST": host}


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
