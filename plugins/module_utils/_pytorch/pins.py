# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Packages that come beside the vendor's PyTorch: which of a pinned list are to be installed, and from where."""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterable, Mapping
from html.parser import HTMLParser
from typing import Optional
from urllib.parse import urljoin, urlsplit

from .._refusal import Refusal
from .._wheels import normal

DEFAULT_INDEX = "https://pypi.org/simple"
#: Where pip looks for its settings, the later before the earlier.
PIP_FILES = ("/etc/xdg/pip/pip.conf", "/etc/pip.conf", "~/.pip/pip.conf", "~/.config/pip/pip.conf")
_PIN = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9.+!_-]+)")


def pins(lines: Iterable[str]) -> dict[str, str]:
    """Versions by name of lines such as ``rich==15.0.0``; Refusal for what is no such line, and for torch."""
    found: dict[str, str] = {}
    for line in lines:
        text = line.partition("#")[0].strip()
        if not text:
            continue
        match = _PIN.fullmatch(text)
        if match is None:
            raise Refusal(f"pytorch_requirements has the line '{text}': write each as name==version.")
        name = normal(match.group(1))
        if name == "torch" or name.startswith("habana-"):
            raise Refusal(
                f"pytorch_requirements has {name}, which only the vendor's tarball may bring: take it out of the list."
            )
        found[name] = match.group(2)
    return found


def wanted(pinned: Mapping[str, str], installed: Mapping[str, str], ours: Iterable[str]) -> list[str]:
    """What is to be installed of the list. What the vendor's tarball brought stays as it is.

    ``ours`` are the names that were installed from such a list before.
    """
    own = set(ours)
    return [
        f"{name}=={version}"
        for name, version in pinned.items()
        if installed.get(name) != version and (name not in installed or name in own)
    ]


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


def pip_environment(given: str) -> dict[str, str]:
    """What tells pip about the index that was given; the host of one without TLS has to be trusted expressly.

    Not on the command line, where every user of the node could read a password in it.
    """
    if not given:
        return {}
    parts = urlsplit(given)
    return {"PIP_INDEX_URL": given, **({"PIP_TRUSTED_HOST": parts.hostname or ""} if parts.scheme == "http" else {})}


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
