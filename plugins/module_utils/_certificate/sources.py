# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Which sources a machine has to answer, and which of them did not.

A value that a rule needs and that a source did not give makes the source one that did not answer: else a rule would
hold because nobody looked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .evidence import CARDS, CONTROLLER, PORTS, QUAL, ROWS, SOURCES, STEP, Card, Evidence

#: Of each generation, the sources that a grade needs. No model of a Gaudi 2's management controller is read.
NEEDED: Mapping[str, tuple[str, ...]] = {
    "gaudi3": SOURCES,
    "gaudi2": tuple(source for source in SOURCES if source != CONTROLLER),
}
#: The modes of hl_qual that a grade needs.
MODES = ("functional", "power", "pcie", "memory-bandwidth", "hbm", "nic", "link-errors")
_COUNTERS = ("corrected", "uncorrected", "throttled_power", "throttled_thermal", "corrected_ever", "uncorrected_ever")


def needed(evidence: Evidence) -> tuple[str, ...]:
    """The sources that this machine has to answer."""
    return NEEDED.get(evidence.generation or "", SOURCES)


def silent(evidence: Evidence) -> dict[str, str]:
    """Why each source that did not answer did not, in the order of the page."""
    found: dict[str, str] = {}
    for source, why in _lacks(evidence):
        found.setdefault(source, why)
    return {source: found[source] for source in needed(evidence) if source in found}


def _lacks(evidence: Evidence) -> Iterator[tuple[str, str]]:
    yield from evidence.unanswered.items()
    if not evidence.cards:
        yield CARDS, "it shows no card"
    if len(evidence.serials) < len(evidence.cards):
        yield CARDS, "two cards have one serial number, or a card has none"
    for card in evidence.cards:
        yield from _of_card(card)
    if evidence.cards and all(card.controller is None for card in evidence.cards):
        yield CONTROLLER, "it was not asked"
    yield from _results(evidence)


def _of_card(card: Card) -> Iterator[tuple[str, str]]:
    missing = [name for name in _COUNTERS if card.counters.get(name) is None]
    missing += [f"pcie {name}" for name, value in card.pcie.items() if value is None]
    missing += [] if card.status else ["status"]
    if missing or not card.pcie:
        yield CARDS, f"it does not tell {missing[0] if missing else 'pcie'} of {card.name}"
    if card.rows_pending is None:
        yield ROWS, f"whether rows of {card.name} wait to be replaced is not known"
    dumb = [port.port for port in card.ports if port.link is None or port.restores is None]
    if dumb or not card.ports:
        yield PORTS, f"those of {card.name} port {dumb[0]} are missing" if dumb else f"{card.name} shows no port"


def _results(evidence: Evidence) -> Iterator[tuple[str, str]]:
    for result in evidence.qual:
        if result.passed is None:
            yield QUAL, f"{result.name} gave no result: {result.message or 'no reason'}"
    ended = {result.name for result in evidence.qual if result.passed is not None}
    missing = [mode for mode in MODES if mode not in ended]
    if missing:
        yield QUAL, f"the mode {missing[0]} was not run" if evidence.qual else "it was not asked for"
    for result in evidence.steps:
        if result.passed is None:
            yield STEP, f"accel{result.card} gave no result: {result.message or 'no reason'}"
    stepped = {result.card for result in evidence.steps if result.passed is not None}
    idle = [card.name for card in evidence.cards if card.index not in stepped]
    if idle:
        yield STEP, f"{idle[0]} did not run it" if evidence.steps else "it was not asked for"
