# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What a matrix says of one pair: a source confirms it, nothing says it, or it is forbidden.

What is in no cell of a release whose page was read is forbidden, and so is what two public reports saw fail. Of a
release, system or version that the matrix does not know at all, nothing is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from . import matrix as data
from .matrix import SOURCES, UNCONFIRMED, Cell, Kernels, Preboot, Upgrade
from .node import matches, numbers, said_system
from .versions import Release, version_of

CONFIRMED, FORBIDDEN = "confirmed", "forbidden"
#: Axes of which a value that is listed for other releases alone is forbidden, also where the release has no list.
_EXACT = ("vllm",)


@dataclass(frozen=True)
class Verdict:
    """What is known of a pair."""

    level: str
    """confirmed, unconfirmed or forbidden."""
    source: str
    """In words; empty where nothing is known."""
    why: str = ""
    """A part of a sentence on what is forbidden, or on what nothing says."""


def from_source(source: str, why: str = "") -> Verdict:
    """What a cell with this source means."""
    if source == UNCONFIRMED:
        return Verdict(UNCONFIRMED, "", why)
    return Verdict(CONFIRMED, SOURCES.get(source, source), why)


class Matrix:
    """Cells and tables, of the vendor's software or, in tests, of another world."""

    def __init__(
        self,
        cells: Sequence[Cell] = data.CELLS,
        kernels: Sequence[Kernels] = data.KERNELS,
        preboots: Sequence[Preboot] = data.PREBOOTS,
        upgrades: Sequence[Upgrade] = data.UPGRADES,
    ) -> None:
        self.cells = tuple(cells)
        self.kernels = {each.system: each for each in kernels}
        self.preboots = tuple(preboots)
        self.upgrades = tuple(upgrades)
        self._index: dict[tuple[str, str], dict[str, Cell]] = {}
        self._known: dict[str, set[str]] = {}
        for cell in self.cells:
            self._index.setdefault((cell.release, cell.axis), {})[cell.value] = cell
            self._known.setdefault(cell.axis, set()).add(cell.value)
        #: From old to new.
        self.releases = tuple(sorted({cell.release for cell in self.cells}, key=Release.parse))

    def values(self, release: str, axis: str) -> list[Cell]:
        """What goes with a release on one axis."""
        return list(self._index.get((release, axis), {}).values())

    def release_of(self, text: str) -> str:
        """The release with its build of ``1.24.1``, ``1.24.1-482`` or ``1.24.1.482``; empty where it is not known."""
        version = version_of(text)
        return next((each for each in self.releases if version and Release.parse(each).version == version), "")

    def goes(self, release: str, axis: str, value: str) -> Verdict:
        """Whether a value of an axis goes with a release."""
        listed = self._index.get((release, axis), {})
        for known, cell in listed.items():
            if known == value or (axis != "system" and matches(value, known)):
                return from_source(cell.source, f"nothing says that {release} is for {_said(axis, value)}")
        elsewhere = axis in _EXACT and any(matches(value, each) for each in self._known.get(axis, ()))
        if release not in self.releases or not (listed or elsewhere):
            return Verdict(UNCONFIRMED, "", f"nothing is known of {_said(axis, value)} with {release}")
        if axis == "system" and value not in self._known.get(axis, ()):
            return Verdict(FORBIDDEN, SOURCES["page"], f"{said_system(value)} is in no matrix of the vendor's")
        names = ", ".join(said_system(each) for each in listed)
        why = f"{release} goes with {_said(axis, names) if names else 'no vLLM'}, not with {said_system(value)}"
        return Verdict(FORBIDDEN, self._source_of(release, axis), why)

    def _source_of(self, release: str, axis: str) -> str:
        sources = [cell.source for cell in self.values(release, axis) if cell.source != UNCONFIRMED]
        if sources or axis in _EXACT:
            return SOURCES[sources[0] if sources else axis]
        return "the pages of the releases around it, as its own was not found"

    def generation(self, release: str, generation: str) -> Verdict:
        """Whether a release drives cards of a generation; of the first, reports are stricter than the matrix."""
        found = self.goes(release, "generation", generation)
        reported = data.failing(generation)
        if found.level != FORBIDDEN and reported and numbers(release)[:3] >= numbers(reported.since.version):
            why = f"with {release} first-generation Gaudi could not be acquired any more"
            return Verdict(FORBIDDEN, SOURCES[reported.source], why)
        return found

    def kernel(self, system: str, kernel: str) -> Verdict:
        """Whether a system's drivers are for a kernel."""
        known, found = self.kernels.get(system), numbers(kernel)[:2]
        if known is None or not found:
            return Verdict(UNCONFIRMED, "", f"nothing is known of kernel {kernel} on {said_system(system)}")
        if found < numbers(known.lowest) or (known.newest and found > numbers(known.newest)):
            span = known.lowest if known.newest == known.lowest else f"{known.lowest} or newer"
            why = f"on {said_system(system)} the drivers are for kernel {span}, not for {kernel}"
            return Verdict(FORBIDDEN, SOURCES.get(known.source, known.source), why)
        return from_source(known.source)

    def preboot(self, generation: str, preboot: str, release: str) -> Verdict:
        """Whether preboot firmware starts the boot images of a release."""
        for each in self.preboots:
            late = numbers(preboot) >= numbers(each.since) and bool(preboot)
            if each.generation == generation and late and numbers(release) <= numbers(each.not_with):
                why = (
                    f"preboot firmware {preboot} does not start the boot images of {release}: from {each.since} on it "
                    f"needs a release after {each.not_with}"
                )
                return Verdict(FORBIDDEN, SOURCES.get(each.source, each.source), why)
        return Verdict(UNCONFIRMED, "")

    def pythons(self, release: str, system: str) -> tuple[tuple[str, ...], str]:
        """Which Pythons a release's PyTorch is for on a system, and the source in words or ``unconfirmed``."""
        for each in data.PYTHONS_OF_PAGES:
            if (each.release, each.system) == (release, system):
                return each.versions, SOURCES[each.source]
        known = tuple(data.PYTHONS.get(data.FOLDERS.get(system, ""), {}))
        read = numbers(release)[:2] == data.DOCKERFILES_OF
        return known, SOURCES["dockerfiles"] if read and known else UNCONFIRMED

    def successors(self, system: str) -> list[Upgrade]:
        """The systems that a node's own can be upgraded to."""
        return [each for each in self.upgrades if each.old == system]


def _said(axis: str, value: str) -> str:
    names = {"torch": "PyTorch", "vllm": "vLLM", "docker": "Docker", "generation": "cards of", "firmware": "firmware"}
    return f"{names[axis]} {value}" if axis in names else said_system(value)
