"""The shortest way: never through what is forbidden, and never longer than a search of all ways finds."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from ansible_collections.gaudi3.scale.plugins.module_utils._release.compat import Matrix
from ansible_collections.gaudi3.scale.plugins.module_utils._release.matrix import (
    UNCONFIRMED,
    Cell,
    Kernels,
    Preboot,
    Upgrade,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._release.route import (
    Station,
    Target,
    World,
    obstacle,
    route,
)

SYSTEMS = ("A 1", "A 2", "A 3")
KERNELS = ("5.1", "5.2", "6.0", "6.1")


class Small:
    """A world of a few releases and systems, with tables that are read once more here, by other code."""

    def __init__(self, seed: int) -> None:
        self.dice = dice = random.Random(seed)
        self.releases = [f"1.{number}.0-1" for number in range(1, dice.randint(3, 6))]
        self.goes = {
            (r, s): dice.choice(["page", UNCONFIRMED]) for r in self.releases for s in SYSTEMS if dice.random() < 0.5
        }
        self.lowest = {system: dice.randrange(len(KERNELS)) for system in SYSTEMS}
        self.newest = {system: dice.randrange(self.lowest[system], len(KERNELS)) for system in SYSTEMS}
        self.upgrades = {(a, b) for a in SYSTEMS for b in SYSTEMS if a < b and dice.random() < 0.6}
        self.since, self.not_with = dice.randint(1, 6), dice.randint(0, 5)
        cells = [Cell(r, "system", s, source) for (r, s), source in self.goes.items()]
        # One that is for other cards alone is forbidden.
        share = dice.choice([0.4, 1, 1, 1])
        self.drives = {r for r in self.releases if dice.random() < share}
        cells += [Cell(r, "generation", "h", "page") for r in self.releases]
        cells += [Cell(r, "generation", "g", "page") for r in self.releases if r in self.drives]
        self.table = Matrix(
            cells,
            [Kernels(s, KERNELS[self.lowest[s]], KERNELS[self.newest[s]], "page") for s in SYSTEMS],
            [Preboot("g", f"1.{self.since}.0", f"1.{self.not_with}.0", "page")],
            [Upgrade(a, b, "distribution") for a, b in sorted(self.upgrades)],
        )
        self.listed = {r for r, _s in self.goes}

    def start(self) -> Station:
        """Any station, good or bad."""
        dice = self.dice
        release = dice.choice([*self.releases, ""])
        preboot = dice.choice(["", *(f"1.{n}.0" for n in range(1, 7))])
        loaded = bool(release) and dice.random() < 0.7
        return Station(release, dice.choice(SYSTEMS), dice.choice(KERNELS), preboot, loaded, dice.random() < 0.7)

    def target(self) -> Target:
        """Any target."""
        some = tuple(self.dice.sample(self.releases, self.dice.randint(0, 2)))
        preboots = [release.partition("-")[0] for release in self.releases]
        return Target(
            some, self.dice.choice(["", *SYSTEMS]), self.dice.choice(preboots) if self.dice.random() < 0.15 else ""
        )

    def wrong(self, at: Station) -> set[str]:
        """What is forbidden at a station, by the raw tables."""
        found = set()
        if at.release:
            # Of a release without any system nothing is known.
            if (at.release, at.system) not in self.goes and at.release in self.listed:
                # A system that is in no cell at all is forbidden, too.
                found.add(f"{at.release} on {at.system}")
            if at.release not in self.drives:
                found.add(f"cards with {at.release}")
            number = int(at.release.split(".")[1])
            if at.preboot and int(at.preboot.split(".")[1]) >= self.since and number <= self.not_with:
                found.add(f"{at.preboot} with {at.release}")
        if not self.lowest[at.system] <= KERNELS.index(at.kernel) <= self.newest[at.system]:
            found.add(f"{at.kernel} on {at.system}")
        if not at.passthrough:
            found.add(f"iommu with {at.kernel}")
        return found

    def unsure(self, at: Station) -> set[str]:
        """What nothing confirms at a station."""
        source = self.goes.get((at.release, at.system), "" if at.release in self.listed else UNCONFIRMED)
        return {f"{at.release} on {at.system}"} if at.release and source == UNCONFIRMED else set()

    def next(self, at: Station) -> Iterator[tuple[int, Station]]:
        """All that can be done, with what it costs."""
        for release in self.releases:
            if release != at.release:
                yield 1, replace(at, release=release, loaded=True)
        if at.release and not at.loaded:
            yield 1, replace(at, loaded=True)
        good = KERNELS[self.newest[at.system]]
        if any(" on " in each and each.startswith(at.kernel) for each in self.wrong(at)):
            yield 2, replace(at, kernel=good, passthrough=True)
        elif not at.passthrough:
            yield 2, replace(at, passthrough=True)
        for old, new in self.upgrades:
            if old == at.system:
                yield 2, replace(at, system=new, kernel=KERNELS[self.newest[new]], passthrough=True)
        if at.preboot and at.release:
            yield 1, replace(at, preboot=at.release.partition("-")[0])

    def reached(self, at: Station, target: Target) -> bool:
        wanted = (not target.releases or at.release in target.releases) and target.system in ("", at.system)
        wanted = wanted and target.preboot in ("", at.preboot)
        return wanted and bool(at.release) and at.loaded and not self.wrong(at)

    def enters(self, old: Station, new: Station, confirmed: bool) -> bool:
        """Whether a change brings nothing that is forbidden, or with ``confirmed`` nothing that nothing confirms."""
        return self.wrong(new) <= self.wrong(old) and (not confirmed or self.unsure(new) <= self.unsure(old))

    def shortest(self, start: Station, target: Target, confirmed: bool) -> int | None:
        """What the cheapest of all ways costs, found level by level; None where there is none."""
        levels: dict[int, set[Station]] = {0: {start}}
        seen: set[Station] = set()
        for cost in range(60):
            for at in levels.pop(cost, set()) - seen:
                seen.add(at)
                if self.reached(at, target):
                    return cost
                for more, new in self.next(at):
                    if self.enters(at, new, confirmed):
                        levels.setdefault(cost + more, set()).add(new)
            if not levels:
                return None
        raise AssertionError("the search did not end")


def test_2000_ways_are_allowed_and_as_short_as_any() -> None:
    found = none = 0
    for seed in range(100):
        small = Small(seed)
        for each in range(20):
            confirmed = each % 3 == 0
            world = World(small.table, "g", confirmed)
            start, target = small.start(), small.target()
            shortest = small.shortest(start, target, confirmed)
            way = route(world, start, target)
            if way is None:
                assert shortest is None, (seed, start, target)
                assert obstacle(world, start, target)
                none += 1
                continue
            assert sum(move.cost for move in way) == shortest, (seed, start, target, way)
            at = start
            for move in way:
                assert (move.cost, move.to) in set(small.next(at))
                assert small.enters(at, move.to, confirmed)
                at = move.to
            assert small.reached(at, target)
            found += 1
    assert found + none == 2000
    # Both kinds occur often enough to say something.
    assert found > 600 and none > 200


REAL = World(Matrix(), "gaudi3")


def kinds(start: Station, *releases: str, system: str = "", world: World = REAL) -> list[tuple[str, str, str]]:
    return [
        (move.kind, move.to.release, move.to.system) for move in route(world, start, Target(releases, system)) or ()
    ]


def test_the_system_goes_first_where_the_new_release_is_not_for_the_old_one() -> None:
    start = Station("1.23.0-695", "RedHat 9.4", "5.14.0-427.el9_4")
    assert kinds(start, "1.24.1-482") == [
        ("system", "1.23.0-695", "RedHat 9.6"),
        ("release", "1.24.1-482", "RedHat 9.6"),
    ]


def test_the_release_goes_first_where_the_old_one_is_not_for_the_new_system() -> None:
    assert kinds(Station("1.16.0-526", "Ubuntu 22.04"), "1.24.1-482", system="Ubuntu 24.04") == [
        ("release", "1.24.1-482", "Ubuntu 22.04"),
        ("system", "1.24.1-482", "Ubuntu 24.04"),
    ]


def test_a_release_between_bridges_what_shares_no_system() -> None:
    assert kinds(Station("1.17.0-495", "RedHat 9.4"), "1.24.1-482") == [
        ("release", "1.23.0-695", "RedHat 9.4"),
        ("system", "1.23.0-695", "RedHat 9.6"),
        ("release", "1.24.1-482", "RedHat 9.6"),
    ]


def test_preboot_firmware_goes_back_before_the_release_that_it_does_not_start() -> None:
    world = World(Matrix(), "gaudi2")
    way = route(world, Station("1.23.0-695", "Ubuntu 22.04", "", "1.22.0"), Target(("1.20.1-97",))) or []
    assert [(move.kind, move.to.release, move.to.preboot) for move in way] == [
        ("release", "1.21.0-555", "1.22.0"),
        ("preboot", "1.21.0-555", "1.21.0"),
        ("release", "1.20.1-97", "1.21.0"),
    ]


def test_what_nothing_confirms_is_left_out_on_request() -> None:
    start = Station("1.23.0-695", "Ubuntu 24.04")
    assert kinds(start, "1.24.0-1007") == [("release", "1.24.0-1007", "Ubuntu 24.04")]
    world, there = World(Matrix(), "gaudi3", confirmed=True), Target(("1.24.0-1007",))
    assert route(world, start, there) is None
    assert obstacle(world, start, there).startswith("nothing says that 1.24.0-1007 is for Ubuntu 24.04; nothing says")
    # From one that nothing confirms not to another one either.
    unsure = World(Matrix(), confirmed=True)
    assert route(unsure, Station("1.24.0-1007", "Ubuntu 24.04"), Target(("1.24.2-481",))) is None


def test_a_boot_brings_what_the_command_line_lacks() -> None:
    start = Station("1.23.0-695", "Ubuntu 24.04", "6.11.0-9-generic", passthrough=False)
    way = route(REAL, start, Target()) or []
    assert [(move.kind, move.boots, move.to.kernel, move.to.passthrough) for move in way] == [
        ("kernel", 1, "6.8", True)
    ]
