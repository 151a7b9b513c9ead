# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Reads a plan's file, and tells whether the fleet is still the one that it was made for.

A plan may have been edited: what it does not hold together is refused, and no step of it is carried out.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Optional

from .._printable import printable
from .._refusal import Refusal
from .._release.versions import Release
from . import steps
from .plan import FIRMWARE, MOVE, SCHEMA, STOPPED
from .state import FACTS, NodeState, difference, fingerprint

#: No plan of a thousand nodes is larger.
MOST_BYTES = 16 << 20
#: What a plan's signature is for.
NAMESPACE = "gaudi3-upgrade"
_AGAIN = "make it again with `gaudi3-deploy upgrade plan`"
_FLASH = re.compile(r"firmware [0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")


def digest(text: str) -> str:
    """SHA-256 of a plan's file, by which records belong to it."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def unrehearsed(plan: Mapping[str, Any]) -> str:
    """SHA-256 of what a plan says without its rehearsal, by which that belongs to it."""
    rest = {name: value for name, value in plan.items() if name != "rehearsal"}
    return digest(json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=True))


def is_name(name: str) -> bool:
    """Whether a node of a plan can have this name."""
    return _NAME.fullmatch(name) is not None


def read(text: str) -> dict[str, Any]:
    """The plan in a file; ``Refusal`` where it is none, or not one that holds together."""
    if len(text) > MOST_BYTES:
        raise Refusal(f"The plan has more than {MOST_BYTES >> 20} MiB, which no plan has: {_AGAIN}")
    try:
        plan = json.loads(text)
    except (ValueError, RecursionError):
        raise Refusal(f"The plan is no JSON: {_AGAIN}") from None
    if not isinstance(plan, dict) or plan.get("schema") != SCHEMA:
        raise Refusal(f"The plan is not of format {SCHEMA}, which this version reads: {_AGAIN}")
    fleet, nodes, batches = plan.get("fleet"), plan.get("nodes"), plan.get("batches")
    if not isinstance(fleet, dict) or not isinstance(nodes, dict) or not isinstance(batches, list):
        raise Refusal(f"The plan has no fleet, nodes and batches: {_AGAIN}")
    if not all(isinstance(each, dict) and set(each) == set(FACTS) for each in fleet.values()):
        raise Refusal(f"The plan's fleet is not described by {', '.join(FACTS)}: {_AGAIN}")
    if plan.get("fingerprint") != fingerprint(fleet):
        raise Refusal(f"The plan's fingerprint is not that of the fleet in it: {_AGAIN}")
    if not _is_release(plan.get("release")) or plan.get("jobs") not in (STOPPED, MOVE):
        raise Refusal(f"The plan names no release, or jobs that are neither {STOPPED} nor {MOVE}: {_AGAIN}")
    firmware = plan.get("firmware")
    if not isinstance(firmware, str) or (firmware and not FIRMWARE.fullmatch(firmware)):
        raise Refusal(f"The plan's firmware is none that a card can have: {_AGAIN}")
    if not all(isinstance(batch, list) for batch in batches) or not isinstance(plan.get("refusals"), list):
        raise Refusal(f"The plan has batches or refusals that are no lists: {_AGAIN}")
    every = [name for batch in batches for name in batch]
    if sorted(map(str, every)) != sorted(nodes) or not all(map(is_name, fleet)):
        raise Refusal(f"The plan's batches are not of its nodes, each once: {_AGAIN}")
    for name, node in nodes.items():
        if name not in fleet or not _is_node(node, plan["release"], fleet[name]["packages"]):
            raise Refusal(f"The plan's steps of {printable(name, 60)} are none that it can have: {_AGAIN}")
    if firmware and any(len(batch) > 1 for batch in batches):
        raise Refusal(f"The plan would flash cards of more than one node at a time: {_AGAIN}")
    of = plan.get("rehearsal", {"of": unrehearsed(plan)})
    if not isinstance(of, dict) or of.get("of") != unrehearsed(plan):
        raise Refusal("The plan is not the one that was rehearsed: `gaudi3-deploy upgrade rehearse` it again")
    return plan


def _is_node(node: Any, release: str, there: Any) -> bool:
    if not isinstance(node, dict) or not isinstance(node.get("packages"), dict):
        return False
    up, back, before = node.get("up"), node.get("back"), node.get("before")
    if not isinstance(up, list) or not isinstance(back, list) or not isinstance(before, str):
        return False
    flashed = [str(each).partition(" ")[2] for each in up if _FLASH.fullmatch(str(each))]
    versions = list(node["packages"].values())
    return (
        tuple(up) == steps.up(flashed, steps.PYTORCH in up)
        and tuple(back) == steps.back([steps.PACKAGES], up)
        and all(isinstance(each, list) and len(each) == 2 and all(map(_is_version, each)) for each in versions)
        and all(f"{each[1]}.".startswith(f"{release}.") for each in versions)
        and all(f"{each[0]}.".startswith(f"{before}.") for each in versions)
        # One that is left out would stay as it is on the way up, and be taken for one too many on the way back.
        and {name: each[0] for name, each in node["packages"].items()} == there
        and _is_release(before)
    )


def _is_release(value: Any) -> bool:
    try:
        Release.parse(value)
    except (ValueError, AttributeError):
        return False
    return True


def _is_version(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[0-9A-Za-z.+~:-]{1,100}", value) is not None


def refusals(
    plan: Mapping[str, Any], states: Mapping[str, Optional[NodeState]], under_way: Mapping[str, bool]
) -> list[str]:
    """Why the plan is not carried out now, each in one sentence; none where it still fits.

    ``states`` are the nodes as they are now, None where one does not answer. A node that is ``under_way``, or done, by
    a record of this very plan has other versions than planned, and is judged by its record's looks.
    """
    found = [str(each) for each in plan.get("refusals", [])]
    fleet = plan["fleet"]
    found += [f"{name} is not in the plan: plan again with all nodes." for name in states if name not in fleet]
    for name, planned in fleet.items():
        state = states.get(name)
        if state is None:
            found.append(f"{name} is in the plan and does not answer: repair it, or plan again without it.")
            continue
        present = state.facts()
        if under_way.get(name):
            present = {**present, **{each: planned[each] for each in ("driver", "packages", "preboot")}}
        differs = difference(planned, present)
        if differs:
            found.append(f"{name} is not as it was when the plan was made ({differs}): plan again.")
        elif state.fence and name in plan["nodes"] and not under_way.get(name):
            why = f" ({state.fence_reason})" if state.fence_reason else ""
            found.append(f"{name} has been taken out of service{why}: give it back, or plan again without it.")
        elif state.jobs and plan["jobs"] == STOPPED and name in plan["nodes"] and not under_way.get(name):
            found.append(f"{name} runs {', '.join(state.jobs)}, which the plan takes to be stopped: stop it first.")
    return found


def wanted(plan: Mapping[str, Any], name: str, back: bool, held: Any = None) -> dict[str, Any]:
    """What a node's way leads to, as ``steps.is_done`` asks it."""
    node = plan["nodes"][name]
    packages = {package: each[0 if back else 1] for package, each in node["packages"].items()}
    release = node["before"] if back else plan["release"]
    return {"release": release, "firmware": plan["firmware"], "packages": packages, "exact": back, "held": held}
