# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The shortest way from one set of versions to another: which release when, which boots, and never what is forbidden.

A change of the release takes the running driver out and puts the other in, without a boot; a system's upgrade and
another kernel end with one. Each change and each boot counts one. Of ways that are equally long, the one with the
fewest unconfirmed stations is taken, then the one by the newest releases.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Optional

from .compat import FORBIDDEN, Matrix, Verdict
from .matrix import SOURCES, UNCONFIRMED
from .node import Node, firmware_release, said_system
from .versions import version_of


@dataclass(frozen=True)
class Station:
    """What the driver's side of a node is, between two changes."""

    release: str
    """With its build; empty before anything is installed."""
    system: str
    kernel: str = ""
    preboot: str = ""
    loaded: bool = True
    """Whether the release's own driver is what runs, built for the kernel that runs."""
    passthrough: bool = True
    """Whether the cards' addresses reach them as they are."""


@dataclass(frozen=True)
class Move:
    """One change."""

    kind: str
    """release, system, kernel, load, iommu or preboot."""
    to: Station
    boots: int
    source: str

    @property
    def cost(self) -> int:
        """One for the change and one for a boot."""
        return 1 + self.boots


@dataclass(frozen=True)
class World:
    """What stays as it is on the way."""

    table: Matrix
    generation: str = ""
    confirmed: bool = False
    """Whether only stations are entered that a source confirms."""

    def verdicts(self, at: Station) -> Iterator[tuple[tuple[str, ...], Verdict]]:
        """Each pair of a station that the matrix can judge."""
        if at.release and at.system:
            yield ("release-system", at.release, at.system), self.table.goes(at.release, "system", at.system)
        if at.release and self.generation:
            yield ("release-generation", at.release), self.table.generation(at.release, self.generation)
        if at.release and at.preboot and self.generation:
            verdict = self.table.preboot(self.generation, at.preboot, at.release)
            if verdict.level == FORBIDDEN:
                yield ("preboot-release", at.preboot, at.release), verdict
        if at.system and at.kernel:
            verdict = self.table.kernel(at.system, at.kernel)
            if verdict.level == FORBIDDEN:
                yield ("kernel-system", at.kernel, at.system), verdict
        if not at.passthrough:
            why = "the IOMMU translates the cards' addresses"
            yield ("iommu", at.kernel), Verdict(FORBIDDEN, SOURCES["iommu"], why)

    def broken(self, at: Station) -> frozenset[tuple[str, ...]]:
        """The pairs of a station that are forbidden."""
        return frozenset(pair for pair, verdict in self.verdicts(at) if verdict.level == FORBIDDEN)

    def doubts(self, at: Station) -> frozenset[tuple[str, ...]]:
        """Its pairs that nothing confirms."""
        return frozenset(pair for pair, verdict in self.verdicts(at) if verdict.level == UNCONFIRMED)

    def enters(self, old: Station, new: Station) -> bool:
        """Whether a change brings nothing that is forbidden; what was broken before may still be."""
        if self.confirmed and not self.doubts(new) <= self.doubts(old):
            return False
        return self.broken(new) <= self.broken(old)

    def moves(self, at: Station, preboots: bool) -> Iterator[Move]:
        """All changes that can be made at a station, the newest releases first."""
        if at.release and not at.loaded:
            yield Move("load", replace(at, loaded=True), 0, "one-version")
        for release in reversed(self.table.releases):
            if release != at.release:
                yield Move("release", replace(at, release=release, loaded=True), 0, "one-version")
        kernel = self.table.kernels.get(at.system)
        # Whatever boots the node can bring the kernel's arguments along.
        if at.kernel and kernel and self.table.kernel(at.system, at.kernel).level == FORBIDDEN:
            kept = replace(at, kernel=kernel.newest or kernel.lowest, passthrough=True)
            yield Move("kernel", kept, 1, kernel.source)
        elif not at.passthrough:
            yield Move("iommu", replace(at, passthrough=True), 1, "iommu")
        for each in self.table.successors(at.system):
            brings = self.table.kernels.get(each.new)
            kernel_then = (brings.newest or brings.lowest) if brings and at.kernel else at.kernel
            yield Move("system", replace(at, system=each.new, kernel=kernel_then, passthrough=True), 1, each.source)
        own = version_of(at.release) or ""
        if preboots and own and own != at.preboot:
            yield Move("preboot", replace(at, preboot=own), 0, "one-version")


def station_of(node: Node, table: Matrix) -> Station:
    """Where a node is."""
    packages, driver = node.package_release(), version_of(node.driver) or ""
    # Without packages what runs is what is installed, as in a container's host of which only that is known.
    release = table.release_of(packages or driver) or packages or driver
    built = node.built_for is None or not node.kernel or node.kernel in node.built_for
    one = all(version_of(each) == packages for each in node.packages.values())
    return Station(
        release,
        node.system,
        node.kernel,
        firmware_release(node.preboot),
        bool(release) and one and built and (not driver or not packages or driver == packages),
        node.iommu in ("", "identity"),
    )


@dataclass(frozen=True)
class Target:
    """Where to go; what is empty may be anything that is not forbidden."""

    releases: tuple[str, ...] = ()
    """One of them."""
    system: str = ""
    preboot: str = ""

    def reached(self, world: World, at: Station) -> bool:
        """Whether a station is there, and all of it goes together."""
        if self.releases and at.release not in self.releases:
            return False
        if (self.system and at.system != self.system) or (self.preboot and at.preboot != self.preboot):
            return False
        return bool(at.release) and at.loaded and not world.broken(at)


def route(world: World, start: Station, target: Target) -> Optional[list[Move]]:
    """The shortest way; None where none is allowed, as ``obstacle`` says."""
    order = itertools.count()
    preboots = bool(target.preboot) or any(each.generation == world.generation for each in world.table.preboots)
    waiting: list[tuple[int, int, int, Station, tuple[Move, ...]]] = [(0, 0, next(order), start, ())]
    done: set[Station] = set()
    while waiting:
        cost, doubts, _number, at, way = heapq.heappop(waiting)
        if at in done:
            continue
        done.add(at)
        if target.reached(world, at):
            return list(way)
        for move in world.moves(at, preboots and bool(start.preboot)):
            if move.to not in done and world.enters(at, move.to):
                entry = (cost + move.cost, doubts + len(world.doubts(move.to)), next(order), move.to, (*way, move))
                heapq.heappush(waiting, entry)
    return None


def obstacle(world: World, start: Station, target: Target) -> str:
    """What forbids to be there, as a part of a sentence."""
    release = start.release if not target.releases or start.release in target.releases else target.releases[0]
    moved = bool(target.system) and target.system != start.system
    if moved and not any(each.new == target.system for each in world.table.successors(start.system)):
        return f"no upgrade leads from {said_system(start.system)} to {said_system(target.system)}"
    if target.preboot and not start.preboot:
        return "the preboot firmware that the cards have is not known"
    if target.preboot and target.preboot not in {version_of(each) for each in world.table.releases}:
        return f"preboot firmware comes with a release, and {target.preboot} is of none"
    kernel = "" if moved else start.kernel
    end = replace(start, release=release, system=target.system or start.system, kernel=kernel)
    reasons = [verdict.why for _pair, verdict in world.verdicts(end) if verdict.level == FORBIDDEN]
    if world.confirmed and not reasons:
        reasons = [verdict.why for _pair, verdict in world.verdicts(end) if verdict.level == UNCONFIRMED]
    return "; ".join(reasons) or "each change on the way would bring together what the matrix forbids"


def why(world: World, before: Station, move: Move, end: Station, asked: str) -> tuple[str, str]:
    """The rule that decides a change and its source: what forbids going on without it, else what was asked for."""
    if move.kind in ("kernel", "iommu"):
        for pair, verdict in world.verdicts(before):
            if pair[0] in ("kernel-system", "iommu") and verdict.level == FORBIDDEN:
                return verdict.why, verdict.source
    if move.kind == "load":
        return "the driver of the installed packages is not what runs", SOURCES["one-version"]
    direct = {
        "release": replace(before, release=end.release),
        "system": replace(before, release=end.release),
        "preboot": replace(before, release=end.release),
    }.get(move.kind)
    stays = replace(before, system=end.system) if move.kind == "release" else None
    for other in (direct, stays):
        if other is not None and other != move.to and other != before:
            for pair, verdict in world.verdicts(other):
                if verdict.level == FORBIDDEN and pair not in world.broken(before):
                    return verdict.why, verdict.source
    for _pair, verdict in world.verdicts(before):
        if verdict.level == FORBIDDEN:
            return verdict.why, verdict.source
    return asked, "the request"
