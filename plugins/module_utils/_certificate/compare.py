# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Two certificates of one machine: what got worse, what else changed. Those of different machines are refused.

A machine is known by the serial numbers of its cards: at least one has to be in both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Optional

from .._printable import few
from .._refusal import Refusal
from .document import Certificate
from .evidence import COUNTERS, SINCE_LOAD, Card, Evidence, Port
from .rules import raised

#: From best to worst; without a grade nothing is known.
_ORDER = ("A", "B", "C")
_WORDS = {
    "corrected": "corrected memory errors since the driver was loaded",
    "uncorrected": "uncorrected memory errors since the driver was loaded",
    "throttled_power": "times slowed down to save power",
    "throttled_thermal": "times slowed down for heat",
    "corrected_ever": "corrected memory errors in its life",
    "uncorrected_ever": "uncorrected memory errors in its life",
    "dram_corrected_ever": "corrected errors of HBM in its life",
    "dram_ever": "errors of HBM in its life",
}


@dataclass(frozen=True)
class Comparison:
    """``worse`` and ``odd`` are for a person to act upon, ``changed`` is what else is not as it was."""

    worse: tuple[str, ...]
    odd: tuple[str, ...]
    changed: tuple[str, ...]
    earlier: str
    later: str
    taken: tuple[float, float]
    """When both were taken, in seconds since 1970 by the machine's clock, which their order follows."""

    def as_facts(self) -> dict[str, Any]:
        """Plain data."""
        return {name: list(each) if isinstance(each, tuple) else each for name, each in asdict(self).items()}


def compare(one: Certificate, other: Certificate) -> Comparison:
    """What changed from the earlier certificate to the later; Refusal where they are of different machines."""
    first, last = sorted((one, other), key=lambda each: each.evidence.taken_at)
    before, after = first.evidence, last.evidence
    bare = next((each.node for each in (before, after) if not each.serials), "")
    if bare:
        raise Refusal(
            f"Nothing tells whether these are of one machine: a certificate of {bare} has no serial number of a card. "
            "Give two in which cards are."
        )
    common = before.serials & after.serials
    if not common:
        raise Refusal(
            f"These are two machines: no card of {before.node} ({few(sorted(before.serials), 2)})"
            f" is in {after.node} ({few(sorted(after.serials), 2)}). Give two of one machine."
        )
    said = [*_machine(before, after), *_grades(first, last)]
    by_serial = {card.serial: card for card in after.cards}
    for card in before.cards:
        there = by_serial.get(card.serial)
        if card.serial in common and there is not None:
            said += _card(card, there)
    kinds = {kind: tuple(text for key, text in said if key == kind) for kind in ("worse", "odd", "changed")}
    return Comparison(
        **kinds, earlier=first.judgement.grade, later=last.judgement.grade, taken=(before.taken_at, after.taken_at)
    )


def _machine(before: Evidence, after: Evidence) -> Iterator[tuple[str, str]]:
    gone, come = sorted(before.serials - after.serials), sorted(after.serials - before.serials)
    if gone:
        yield "worse", f"cards that are gone: {', '.join(gone)}"
    if come:
        yield "odd", f"cards that were not there: {', '.join(come)}"
    if before.machine_serial and after.machine_serial and before.machine_serial != after.machine_serial:
        yield "odd", f"the cards were in the machine {before.machine_serial} and are in {after.machine_serial}"
    if before.driver != after.driver:
        yield "changed", f"the driver was {before.driver or 'unknown'} and is {after.driver or 'unknown'}"


def _grades(first: Certificate, last: Certificate) -> Iterator[tuple[str, str]]:
    was, now = first.judgement, last.judgement
    if was.grade in _ORDER and now.grade in _ORDER and was.grade != now.grade:
        kind = "worse" if _ORDER.index(now.grade) > _ORDER.index(was.grade) else "changed"
        yield kind, f"the grade was {was.grade} and is {now.grade}"
    for source, why in now.silent.items():
        if source not in was.silent:
            yield "worse", f"{source} answered and does not any more: {why}"
    known = {(each.rule, each.component) for each in was.broken}
    for each in now.broken:
        if (each.rule, each.component) not in known:
            yield "worse", f"{each.sentence} (rule {each.rule})"


def _card(before: Card, after: Card) -> Iterator[tuple[str, str]]:
    name = after.name
    for counter in COUNTERS:
        was, now = before.counters.get(counter), after.counters.get(counter)
        if was is None or now is None or was == now:
            continue
        text = f"{name}: {_WORDS[counter]} were {was} and are {now}"
        fell = "changed" if counter in SINCE_LOAD else "odd"
        yield ("worse", text) if now > was else (fell, text + ("" if fell == "changed" else ", which only grow"))
    causes = Counter(row.cause for row in before.rows), Counter(row.cause for row in after.rows)
    for cause in sorted({*causes[0], *causes[1]}):
        was, now = causes[0][cause], causes[1][cause]
        if now > was:
            yield "worse", f"{name}: replaced rows (cause {cause}) were {was} and are {now}"
        elif now < was:
            yield "odd", f"{name}: replaced rows (cause {cause}) were {was} and are {now}, and a row stays replaced"
    for image in sorted({*before.firmware, *after.firmware}):
        versions = [each.firmware.get(image, "none") for each in (before, after)]
        if versions[0] != versions[1]:
            yield "changed", f"{name}: firmware {image} was {versions[0]} and is {versions[1]}"
    yield from _ports(name, before, after)
    yield from _controller(name, before, after)


def _ports(name: str, before: Card, after: Card) -> Iterator[tuple[str, str]]:
    known = {port.port: port for port in before.ports}
    for port in after.ports:
        was = known.get(port.port)
        if was is None:
            continue
        for field, words in (("restores", "restored links"), ("uncorrected", "code words that were not corrected")):
            old, new = _value(was, field), _value(port, field)
            if old is not None and new is not None and old != new:
                kind = "worse" if new > old else "changed"
                yield kind, f"{name} port {port.port}: {words} were {old} and are {new}"
        if (was.link, port.link) == ("up", "down"):
            yield "worse", f"{name} port {port.port}: the link was up and is down"


def _value(port: Port, field: str) -> Optional[int]:
    return port.restores if field == "restores" else port.uncorrected


def _controller(name: str, before: Card, after: Card) -> Iterator[tuple[str, str]]:
    if before.controller is None or after.controller is None:
        return
    for key in sorted({*before.controller.keys, *after.controller.keys}):
        was, now = before.controller.keys.get(key), after.controller.keys.get(key)
        if raised(was) is False and raised(now) is not False:
            yield "worse", f"{name}: {key.partition('_')[0]} was not revoked and is (its controller says {now})"
        elif was != now:
            yield "odd", f"{name}: the revocation of {key.partition('_')[0]} was {was} and is {now}"
    for each in sorted({*before.controller.memory, *after.controller.memory}):
        was, now = before.controller.memory.get(each), after.controller.memory.get(each)
        if was == now:
            continue
        grew = isinstance(was, (int, float)) and isinstance(now, (int, float)) and now > was
        kind = "worse" if grew or (raised(was) is False and raised(now) is not False) else "changed"
        yield kind, f"{name}: {each.replace('_', ' ')} was {was} and is {now}"
