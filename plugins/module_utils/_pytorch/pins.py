# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Packages that come beside the vendor's PyTorch: which of a pinned list are to be installed, and from where."""

from __future__ import annotations

import configparser
from collections.abc import Iterable, Mapping
from html.parser import HTMLParser
from typing import Optional
from urllib.parse import urljoin, urlsplit

from .._known_bad import refuse_known_bad_pins
from .._pip import Pin, read_pins
from .._printable import printable
from .._refusal import Refusal

DEFAULT_INDEX = "https://pypi.org/simple"
#: Where pip looks for its settings, the later before the earlier.
PIP_FILES = ("/etc/xdg/pip/pip.conf", "/etc/pip.conf", "~/.pip/pip.conf", "~/.config/pip/pip.conf")


def pins(lines: Iterable[str]) -> dict[str, Pin]:
    """Pins by name of lines such as ``rich==15.0.0 --hash=sha256:...``.

    Refusal for another line, for torch, and for a release that no environment may have.
    """
    found = read_pins("\n".join(lines), _line_refusal)
    for name in found:
        if name == "torch" or name.startswith("habana-"):
            raise Refusal(
                f"pytorch_requirements has {name}, which only the vendor's tarball may bring: take it out of the list."
            )
    refuse_known_bad_pins("pytorch_requirements", {pin.name: pin.version for pin in found.values()})
    return found


def _line_refusal(line: str) -> Refusal:
    return Refusal(
        f"pytorch_requirements has the line '{printable(line[:60])}': write each as name==version "
        "--hash=sha256:DIGEST, with the digest that 'pip hash FILE' prints of the package's wheel."
    )


def wanted(pinned: Mapping[str, Pin], installed: Mapping[str, str], ours: Iterable[str]) -> list[Pin]:
    """What is to be installed of the list. What the vendor's tarball brought stays as it is.

    ``ours`` are the names that were installed from such a list before.
    """
    own = set(ours)
    return [
        pin
        for name, pin in pinned.items()
        if installed.get(name) != pin.version and (name not in installed or name in own)
    ]


def other_file_refusal(pin: str, option: str) -> Refusal:
    """What is said where the index has another file than the list names."""
    return Refusal(
        f"The package index has another file of {pin} than {option} names: take an index with PyPI's files, or write "
        "the SHA-256 of the file that you trust."
    )


def index_url(given: str, environment: Mapping[str, str], settings: Iterable[str]) -> str:
    """The package index that pip will ask: the one given, that of the environment, or that of its settings' texts."""
    found = given or environment.get("PIP_INDEX_URL", "")
    for text in [] if found else settings:
        parser = configparser.RawConfigParser(strict=False)
        try:
            parser.read_string(text)
        except configparser.Error:
            continue
        for section in ("global", "install"):
            found = parser.get(section, "index-url", fallback=found) or found
    return (found or DEFAULT_INDEX).rstrip("/")


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, Optional[str]]]) -> None:
        self.found += [value for name, value in attrs if tag == "a" and name == "href" and value]


def file_of(page: str, text: str, version: str) -> str:
    """The address of the first file of a version on an index's page; empty where there is none."""
    links = _Links()
    links.feed(text)
    for link in links.found:
        name = urlsplit(link).path.rpartition("/")[2]
        built = name.endswith(".whl") and name.split("-")[1:2] == [version]
        if built or name.endswith((f"-{version}.tar.gz", f"-{version}.zip")):
            return urljoin(page, link).partition("#")[0]
    return ""
