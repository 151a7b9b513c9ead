# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Packages of the distribution: what Ansible's own modules are asked for them, and what an answer means."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

ARGUMENT_SPEC: dict[str, Any] = {
    "name": {"type": "list", "elements": "str", "required": True},
    "cache_valid_time": {"type": "int", "default": 3600},
    "new_source": {"type": "bool", "default": False},
    "start": {"type": "bool", "default": True},
    "ask_version": {"type": "bool", "default": False},
}
#: How apt says that it knows no such package. Its lists may be old, or of before a source was added.
_UNKNOWN = r"(?:No package matching '|no available installation candidate for )(?:{names})(?![\w.+-])"
#: How apt's module says that it cannot predict anything without its bindings, which the run itself installs.
_UNBOUND = re.compile("python3?-apt must be installed to use check mode")
#: What dpkg is asked then.
_INSTALLED = ("dpkg-query", "--show", "--showformat", "${Package} ${Version} ${db:Status-Status}\n")
#: A name, and what may stand behind it: a version or a pattern of one, or bounds.
_NAME = re.compile(r"\s*(?P<name>[^\s=<>]+)\s*(?:==?\s*(?P<version>[^\s=<>]+))?(?P<more>.*)", re.DOTALL)
#: State and version of one package, in each family's words.
_QUERY = {
    "Debian": ("dpkg-query", "--show", "--showformat", "${Version} ${db:Status-Status}"),
    "RedHat": ("rpm", "--query", "--queryformat", "%{VERSION} installed"),
}
#: Where apt notes that it has read its sources, and the lists themselves.
_STAMP, _LISTS = "/var/lib/apt/periodic/update-success-stamp", "/var/lib/apt/lists"
LISTS = {
    "paths": ["/var/lib/apt/periodic", "/var/lib/apt"],
    "patterns": ["update-success-stamp", "lists"],
    "file_type": "any",
}
#: The same, and the sources.
SOURCES = {
    "paths": [*LISTS["paths"], "/etc/apt", "/etc/apt/sources.list.d"],
    "patterns": [*LISTS["patterns"], "*.list", "*.sources"],
    "file_type": "any",
}


@dataclass(frozen=True)
class Wanted:
    """Packages that are to be installed."""

    names: Sequence[str]
    cache_valid_time: int = 3600
    """Seconds for which apt's lists count as fresh."""
    new_source: bool = False
    """Whether a source was added that the lists do not have yet."""
    start: bool = True
    """Whether their services may start at once."""

    def apt(self) -> dict[str, Any]:
        """Options of apt's module alone."""
        found: dict[str, Any] = {
            "update_cache": True,
            "cache_valid_time": 0 if self.new_source else self.cache_valid_time,
            "install_recommends": False,
        }
        # Debian's packages start their services at once, with arguments that are not ours.
        return found if self.start else {**found, "policy_rc_d": 101}

    def met_by(self, version: str) -> bool:
        """Whether this version of the first package, installed, is the one that is wanted."""
        _name, wanted, more = split_name(self.names[0])
        return bool(version) and not more and fnmatch.fnmatchcase(version, wanted or "*")

    def lists(self) -> dict[str, Any]:
        """Options of ansible.builtin.find that finds lists which are fresh."""
        return {**LISTS, "age": f"-{max(self.cache_valid_time, 1)}s"}

    def unknown(self, said: str) -> bool:
        """Whether apt knows one of them not at all."""
        names = "|".join(re.escape(split_name(name)[0]) for name in self.names)
        return bool(re.search(_UNKNOWN.format(names=names), said))

    def unbound(self, said: str) -> bool:
        """Whether apt's module predicts nothing, as its bindings are not there."""
        return bool(_UNBOUND.search(said))

    def installed(self) -> list[str]:
        """The command that lists which of them are there."""
        return [*_INSTALLED, *(split_name(name)[0] for name in self.names)]

    def missing(self, listed: object) -> bool:
        """Whether one of them is not there as it is wanted, from what that command printed."""
        lines = [line.split() for line in listed.splitlines()] if isinstance(listed, str) else []
        there = {words[0]: words[1] for words in lines if len(words) == 3 and words[2] == "installed"}
        return not all(
            name in there and not more and fnmatch.fnmatchcase(there[name], version or "*")
            for name, version, more in map(split_name, self.names)
        )

    @property
    def first(self) -> str:
        """Name of the first, without a version."""
        return split_name(self.names[0])[0]


def split_name(name: str) -> tuple[str, str, str]:
    """Name, version and what else is said of it."""
    found = _NAME.match(name)
    return (found["name"], found["version"] or "", found["more"]) if found else (name, "", "")


def is_new(answer: Mapping[str, Any]) -> bool:
    """Whether a source was written after apt has read them, from what was found of both."""
    files = answer.get("files")
    found = [each for each in files if isinstance(each, Mapping)] if isinstance(files, list) else []
    read = {path: _seconds(each, "mtime") for each in found for path in (_STAMP, _LISTS) if each.get("path") == path}
    written = [_seconds(each, "ctime") for each in found if str(each.get("path")).startswith("/etc/apt/")]
    return max(written, default=0) > read.get(_STAMP, read.get(_LISTS, 0))


def _seconds(file: Mapping[str, Any], name: str) -> float:
    found = file.get(name)
    return found if isinstance(found, (int, float)) else 0


def query(family: str, name: str) -> Optional[list[str]]:
    """The command that tells a package's version; none where the family has none that is known."""
    command = _QUERY.get(family)
    return [*command, split_name(name)[0]] if command else None


def version_of(answer: object) -> str:
    """Version of a package that is installed, from what its query printed; empty otherwise."""
    found = re.match(r"([0-9]\S*) installed$", answer) if isinstance(answer, str) else None
    return found[1] if found else ""
