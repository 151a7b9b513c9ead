# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The rules of a certificate, each with its source, and what is noted without being graded.

A limit of this project's own, and a count for which nobody names a limit, are notes: they are shown and grade nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Optional

from .evidence import Card, Evidence

CURABLE, BROKEN = "B", "C"
#: How many cards each board has (the vendor's pages of both).
CARDS_OF = {"HL-325L": 8, "HL-225": 8}
#: The driver's word for a card that it gave up; its other words end with a reset or with the driver loaded again.
_GIVEN_UP = "Disabled"
OPERATIONAL = "Operational"
_QUIET = frozenset({"", "normal", "no failure", "false"})
_RAISED = frozenset({"true", "fail"})

(IDENTITY, MEMORY, ERRORS, LINKS, THROTTLING, STATE, FIRMWARE, KEYS, HOURS, LOG, QUALIFICATION, ANSWER) = (
    "Cards",
    "Replaced rows",
    "Memory errors",
    "Links",
    "Throttling",
    "State and PCIe",
    "Firmware",
    "Boot keys",
    "Hours",
    "Kernel log",
    "hl_qual",
    "Training step",
)
SECTIONS = (IDENTITY, MEMORY, ERRORS, LINKS, THROTTLING, STATE, FIRMWARE, KEYS, HOURS, LOG, QUALIFICATION, ANSWER)

#: What a rule finds: the component and the sentence.
Said = tuple[str, str]


@dataclass(frozen=True)
class Rule:
    """One rule: what it finds broken, the grade that is left then, and who says so."""

    name: str
    section: str
    grade: str
    wording: str
    source: str
    cure: str
    broken: Callable[[Evidence], Iterator[Said]]


def raised(value: Any) -> Optional[bool]:
    """Whether a state of a controller is raised, as the vendor's panels take it; None where no meaning is published."""
    if value is None or value is False or value == 0:
        return False
    if isinstance(value, str):
        word = value.strip().lower()
        return False if word in _QUIET else True if word in _RAISED else None
    return True


def _of_cards(evidence: Evidence, look: Callable[[Card], Optional[str]]) -> Iterator[Said]:
    for card in evidence.cards:
        said = look(card)
        if said:
            yield card.name, said


def _missing(evidence: Evidence) -> Iterator[Said]:
    wanted = CARDS_OF.get(evidence.board or "")
    if wanted is not None and len(evidence.cards) < wanted:
        yield "machine", f"has {len(evidence.cards)} of {wanted} cards"


def _status(lost: bool) -> Callable[[Evidence], Iterator[Said]]:
    def look(card: Card) -> Optional[str]:
        bad = card.status not in (None, OPERATIONAL) and (card.status == _GIVEN_UP) is lost
        return f"the driver says {card.status!r}" if bad else None

    return lambda evidence: _of_cards(evidence, look)


def _internal_down(evidence: Evidence) -> Iterator[Said]:
    for card in evidence.cards:
        down = [port.port for port in card.ports if port.is_internal and port.link == "down"]
        if down and card.status == OPERATIONAL:
            yield card.name, f"internal port {', '.join(map(str, down))} is down"


def _pcie(card: Card) -> Optional[str]:
    for what, unit in (("gen", "generation"), ("width", "width")):
        now, most = card.pcie.get(what), card.pcie.get(f"{what}_max")
        if now is not None and most is not None and now < most:
            return f"its PCIe link has {unit} {now} of {most}"
    return None


def _uncorrected(card: Card) -> Optional[str]:
    found = card.counters.get("uncorrected")
    return f"counts {found} uncorrected memory errors since the driver was loaded" if found else None


def _pending(card: Card) -> Optional[str]:
    return "rows of its memory wait to be replaced by a reset" if card.rows_pending else None


def _repair(card: Card) -> Optional[str]:
    found = card.controller.memory if card.controller else {}
    bad = [name for name in ("unrepairable", "sram_repair_failure") if raised(found.get(name))]
    return f"its controller says {bad[0].replace('_', ' ')} of its memory" if bad else None


def _alerts(severity: str) -> Callable[[Evidence], Iterator[Said]]:
    def found(evidence: Evidence) -> Iterator[Said]:
        for card in evidence.cards:
            for alert in card.controller.alerts if card.controller else ():
                if alert.get("state") == "raised" and alert.get("severity") == severity:
                    yield card.name, f"its controller raises {alert.get('name') or alert.get('field')}"

    return found


def _events(severity: str) -> Callable[[Evidence], Iterator[Said]]:
    return lambda evidence: ((each.component, each.text) for each in evidence.events if each.severity == severity)


def _qual(evidence: Evidence) -> Iterator[Said]:
    for result in evidence.qual:
        if result.passed is False:
            where = next((card.name for card in evidence.cards if card.index == result.card), "machine")
            yield where, f"hl_qual {result.name} failed{': ' + result.message if result.message else ''}"


def _steps(evidence: Evidence) -> Iterator[Said]:
    for result in evidence.steps:
        if result.passed is False:
            where = next((card.name for card in evidence.cards if card.index == result.card), "machine")
            yield where, f"the training step gave wrong numbers: {result.message or 'no detail'}"


RULES = (
    Rule(
        "card-missing", IDENTITY, BROKEN, "the machine has fewer cards than its board",
        "the vendor's pages: eight cards on a board", "have the card seated or replaced", _missing,
    ),
    Rule(
        "card-given-up", STATE, BROKEN, "the driver's word for a card is Disabled",
        "the driver's source", "load the driver again once; if it stays, have the card replaced", _status(True),
    ),
    Rule(
        "card-status", STATE, CURABLE, "the driver's word for a card is another than Operational",
        "the driver's source", "reset the card or load the driver again, and take a new certificate", _status(False),
    ),
    Rule(
        "pcie", STATE, CURABLE, "a PCIe link is below what its card can do",
        "hl-smi: current and max of one link", "seat the card again and boot", lambda each: _of_cards(each, _pcie),
    ),
    Rule(
        "internal-link", LINKS, BROKEN, "an internal port is down",
        "hl-smi -n link; the port is a trace of the board",
        "load the driver again once; if it stays, replace the board",
        _internal_down,
    ),
    Rule(
        "memory-uncorrected", ERRORS, CURABLE, "memory errors were not corrected since the driver was loaded",
        "the driver's table of events: a hard reset", "reset the card, and take a new certificate",
        lambda each: _of_cards(each, _uncorrected),
    ),
    Rule(
        "rows-pending", MEMORY, CURABLE, "rows of memory wait to be replaced",
        "hl-smi -d ROW_REPLACEMENT", "reset the card, and take a new certificate",
        lambda each: _of_cards(each, _pending),
    ),
    Rule(
        "memory-repair", MEMORY, BROKEN, "the controller says that memory cannot be repaired",
        "the controller's own word (HBMMBISTUnrepairable, SRAMRepairFailure)", "have the card replaced",
        lambda each: _of_cards(each, _repair),
    ),
    Rule(
        "alert-critical", STATE, BROKEN, "the controller raises an alert that is published as Critical or Fatal",
        "Intel's RAS table", "have the card replaced", _alerts("critical"),
    ),
    Rule(
        "alert-error", STATE, CURABLE, "the controller raises an alert that is published as Error",
        "Intel's RAS table", "reset the card, and take a new certificate", _alerts("error"),
    ),
    Rule(
        "kernel-critical", LOG, BROKEN, "the kernel log has what the driver cannot recover from",
        "the driver's own lines", "boot once and take a new certificate; if it is there again, replace the part",
        _events("critical"),
    ),
    Rule(
        "kernel-error", LOG, CURABLE, "the kernel log has an error of the cards",
        "the driver's own lines", "reset the card, and take a new certificate", _events("error"),
    ),
    Rule(
        "hl-qual", QUALIFICATION, BROKEN, "a mode of hl_qual failed",
        "the vendor's own verdict", "have the card replaced", _qual,
    ),
    Rule(
        "training-step", ANSWER, BROKEN, "the training step gave other numbers than whole-number arithmetic",
        "arithmetic: every sum is exact in float32",
        "see iommu_group/type (it has to be identity); else replace the card",
        _steps,
    ),
)  # fmt: skip


def notes(evidence: Evidence) -> Iterator[tuple[str, str, str]]:
    """What is shown and grades nothing: section, component, sentence."""
    for card in evidence.cards:
        yield from ((section, card.name, said) for section, said in _card_notes(card))
    yield from _fleet_notes(evidence)
    for event in evidence.events:
        if event.severity not in ("critical", "error"):
            yield LOG, event.component, event.text
    yield HOURS, "cards", "no source tells for how many hours they have run"
    if evidence.uptime_s is not None:
        yield HOURS, "machine", f"was booted {evidence.uptime_s / 3600:.0f} hours before"
    for disk in evidence.disks:
        yield HOURS, "machine", f"disk {disk.name} counts {disk.hours} hours"


def _card_notes(card: Card) -> Iterator[tuple[str, str]]:
    for cause, number in sorted(Counter(row.cause for row in card.rows).items()):
        yield MEMORY, f"{number} replaced rows, cause {cause}"
    memory = card.controller.memory if card.controller else {}
    for name in ("rows_replaced_changeable", "rows_replaced_for_good", "banks_with_many_replaced_rows"):
        if raised(memory.get(name)) is not False:
            yield MEMORY, f"its controller says {name.replace('_', ' ')}: {memory[name]}"
    for name in ("spare_rows", "row_replacements", "unrepairable", "sram_repair_failure"):
        state = raised(memory.get(name))
        if state is None or (state and name in ("spare_rows", "row_replacements")):
            yield MEMORY, f"its controller says {name.replace('_', ' ')}: {memory[name]}"
    for name, words in (
        ("corrected", "corrected memory errors since the driver was loaded"),
        ("corrected_ever", "corrected memory errors in its life"),
        ("uncorrected_ever", "uncorrected memory errors in its life"),
        ("dram_corrected_ever", "corrected errors of HBM in its life"),
        ("dram_ever", "errors of HBM in its life"),
    ):
        if card.counters.get(name):
            yield ERRORS, f"{card.counters[name]} {words}"
    for why, words in (("throttled_power", "to save power"), ("throttled_thermal", "for heat")):
        if card.counters.get(why):
            yield THROTTLING, f"was slowed down {words} {card.counters[why]} times since the driver was loaded"
    yield from _port_notes(card)
    if card.controller:
        yield from _controller_notes(card.controller.keys, card.controller.alerts)


def _port_notes(card: Card) -> Iterator[tuple[str, str]]:
    """A line of each kind for a card: it has 24 ports, and a page is to be read."""
    back = [f"{port.restores} times at port {port.port}" for port in card.ports if port.restores]
    if back:
        yield LINKS, f"links were lost and came back: {', '.join(back)}"
    lost = [f"{port.uncorrected} at port {port.port}" for port in card.ports if port.uncorrected]
    if lost:
        yield LINKS, f"code words that were not corrected: {', '.join(lost)}"
    rated = [(port.symbol_rate, port.port) for port in card.ports if port.symbol_rate]
    if rated:
        worst, place = max(rated, key=lambda each: each[0])
        yield LINKS, f"its highest symbol error rate before correction is {worst:.0e}, at port {place}"
    down = [str(port.port) for port in card.ports if not port.is_internal and port.link == "down"]
    if down:
        yield LINKS, f"external ports that are down, or have no cable: {', '.join(down)}"


def _controller_notes(keys: Any, alerts: Any) -> Iterator[tuple[str, str]]:
    for name, value in sorted(keys.items()):
        if raised(value) is not False:
            yield KEYS, f"{name.partition('_')[0]} is revoked (its controller says {value})"
    for alert in alerts:
        if alert.get("state") != "raised" or alert.get("severity") not in ("critical", "error"):
            yield STATE, str(alert.get("message") or alert.get("name") or alert.get("field"))


def _fleet_notes(evidence: Evidence) -> Iterator[tuple[str, str, str]]:
    for image in sorted({name for card in evidence.cards for name in card.firmware}):
        seen = Counter(card.firmware.get(image, "unknown") for card in evidence.cards)
        if len(seen) > 1:
            said = ", ".join(f"{number} cards with {version}" for version, number in sorted(seen.items()))
            yield FIRMWARE, "machine", f"the cards differ in {image}: {said}"
