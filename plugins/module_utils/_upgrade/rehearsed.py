# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What a plan says of its rehearsal: ways, power cuts, refusals, and minutes where somebody has measured them.

Minutes come from an owner's own records, or from whoever asks. Nothing here knows any.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from .._printable import printable
from .._refusal import Refusal
from . import steps
from .planned import unrehearsed
from .rehearsal import Rehearsal

#: What may be measured; all cards' flashes are of one kind.
KINDS = (*steps.SAID, steps.FIRMWARE)
GIVEN = "given"
#: A week: no step takes longer.
_MOST_MINUTES = 7 * 24 * 60


@dataclass(frozen=True)
class Minutes:
    """How long a step takes on one node, and who says so."""

    minutes: float
    source: str


def kind(step: str) -> str:
    """``firmware`` for each card's flash, else the step."""
    return steps.FIRMWARE if steps.is_flash(step) else step


def given(options: Sequence[str]) -> dict[str, Minutes]:
    """Minutes as somebody gives them, ``STEP=MINUTES``; Refusal for what is none."""
    found = {}
    for word in options:
        name, _equals, value = word.partition("=")
        number = float(value) if re.fullmatch(r"\d{1,6}(\.\d{1,3})?", value) else math.nan
        if name not in KINDS or not 0 < number <= _MOST_MINUTES:
            raise Refusal(
                f"The minutes are {printable(word, 60)}: give STEP=MINUTES, such as health=25, with a STEP of "
                f"{', '.join(KINDS)}"
            )
        found[name] = Minutes(number, GIVEN)
    return found


def measured(records: Iterable[Mapping[str, Any]]) -> dict[str, Minutes]:
    """Minutes by the ``seconds`` of an owner's earlier records, of each kind of step the longest."""
    seconds: dict[str, list[float]] = {}
    for record in records:
        found = record.get("seconds")
        for step, value in found.items() if isinstance(found, Mapping) else ():
            fits = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= _MOST_MINUTES * 60
            if fits and kind(str(step)) in KINDS:
                seconds.setdefault(kind(str(step)), []).append(float(value))
    return {
        name: Minutes(round(max(each) / 60, 1), f"the longest of {len(each)} in records")
        for name, each in seconds.items()
    }


def durations(plan: Mapping[str, Any], known: Mapping[str, Minutes]) -> dict[str, Any]:
    """Minutes of each node and of the fleet on the way up; None where a step's are unknown."""
    nodes: dict[str, Optional[float]] = {}
    for name, node in plan["nodes"].items():
        each = [known.get(kind(step)) for step in node["up"]]
        nodes[name] = round(sum(one.minutes for one in each if one), 1) if all(each) else None
    slowest = [[nodes[name] for name in batch] for batch in plan["batches"]]
    whole = [max(one for one in batch if one is not None) for batch in slowest if None not in batch]
    needed = dict.fromkeys(kind(step) for node in plan["nodes"].values() for step in node["up"])
    return {
        "steps": {
            name: {"minutes": known[name].minutes, "source": known[name].source} for name in needed if name in known
        },
        "unknown": [name for name in needed if name not in known],
        "nodes": nodes,
        "fleet": round(sum(whole), 1) if len(whole) == len(slowest) and whole else None,
    }


def section(plan: Mapping[str, Any], done: Rehearsal, known: Mapping[str, Minutes], made: str) -> dict[str, Any]:
    """What is written into the plan; Refusal where the rehearsal found something."""
    if done.problems:
        raise Refusal(" ".join(done.problems))
    return {
        "of": unrehearsed(plan),
        "made": made,
        "order": plan["batches"],
        "ways": [
            {
                "nodes": list(way.nodes),
                "fails": way.fails,
                "end": way.end,
                "back": list(way.back),
                "cuts": way.cuts,
            }
            for way in done.ways
        ],
        "refusals": list(done.refusals),
        "cuts": done.cuts,
        "minutes": durations(plan, known),
    }


def text(plan: Mapping[str, Any], about: Mapping[str, Any]) -> str:
    """The plan's file with its rehearsal."""
    return json.dumps({**plan, "rehearsal": about}, indent=1, sort_keys=True, ensure_ascii=True) + "\n"


def refusals(plan: Mapping[str, Any], unrehearsed_allowed: bool) -> list[str]:
    """Why a plan is not carried out that nobody has rehearsed."""
    if "rehearsal" in plan or unrehearsed_allowed or not plan["nodes"]:
        return []
    return [
        "The plan was not rehearsed: do that with `gaudi3-deploy upgrade rehearse`, or set "
        "upgrade_unrehearsed_allowed=true."
    ]
