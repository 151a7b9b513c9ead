# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Plans the upgrade of a fleet: in which order, by which steps, what is refused, and the way back. Changes nothing.

A plan is for the state that the fleet has now: its fingerprint is that state's, and it is carried out on no other.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from .._printable import few, printable
from .._refusal import Refusal
from .._release.compat import FORBIDDEN, Matrix
from .._release.journey import Journey, journey
from .._release.versions import Release, version_of
from . import steps
from .state import NodeState, fingerprint

SCHEMA = 1
#: What a change of the release brings with it by itself, and what the owner of a container or an environment has to do.
_OURS, _OWNERS = ("release", "load", "torch", "build"), ("image", "vllm", "python")
#: A version of preboot firmware, without the words around it.
FIRMWARE = re.compile(r"hl-[A-Za-z0-9.-]{1,100}")
STOPPED, MOVE = "stopped", "move"
_FLASHER = "habanalabs-firmware-odm"


@dataclass(frozen=True)
class Wish:
    """What is asked for. ``share`` is that of a batch after the canary, and at least one node is in each."""

    release: str
    spares: tuple[str, ...] = ()
    share: float = 0.1
    jobs: str = STOPPED
    """Whether jobs have been stopped, or leave each node while they go on elsewhere."""
    downgrade: bool = False
    firmware: str = ""
    """Preboot firmware that each card is to have, as the card will say it; empty: none is flashed."""
    canary: str = ""
    """The node to begin with; empty: a spare, else one without jobs."""
    made: str = ""
    """When it is asked for. After a surprise a new plan of the same fleet has to be another plan."""


@dataclass(frozen=True)
class NodePlan:
    """One node's way."""

    before: str
    """Its release."""
    up: tuple[str, ...]
    back: tuple[str, ...]
    packages: Mapping[str, tuple[str, str]]
    """Versions before and after, by name."""
    boots: int
    cautions: tuple[str, ...] = ()

    def as_plain(self) -> dict[str, Any]:
        """For a file."""
        return {
            "before": self.before,
            "up": list(self.up),
            "back": list(self.back),
            "packages": {name: list(each) for name, each in self.packages.items()},
            "boots": self.boots,
            "minutes": None,  # nothing has measured an upgrade on hardware
            "cautions": list(self.cautions),
        }


@dataclass(frozen=True)
class Plan:
    """A fleet's upgrade."""

    release: str
    jobs: str
    fleet: Mapping[str, Mapping[str, Any]]
    """The facts that each node is held to, also of nodes that have nothing to do."""
    batches: tuple[tuple[str, ...], ...]
    """Nodes that go together; the first is the canary alone."""
    nodes: Mapping[str, NodePlan]
    there: tuple[str, ...] = ()
    """Nodes that have the release already."""
    refusals: tuple[str, ...] = ()
    spares: tuple[str, ...] = ()
    firmware: str = ""
    made: str = ""

    @property
    def fingerprint(self) -> str:
        """Of the fleet's state."""
        return fingerprint(self.fleet)

    def as_plain(self) -> dict[str, Any]:
        """For a file."""
        return {
            "schema": SCHEMA,
            "made": self.made,
            "release": self.release,
            "fingerprint": self.fingerprint,
            "jobs": self.jobs,
            "firmware": self.firmware,
            "spares": list(self.spares),
            "batches": [list(each) for each in self.batches],
            "there": list(self.there),
            "refusals": list(self.refusals),
            "nodes": {name: each.as_plain() for name, each in self.nodes.items()},
            "fleet": {name: dict(each) for name, each in self.fleet.items()},
        }

    def text(self) -> str:
        """The file, the same for the same fleet and wish."""
        return json.dumps(self.as_plain(), indent=1, sort_keys=True, ensure_ascii=True) + "\n"


def make(states: Mapping[str, NodeState], wish: Wish, matrix: Optional[Matrix] = None) -> Plan:
    """The plan for these nodes, with what is refused in it; ``Refusal`` for a wish that cannot be one."""
    table = matrix or Matrix()
    release = _release(wish.release, table)
    _check(states, wish)
    facts = {name: state.facts() for name, state in states.items()}
    there, ways, refusals = [], {}, []
    for name, state in states.items():
        if _is_there(state, release) and not wish.firmware:
            there.append(name)
            continue
        try:
            ways[name] = _node(state, release, wish, table)
        except Refusal as refusal:
            refusals.append(f"{name}: {refusal}")
    refusals += _fleet(states, list(ways), wish)
    batches = _batches(states, list(ways), wish)
    settled = (tuple(there), tuple(refusals), wish.spares, wish.firmware, wish.made)
    return Plan(release, wish.jobs, facts, batches, ways, *settled)


def _release(given: str, table: Matrix) -> str:
    found = table.release_of(given)
    if not found or given not in (found, version_of(found)):
        newest = few(list(table.releases[::-1]), 4)
        raise Refusal(f"Release {printable(given, 60)} is in no matrix: give one of {newest}")
    return found


def _check(states: Mapping[str, NodeState], wish: Wish) -> None:
    if not states:
        raise Refusal("There are no nodes to plan for: give the reports of at least one, or an inventory")
    if not (0 < wish.share <= 1 and math.isfinite(wish.share)):
        raise Refusal(f"The share of a batch is {wish.share}: give more than 0 and at most 1, such as 0.1 for a tenth")
    if wish.firmware and not FIRMWARE.fullmatch(wish.firmware):
        shown = printable(wish.firmware, 60)
        raise Refusal(f"The firmware is {shown}: give it as a card says it, such as hl-gaudi3-1.22.0-fw-61.3.2-sec-9")
    for name in (*wish.spares, *([wish.canary] if wish.canary else [])):
        if name not in states:
            raise Refusal(f"{printable(name, 60)} is not among the nodes: give one of {few(list(states))}")


def _is_there(state: NodeState, release: str) -> bool:
    node = state.versions
    versions = set(node.packages.values())
    packages = bool(versions) and all(_of_release(each, release) for each in versions)
    plugin = not node.plugin or version_of(node.plugin) == version_of(release)
    return packages and version_of(node.driver) == version_of(release) and plugin


def _of_release(version: str, release: str) -> bool:
    """``1.23.0-695`` and rpm's ``1.23.0-695.el9`` are of 1.23.0-695."""
    return version == release or version.startswith(f"{release}.")


def _node(state: NodeState, release: str, wish: Wish, table: Matrix) -> NodePlan:
    """One node's way; Refusal in one sentence, without the node's name, where there is none."""
    node = state.versions
    if state.fence:
        why = f" ({state.fence_reason})" if state.fence_reason else ""
        raise Refusal(f"It is out of service already{why}: heal it and give it back, or leave it out")
    if not state.cards:
        raise Refusal("It shows no card, so that nothing could be tested after it: look at it, and let it report again")
    if not node.packages or not node.driver:
        raise Refusal("It has no driver or no packages of the vendor: install them with gaudi3.scale.drivers")
    present = sorted({_tag(version) for version in node.packages.values()})
    if len(present) > 1:
        raise Refusal(
            f"Its packages are of {len(present)} releases ({few(present)}), so there is no way back to one: bring them "
            "in step with gaudi3.scale.drivers first"
        )
    before = present[0]
    if before not in table.releases:
        raise Refusal(f"Its release {printable(before, 60)} is in no matrix, so its way back cannot be judged")
    if version_of(node.driver) != version_of(before):
        raise Refusal(f"Its driver is {node.driver} and its packages are {before}: load that driver or boot it first")
    if Release.parse(release) < Release.parse(before) and not wish.downgrade:
        raise Refusal(f"It has {before}, which is newer than {release}: allow a downgrade to go back")
    way = journey(node, {"release": release}, table)
    _passable(way)
    if table.goes(before, "system", node.system).level == FORBIDDEN:
        raise Refusal(f"Its {before} is not for {node.system}, so there is no way back to it")
    cards: Sequence[str] = ()
    if wish.firmware:
        if not state.firmware or len(state.firmware) != state.cards:
            raise Refusal("The firmware of its cards is not known one by one: give its doctor's report")
        cards = [address for address, text in state.firmware.items() if wish.firmware not in text]
        if cards and _FLASHER not in node.packages:
            raise Refusal(f"It has no package {_FLASHER}, which firmware is flashed with: install it first")
    pytorch = bool(node.plugin) and version_of(node.plugin) != version_of(release)
    going = steps.up(cards, pytorch)
    owners = [f"{step.what}, which this plan does not do" for step in way.steps if step.kind in _OWNERS]
    if not node.generation:
        owners.append("its cards are of no one known generation, so nothing says that the release drives them")
    flash = ["once a card is flashed there is no automatic way back"] if cards else []
    packages = {name: (version, _after(version, before, release)) for name, version in sorted(node.packages.items())}
    returning = steps.back([steps.FENCE, steps.PACKAGES], going) or ()
    return NodePlan(before, going, returning, packages, way.boots, (*way.cautions, *owners, *flash))


def _passable(way: Journey) -> None:
    if way.no_way:
        raise Refusal(way.no_way)
    other = next((step for step in way.steps if step.kind not in (*_OURS, *_OWNERS)), None)
    if other is not None:
        raise Refusal(f"{other.what} first, as {other.because}")
    if sum(step.kind == "release" for step in way.steps) > 1:
        through = next(step.what for step in way.steps if step.kind == "release")
        raise Refusal(f"{through} in a plan of its own first, as no way leads there directly")


def _tag(version: str) -> str:
    """``1.23.0-695`` of ``1.23.0-695.el9``."""
    number, dash, build = version.partition("-")
    return f"{number}{dash}{build.partition('.')[0]}"


def _after(version: str, before: str, release: str) -> str:
    return release + version[len(before) :]


def _fleet(states: Mapping[str, NodeState], going: Sequence[str], wish: Wish) -> list[str]:
    """What concerns more than one node."""
    running: dict[str, list[str]] = {}
    for name in going:
        for job in states[name].jobs:
            running.setdefault(job, []).append(name)
    if wish.jobs != MOVE:
        return [
            f"Job {job} runs on {few(names)}, and all nodes of a job have to be on one release: stop it, or plan with "
            "jobs that move, which nothing confirms on hardware."
            for job, names in running.items()
        ]
    found = []
    size = _size(len(going), wish)
    if running and size > len(wish.spares):
        found.append(
            f"Batches of {size} would take more nodes from the jobs than the {len(wish.spares)} spares replace: name "
            "more spares, or make batches smaller."
        )
    return found


def _size(number: int, wish: Wish) -> int:
    """Firmware is flashed on one card of the fleet at a time."""
    return 1 if wish.firmware else max(1, math.floor(number * wish.share))


def _batches(states: Mapping[str, NodeState], going: Sequence[str], wish: Wish) -> tuple[tuple[str, ...], ...]:
    """The canary alone; then spares, nodes without jobs, and the others, each in the order in which they were given."""
    order = sorted(
        going,
        key=lambda name: (name != wish.canary, name not in wish.spares, bool(states[name].jobs), going.index(name)),
    )
    if not order:
        return ()
    size, rest = _size(len(order), wish), order[1:]
    return ((order[0],), *(tuple(rest[start : start + size]) for start in range(0, len(rest), size)))
