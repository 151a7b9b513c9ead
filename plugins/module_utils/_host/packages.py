# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Packages of the distribution: what Ansible's own modules are asked for them, and what an answer means."""

from __future__ import annotations

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
#: State and version of one package, in each family's words.
_QUERY = {
    "Debian": ("dpkg-query", "--show", "--showformat", "${Version} ${db:Status-Status}"),
    "RedHat": ("rpm", "--query", "--queryformat", "%{VERSION} installed"),
}
#: Where apt notes that it has read its sources, and the lists themselves.
LISTS = {
    "paths": ["/var/lib/apt/periodic", "/var/lib/apt"],
    "patterns": ["update-success-stamp", "lists"],
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

    def lists(self) -> dict[str, Any]:
        """Options of ansible.builtin.find that finds lists which are fresh."""
        return {**LISTS, "age": f"-{max(self.cache_valid_time, 1)}s"}

    def may_come(self, said: str, lists: Mapping[str, Any]) -> bool:
        """Whether a package that a dry run does not find may be there for the run itself, which reads the sources."""
        if not self.new_source and lists.get("matched") != 0:
            return False
        names = "|".join(re.escape(re.split("[=<>]", name)[0]) for name in self.names)
        return bool(re.search(_UNKNOWN.format(names=names), said))


def query(family: str, name: str) -> Optional[list[str]]:
    """The command that tells a package's version; none where the family has none that is known."""
    command = _QUERY.get(family)
    return [*command, name] if command else None


def version_of(answer: object) -> str:
    """Version of a package that is installed, from what its query printed; empty otherwise."""
    found = re.match(r"([0-9]\S*) installed$", answer) if isinstance(answer, str) else None
    return found[1] if found else ""
