"""Which of two versions is the later one, as pip, dpkg and rpm order them."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import zip_longest
from typing import Any

from packaging.version import InvalidVersion, Version

from gaudi3_deploy.collection._rpm_versions import compare_rpm

Key = Callable[[str], Any]
"""Makes what versions are compared by. ``ValueError`` where a text is no version."""


def pypi(version: str) -> Version:
    """By PEP 440, without a local part: 2.9.0+cpu has the holes of 2.9.0."""
    try:
        found = Version(version)
    except InvalidVersion as error:
        raise ValueError(str(error)) from error
    return Version(found.public)


class Ordered:
    """A version that is compared by a function, as dpkg and rpm have one."""

    def __init__(self, text: str, compare: Callable[[str, str], int]) -> None:
        self.text, self._compare = text, compare

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ordered) and self._compare(self.text, other.text) == 0

    def __lt__(self, other: Ordered) -> bool:
        return self._compare(self.text, other.text) < 0

    def __gt__(self, other: Ordered) -> bool:
        return self._compare(self.text, other.text) > 0

    def __ge__(self, other: Ordered) -> bool:
        return self._compare(self.text, other.text) >= 0

    __hash__ = None  # type: ignore[assignment]


def debian(version: str) -> Ordered:
    """As ``dpkg --compare-versions`` (deb-version(7))."""
    if not re.fullmatch(r"(\d+:)?[0-9A-Za-z.+~:-]+", version):
        raise ValueError(f"{version!r} is no version of dpkg")
    return Ordered(version, compare_debian)


def rpm(version: str) -> Ordered:
    """As rpm compares EPOCH:VERSION-RELEASE."""
    if not re.fullmatch(r"(\d+:)?[0-9A-Za-z.+~^_-]+", version):
        raise ValueError(f"{version!r} is no version of rpm")
    return Ordered(version, compare_rpm)


def compare_debian(left: str, right: str) -> int:
    """Below, at or above zero as the left version is the earlier, the same or the later one."""
    for one, other in zip(_debian_parts(left), _debian_parts(right), strict=True):
        if sign := _debian_part(one, other):
            return sign
    return 0


def _debian_parts(version: str) -> tuple[str, str, str]:
    epoch, colon, rest = version.partition(":")
    upstream, _dash, revision = (rest if colon else version).rpartition("-")
    return (epoch if colon else "0", upstream, revision) if upstream else (epoch if colon else "0", revision, "0")


def _debian_part(left: str, right: str) -> int:
    """Texts and numbers by turns; in texts a tilde comes before the end, and letters before all else."""
    pattern = re.compile(r"([^0-9]*)([0-9]*)")
    for one, other in zip_longest(pattern.findall(left), pattern.findall(right), fillvalue=("", "")):
        keys = [([*map(_debian_weight, text), 0], int(number or 0)) for text, number in (one, other)]
        if keys[0] != keys[1]:
            return -1 if keys[0] < keys[1] else 1
    return 0


def _debian_weight(character: str) -> int:
    return -1 if character == "~" else ord(character) + (0 if character.isalpha() else 256)
