# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Which release does what is wished for, and what it needs; where none does, which wishes exclude each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

from .._printable import few, printable
from .._refusal import Refusal
from .compat import CONFIRMED, FORBIDDEN, Matrix, Verdict
from .matrix import IMAGES_OF, KERNELS, PYTORCH_IMAGE, SOURCES, UNCONFIRMED
from .node import generation_name, matches, numbers, said_system, system_name
from .versions import Release

#: What can be wished for.
AXES = ("release", "system", "generation", "torch", "python", "vllm", "kernel")


@dataclass(frozen=True)
class Row:
    """One thing that a release needs or brings."""

    axis: str
    value: str
    source: str
    """In words, or ``unconfirmed``."""

    def as_facts(self) -> dict[str, str]:
        """For a program."""
        return {"axis": self.axis, "value": self.value, "source": self.source}


@dataclass(frozen=True)
class Needs:
    """The answer to wishes."""

    wishes: Mapping[str, str]
    candidates: tuple[str, ...]
    """Releases that do all of it, the best first: what sources confirm before what none does, then the newest."""
    rows: tuple[Row, ...]
    """What the first of them needs; none without a candidate."""
    instead: tuple[str, ...]
    """Sentences on what excludes what, and on what is nearest."""

    @property
    def release(self) -> str:
        """The best one; empty where none does it."""
        return self.candidates[0] if self.candidates else ""

    def as_facts(self) -> dict[str, Any]:
        """For a program."""
        return {
            "wishes": dict(self.wishes),
            "release": self.release or None,
            "candidates": list(self.candidates),
            "rows": [each.as_facts() for each in self.rows],
            "instead": list(self.instead),
        }


def wishes_of(given: Mapping[str, str]) -> dict[str, str]:
    """Wishes with a system by the matrix's name; ``Refusal`` for what cannot be wished for."""
    found = {}
    for axis, value in given.items():
        if axis not in AXES:
            raise Refusal(
                f"{printable(axis, 60)!r} cannot be asked for: give NAME=VALUE with one of {', '.join(AXES)}."
            )
        if not value.strip():
            raise Refusal(f"{axis} is empty: give a version, as {axis}=... does, or leave it out.")
        name = {"system": system_name, "generation": generation_name}.get(axis, str)
        found[axis] = name(value.strip())
    return found


def need(given: Mapping[str, str], matrix: Optional[Matrix] = None) -> Needs:
    """What is needed for all wishes; ``Refusal`` where one cannot be asked for, or nothing knows it."""
    table, wishes = matrix or Matrix(), wishes_of(given)
    if not wishes:
        raise Refusal(f"Nothing is asked for: give NAME=VALUE with one of {', '.join(AXES)}.")
    for axis, value in wishes.items():
        _known(table, axis, value)
    found = doing(table, wishes)
    if found:
        return Needs(wishes, tuple(found), tuple(rows(table, found[0], wishes)), ())
    return Needs(wishes, (), (), tuple(_instead(table, wishes)))


def doing(table: Matrix, wishes: Mapping[str, str]) -> list[str]:
    """Releases that do all wishes, the best first."""
    counted = []
    for release in table.releases:
        verdicts = [answer_to(table, release, axis, wishes) for axis in wishes]
        if all(each.level != FORBIDDEN for each in verdicts):
            counted.append((sum(each.level != CONFIRMED for each in verdicts), release))
    counted.sort(key=lambda each: Release.parse(each[1]), reverse=True)
    counted.sort(key=lambda each: each[0])
    return [release for _doubts, release in counted]


def answer_to(table: Matrix, release: str, axis: str, wishes: Mapping[str, str]) -> Verdict:
    """Whether a release does one wish. A PyTorch or a vLLM that nothing says it has is not taken for wished."""
    value, system = wishes[axis], wishes.get("system", "")
    if axis == "release":
        same = release == table.release_of(value)
        return Verdict(CONFIRMED if same else FORBIDDEN, "")
    if axis == "generation":
        return table.generation(release, value)
    if axis == "system":
        return table.goes(release, axis, value)
    if axis in ("kernel", "python"):
        systems = [system] if system else [each.value for each in table.values(release, "system")]
        found = [_of_system(table, release, axis, each, value) for each in systems]
        return next((each for each in found if each.level != FORBIDDEN), found[0])
    known = [each for each in table.values(release, axis) if matches(value, each.value)]
    return table.goes(release, axis, known[0].value) if known else Verdict(FORBIDDEN, "")


def _of_system(table: Matrix, release: str, axis: str, system: str, value: str) -> Verdict:
    if axis == "kernel":
        return table.kernel(system, value)
    pythons, source = table.pythons(release, system)
    if not any(matches(each, value) for each in pythons):
        return Verdict(FORBIDDEN, source)
    return Verdict(UNCONFIRMED if source == UNCONFIRMED else CONFIRMED, source)


def _known(table: Matrix, axis: str, value: str) -> None:
    """Refuse what is in no cell at all, by naming what is."""
    if axis == "release" and not table.release_of(value):
        newest = few(list(table.releases[::-1]), 4)
        raise Refusal(f"Release {printable(value, 60)} is in no matrix: give one of {newest}.")
    if axis in ("kernel", "python") and not numbers(value):
        example = {"kernel": "6.8", "python": "3.12"}[axis]
        raise Refusal(f"{axis} {printable(value, 60)} is no version: give its numbers, such as {example}.")
    if axis in ("torch", "vllm", "system", "generation"):
        every = dict.fromkeys(each.value for release in table.releases[::-1] for each in table.values(release, axis))
        if not any(each == value if axis in ("system", "generation") else matches(value, each) for each in every):
            names = few([said_system(each) for each in every])
            raise Refusal(f"{axis} {printable(said_system(value), 60)} is in no matrix: give one of {names}.")


def _instead(table: Matrix, wishes: Mapping[str, str]) -> list[str]:
    """For each wish what it is alone, and what is nearest without it."""
    said = []
    for axis, value in wishes.items():
        alone = doing(table, {axis: value})
        if axis != "release":
            names = few(sorted(alone, key=Release.parse, reverse=True), 3)
            said.append(
                f"{_name(axis, value)} goes with {names}." if alone else f"{_name(axis, value)} goes with none."
            )
    for axis, value in wishes.items():
        rest = {name: each for name, each in wishes.items() if name != axis}
        best = doing(table, rest) if rest else []
        if best:
            has = _has(table, best[0], axis)
            said.append(f"Without {_name(axis, value)} it is {best[0]}{has}.")
    return said


def _has(table: Matrix, release: str, axis: str) -> str:
    cells = table.values(release, axis)
    doubt = f" ({UNCONFIRMED})" if cells and all(each.source == UNCONFIRMED for each in cells) else ""
    names = ", ".join(said_system(each.value) for each in cells)
    return f", which goes with {_name(axis, names)}{doubt}" if cells else ""


def _name(axis: str, value: str) -> str:
    names = {"torch": "PyTorch ", "vllm": "vLLM ", "python": "Python ", "kernel": "kernel ", "generation": "cards of "}
    return f"{names.get(axis, '')}{said_system(value)}"


def rows(table: Matrix, release: str, wishes: Mapping[str, str]) -> list[Row]:
    """All that is known of a release, narrowed to what is wished for."""
    found = [Row("release", release, "package index, wheel habana-pyhlml")]
    version = Release.parse(release).version
    found += [Row("driver", f"{version}, and every package of the vendor's {release}", SOURCES["one-version"])]
    systems = []
    for axis in ("generation", "system", "torch", "vllm", "docker", "firmware"):
        for cell in table.values(release, axis):
            wish = wishes.get(axis, "")
            if not wish or wish == cell.value or (axis in ("torch", "vllm") and matches(wish, cell.value)):
                source = SOURCES.get(cell.source, cell.source)
                found.append(Row(axis, said_system(cell.value) if axis == "system" else cell.value, source))
                systems += [cell.value] if axis == "system" else []
    for each in (each for each in KERNELS if each.system in systems):
        span = each.lowest if each.newest == each.lowest else f"{each.lowest} or newer"
        found.append(Row("kernel", f"{span} on {said_system(each.system)}", SOURCES[each.source]))
    for system in systems:
        pythons, source = table.pythons(release, system)
        names = [each for each in pythons if matches(each, wishes.get("python", each))]
        if names:
            found.append(Row("python", f"{' or '.join(names)} on {said_system(system)}", source))
    seen = SOURCES["dockerfiles"] if numbers(release)[:2] in IMAGES_OF else UNCONFIRMED
    found += [Row("image", name, seen) for name in images(table, release, systems)]
    return found


def images(table: Matrix, release: str, systems: list[str]) -> list[str]:
    """The vendor's images with PyTorch of a release, below a registry."""
    torch = [each.value for each in table.values(release, "torch")]
    folders = [system.replace("RedHat ", "rhel").replace("Ubuntu ", "ubuntu") for system in systems]
    version = Release.parse(release).version
    return [
        PYTORCH_IMAGE.format(version=version, system=each, torch=torch[0], release=release) for each in folders if torch
    ]
