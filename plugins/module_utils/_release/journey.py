# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""From a node's versions to those that are wished for: each step, the rule that decides it, and what breaks then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Optional

from .._printable import few, printable
from .._refusal import Refusal
from .compat import FORBIDDEN, Matrix
from .matrix import CHANGES, SOURCES, UNCONFIRMED
from .need import doing, images, need, wishes_of
from .node import Node, numbers, said_system
from .route import Move, Station, Target, World, obstacle, route, station_of, why
from .rules import check
from .versions import Release, version_of

#: What can be gone to.
GOALS = ("release", "system", "torch", "vllm", "preboot")
#: Parts that may be kept, so that the rest follows them.
KEEP = ("image", "plugin", "vllm", "driver", "packages")


@dataclass(frozen=True)
class Step:
    """One thing to do."""

    kind: str
    what: str
    boots: int
    because: str
    source: str
    breaks: tuple[str, ...] = ()

    def as_facts(self) -> dict[str, Any]:
        """For a program."""
        return {
            "kind": self.kind,
            "what": self.what,
            "boots": self.boots,
            "because": self.because,
            "source": self.source,
            "breaks": list(self.breaks),
        }


@dataclass(frozen=True)
class Journey:
    """All steps, the driver's side first."""

    steps: tuple[Step, ...]
    release: str
    system: str
    cautions: tuple[str, ...] = ()
    """On pairs of its end of which nothing is known."""
    no_way: str = ""
    """Why there are no steps, in one sentence; empty where there is a way."""

    @property
    def changes(self) -> int:
        """Changes of release, system, kernel and firmware; what follows them is not among them."""
        return sum(each.kind not in ("build", "torch", "image", "vllm", "python") for each in self.steps)

    @property
    def boots(self) -> int:
        """How often the node boots."""
        return sum(each.boots for each in self.steps)

    def as_facts(self) -> dict[str, Any]:
        """For a program."""
        return {
            "steps": [each.as_facts() for each in self.steps],
            "changes": self.changes,
            "boots": self.boots,
            "release": self.release,
            "system": self.system,
            "cautions": list(self.cautions),
            "no_way": self.no_way,
        }


def journey(
    node: Node,
    goal: Mapping[str, str],
    matrix: Optional[Matrix] = None,
    keep: Sequence[str] = (),
    confirmed: bool = False,
) -> Journey:
    """The shortest way to a goal, or without one to versions that go together; ``Refusal`` for what cannot be asked."""
    table = matrix or Matrix()
    wanted = check_goal(goal)
    start = station_of(node, table)
    if not start.system and (wanted.get("system") or not start.release):
        raise Refusal("The node's system is not known: give it as system=..., for example system='Ubuntu 24.04'.")
    world = World(table, node.generation, confirmed)
    releases, none = _releases(node, wanted, table, keep)
    if none:
        return Journey((), start.release, start.system, no_way=none)
    target = Target(releases, wanted.get("system", ""), wanted.get("preboot", ""))
    way = route(world, start, target)
    if way is None:
        there = _said(wanted) or "versions that go together"
        said = f"No way leads from {_where(start)} to {there}: {obstacle(world, start, target)}."
        return Journey((), start.release, start.system, no_way=said)
    end = way[-1].to if way else start
    steps, at = [], start
    for move in way:
        because, source = why(world, at, move, end, _asked(wanted, keep, move))
        steps.append(
            Step(move.kind, _what(node, at, move, table), move.boots, because, source, _breaks(node, at, move))
        )
        at = move.to
    if not any(move.kind in ("system", "kernel") for move in way):
        steps += _next_boot(node, table)
    steps += _users(node, end, wanted, table)
    return Journey(tuple(steps), end.release, end.system, tuple(_cautions(world, end)))


def check_goal(given: Mapping[str, str]) -> dict[str, str]:
    """A goal with a system by the matrix's name; ``Refusal`` for what is none."""
    odd = sorted(set(given) - set(GOALS))
    if odd:
        raise Refusal(f"{printable(odd[0], 60)!r} is nothing to go to: give NAME=VALUE with one of {', '.join(GOALS)}.")
    preboot = {"preboot": given["preboot"]} if given.get("preboot") else {}
    return {**wishes_of({name: value for name, value in given.items() if name != "preboot"}), **preboot}


def _releases(node: Node, wanted: Mapping[str, str], table: Matrix, keep: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """The releases that the goal allows, none where any does; and why no release does, in one sentence."""
    odd = sorted(set(keep) - set(KEEP))
    if odd:
        raise Refusal(f"{printable(odd[0], 60)!r} cannot be kept: give some of {', '.join(KEEP)}.")
    wishes = {name: value for name, value in wanted.items() if name in ("release", "torch", "vllm")}
    claims = node.claims()
    for name in keep:
        if name not in claims:
            raise Refusal(f"{name} cannot be kept, as its release is not known: give it among the node's versions.")
        if not table.release_of(claims[name]):
            raise Refusal(f"{name} is of {claims[name]}, which is in no matrix: take another one, or do not keep it.")
        wishes.setdefault("release", claims[name])
    if not wishes:
        return (), ""
    found = need(wishes, table)  # refuses what nothing knows
    none = f"No release does all of {_said(wishes)}: {' '.join(found.instead)}"
    return tuple(doing(table, wishes)), "" if found.candidates else none


def _asked(wanted: Mapping[str, str], keep: Sequence[str], move: Move) -> str:
    if move.kind != "release" or "release" in wanted:
        return _said({name: value for name, value in wanted.items() if name == move.kind}) + " is asked for"
    if keep:
        return f"what is kept is of it: {', '.join(keep)}"
    wishes = {name: value for name, value in wanted.items() if name in ("torch", "vllm")}
    return f"it is the release for {_said(wishes)}" if wishes else "it is the nearest that goes together"


def _said(wanted: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {said_system(value)}" for name, value in wanted.items())


def _where(at: Station) -> str:
    return f"{at.release or 'nothing'} on {said_system(at.system)}" if at.system else at.release or "nothing"


def _what(node: Node, at: Station, move: Move, table: Matrix) -> str:
    new = move.to
    if move.kind == "load" and len(set(map(version_of, node.packages.values()))) > 1:
        return f"Bring the whole package set to {new.release}, and load its driver"
    back = numbers(new.release)[:3] < numbers(at.release)[:3] or (
        at.release in table.releases and Release.parse(new.release) < Release.parse(at.release)
    )
    if move.kind == "release":
        how = " (synapseai_allow_downgrade=true)" if back else ""
        return f"Install {new.release} with its driver, firmware images and tools{how}, and load it"
    return {
        "load": f"Build the driver of {new.release} for the kernel that runs, and load it",
        "kernel": f"Boot a kernel {new.kernel}",
        "iommu": "Boot with intel_iommu=on iommu=pt",
        "system": f"Upgrade {said_system(at.system)} to {said_system(new.system)}, and boot it",
        "preboot": f"Take the driver out and flash the preboot firmware of {new.preboot} with hl-fw-loader",
    }[move.kind]


def _breaks(node: Node, at: Station, move: Move) -> tuple[str, ...]:
    new, found = move.to, []
    if move.kind in ("release", "load", "preboot"):
        found.append("jobs have to stop, as the running driver is taken out; external ports are down until brought up")
    if move.boots:
        found.append("jobs have to stop, as the node boots")
    if move.kind == "release" and at.release:
        version = version_of(new.release)
        parts = {
            "plugin": (node.plugin or node.torch, "PyTorch of {} until that of {} is there"),
            "image": (node.image, "images of {} until one of {} is taken"),
            "vllm": (node.vllm, "vLLM for {} until one for {} is there"),
        }
        for part, (value, said) in parts.items():
            of = node.claims().get(part) or version_of(at.release)
            if value and of != version:
                found.append(said.format(of, version))
        if node.vllm:
            found.append("recipe caches, which are void with other software")
        old = numbers(at.release)[:3]
        found += [
            f"from {each.release} on {each.what} ({SOURCES[each.source]})"
            for each in CHANGES
            if old < numbers(each.release) <= numbers(new.release)[:3]
        ]
    if move.kind == "system" and node.python:
        found.append(f"environments of Python {node.python}, which the new system may not have")
    if move.kind == "preboot":
        found.append("a card whose power fails meanwhile")
    return tuple(found)


def _next_boot(node: Node, table: Matrix) -> list[Step]:
    """What keeps the next boot from a kernel without a driver."""
    return [
        Step("build", each.cure[:1].upper() + each.cure[1:], 0, each.sentence.rstrip("."), each.source)
        for each in check(node, table)
        if each.culprit == "next_kernel"
    ]


def _users(node: Node, end: Station, wanted: Mapping[str, str], table: Matrix) -> list[Step]:
    """PyTorch, image, vLLM and Python that have to follow the driver."""
    then = replace(
        node,
        driver=version_of(end.release) or "",
        packages={},
        built_for=None,
        system=end.system,
        kernel=end.kernel,
        next_kernel="",
        iommu="",
        preboot="",
        boot_image="",
    )
    odd = {each.culprit: each for each in reversed(check(then, table, ("driver",))) if each.level == FORBIDDEN}
    found = []
    torch = [each.value for each in table.values(end.release, "torch")]
    named = f"PyTorch {torch[0]}" if torch else "the PyTorch"
    wrong = odd.get("plugin") or odd.get("torch")
    if wrong:
        found.append(Step("torch", f"Install {named} of {end.release}", 0, wrong.sentence.rstrip("."), wrong.source))
    if "image" in odd:
        systems = [end.system] if end.system else [each.value for each in table.values(end.release, "system")]
        names = images(table, end.release, systems)
        what = f"Take {names[0]}" if names else f"Take an image of {end.release}"
        found.append(Step("image", what, 0, odd["image"].sentence.rstrip("."), odd["image"].source))
    if "vllm" in odd or (wanted.get("vllm") and not node.vllm.startswith(wanted["vllm"])):
        names = [each.value for each in table.values(end.release, "vllm")]
        what = f"Take vLLM {wanted.get('vllm') or few(names[::-1])}" if names else "Take no vLLM: none is known for it"
        because = odd["vllm"].sentence.rstrip(".") if "vllm" in odd else f"vLLM {wanted['vllm']} is asked for"
        found.append(Step("vllm", what, 0, because, odd["vllm"].source if "vllm" in odd else "the request"))
    if "python" in odd:
        what = odd["python"].cure[:1].upper() + odd["python"].cure[1:]
        found.append(Step("python", what, 0, odd["python"].sentence.rstrip("."), odd["python"].source))
    return found


def _cautions(world: World, end: Station) -> list[str]:
    return [
        f"{verdict.why[0].upper()}{verdict.why[1:]}."
        for _pair, verdict in world.verdicts(end)
        if verdict.level == UNCONFIRMED and verdict.why
    ]
