"""The fault of the simulator behind each verdict of the health engine: the table of checks, read backwards."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..node import faults

_CARD = re.compile(r"accel(\d{1,2})(?: port (\d{1,2}))?\b")
_EVENT = re.compile(r'\["(\w{1,80})"\]')
_TIMES = re.compile(r"(?:counts|slowed down) (\d{1,9})\b")
_STATUS = {
    "In reset": faults.CARD_IN_RESET,
    "Needs reset": faults.NEEDS_RESET,
    "In device creation": faults.IN_CREATION,
    "Disabled": faults.RESET_FAILED,
}
_OF_NODE = {
    "driver-version": faults.VERSION_SKEW,
    "rdma-files": faults.NO_UVERBS,
    "kernel-log:module-rejected": faults.MODULE_REJECTED,
    "kernel-log:firmware-file-missing": faults.NO_FIRMWARE,
    "kernel-log:page-table": faults.BAD_PAGETABLE,
}
_OF_CARD = {
    "card-temperature": faults.TEMPERATURE_ZERO,
    "pcie-width": faults.PCIE_WIDTH,
    "pcie-generation": faults.PCIE_GENERATION,
    "throttled-power": faults.THROTTLED_POWER,
    "throttled-thermal": faults.THROTTLED_THERMAL,
    "memory-uncorrected": faults.ECC_UNCORRECTED,
    "memory-corrected": faults.ECC_CORRECTED,
    "memory-kept": faults.MEMORY_KEPT,
    "leftover-process": faults.DEVICE_ACQUIRED,
    "firmware-loaded": faults.FIRMWARE_SKEW,
    "port-flow-control": faults.PORT_PFC,
    "kernel-log:reset-failed": faults.RESET_FAILED,
    "kernel-log:processor-silent": faults.CPU_TIMEOUT,
}
_OF_PORT = {
    "port-internal": faults.PORT_DOWN,
    "port-external": faults.PORT_DOWN,
    "port-flapping": faults.PORT_FLAPPING,
    "port-symbol-errors": faults.PORT_SYMBOL_ERRORS,
    "port-mtu": faults.PORT_MTU,
}
#: What follows from another verdict's fault, by check: the faults that bring it along.
_FOLLOWS = {
    "driver-loaded": (faults.MODULE_NOT_BUILT, faults.MODULE_EMPTY, faults.MODULE_REJECTED),
    "kernel-log:initialisation-failed": (faults.NO_FIRMWARE, faults.CPU_TIMEOUT),
    "kernel-log:heartbeat-lost": (faults.RESET_FAILED,),
    "memory-rows": (faults.ECC_UNCORRECTED,),
    "reading": (faults.NO_FIRMWARE,),
}
#: What the twin has without a fault: its flashed firmware, its boot options, its settings.
_OF_THE_STATE = ("firmware-flashed", "iommu", "governor")


@dataclass(frozen=True)
class Verdict:
    """One verdict, or one error of a reading, of the health engine."""

    check: str
    component: str
    kind: str
    severity: str
    action: str
    evidence: str

    @property
    def same(self) -> tuple[str, ...]:
        """What makes two nodes' verdicts the same one; the evidence has figures and process numbers."""
        return (self.check, self.component, self.kind, self.severity, self.action)


def verdicts_of(answer: Any) -> list[Verdict]:
    """The verdicts and errors in an answer of ``gaudi_health_info``; what has another form is left out."""
    found = []
    for name in ("verdicts", "errors"):
        entries = answer.get(name) if isinstance(answer, dict) else None
        for each in entries if isinstance(entries, list) else []:
            values = [each.get(part) for part in Verdict.__dataclass_fields__] if isinstance(each, dict) else [None]
            if all(isinstance(value, str) for value in values):
                found.append(Verdict(*(str(value) for value in values)))
    return sorted(found, key=lambda each: each.same)


def faults_of(verdicts: Iterable[Verdict], missing: Iterable[int] = ()) -> tuple[list[dict[str, Any]], list[Verdict]]:
    """The faults behind the verdicts, and the verdicts behind which the simulator has none.

    ``missing`` are the indexes of the cards that a verdict on their number is about.
    """
    every = list(verdicts)
    made: list[dict[str, Any]] = []
    left = []
    for verdict in every:
        found = _fault(verdict, every, list(missing))
        if found is None:
            left.append(verdict)
        made += [fault for fault in found or [] if not any(faults.is_same(fault, other) for other in made)]
    kinds = {fault["kind"] for fault in made}
    left = [each for each in left if not kinds.intersection(_FOLLOWS.get(each.check, ()))]
    return made, left


def _fault(verdict: Verdict, every: list[Verdict], missing: list[int]) -> list[dict[str, Any]] | None:
    """The faults of one verdict; None where there is none for it."""
    check, said = verdict.check, verdict.evidence
    place = _CARD.match(verdict.component)
    card = {"card": int(place[1])} if place else {}
    about = {each.check for each in every if each.component.partition(" ")[0] == verdict.component.partition(" ")[0]}
    if check in _OF_THE_STATE:
        return []
    if check in _OF_NODE:
        return [{"kind": _OF_NODE[check]}]
    if check == "driver-built":
        return [{"kind": faults.MODULE_EMPTY if "empty" in said else faults.MODULE_NOT_BUILT}]
    if check == "driver-loaded":
        follows = {"driver-built", "kernel-log:module-rejected"} & {each.check for each in every}
        return [] if follows else [{"kind": faults.DRIVER_NOT_LOADED}]
    if check == "card-count" and missing:
        return [{"kind": faults.CARD_MISSING, "card": index} for index in missing]
    if check == "acquire" and "different releases" in said:
        return [{"kind": faults.RELEASE_MISMATCH}]
    if check == "gaudinet":
        return [{"kind": faults.GAUDINET_EMPTY if "is empty" in said else faults.GAUDINET_WRONG}]
    if check == "reading":
        return _of_reading(verdict, card)
    if not card:
        return None
    if check == "card-status":
        return _of_status(said, card, about)
    if check == "memory-rows" and "memory-uncorrected" not in about:
        return [{"kind": faults.ROW_PENDING, **card}]
    if check in _OF_CARD:
        count = _TIMES.search(said)
        counted = {"count": int(count[1])} if count and _OF_CARD[check] in faults.COUNTED and int(count[1]) > 1 else {}
        return [{"kind": _OF_CARD[check], **card, **counted}]
    if check.startswith("hl-qual:"):
        return [{"kind": faults.QUAL_FAILED, **card, "event": check.partition(":")[2]}]
    if check == "kernel-log:mac-timeout":
        return _of_mac(every, card)
    event = _EVENT.search(said) if check.startswith("kernel-log:") else None
    if event:
        return [{"kind": faults.KERNEL_EVENT, **card, "event": event[1]}]
    if check in _OF_PORT and place and place[2]:
        return _of_port(verdict, every, {**card, "port": int(place[2])}, about)
    return None


def _of_reading(verdict: Verdict, card: dict[str, int]) -> list[dict[str, Any]] | None:
    """What could not be read: the tool as a whole, or one value of a card."""
    if verdict.component == "hl-smi" and "gave no answer" in verdict.evidence:
        return [{"kind": faults.HL_SMI_HANG}]
    if verdict.component == "hl-smi" and "was not understood" in verdict.evidence:
        return [{"kind": faults.HL_SMI_GARBAGE}]
    if card and verdict.component.endswith(" temperature_c"):
        return [{"kind": faults.TEMPERATURE_ABSURD, **card}]
    return None


def _of_status(said: str, card: dict[str, int], about: set[str]) -> list[dict[str, Any]] | None:
    status = next((word for word in _STATUS if f"'{word}'" in said), None)
    if status is None:
        return None
    kind = faults.CPU_TIMEOUT if "kernel-log:processor-silent" in about and status == "Disabled" else _STATUS[status]
    return [{"kind": kind, **card}]


def _of_mac(every: list[Verdict], card: dict[str, int]) -> list[dict[str, Any]] | None:
    """The port whose MAC it is: the line of the log has no number, the port's own verdict has."""
    for each in every:
        place = _CARD.match(each.component)
        if place and place[2] and int(place[1]) == card["card"] and each.check in ("port-internal", "port-external"):
            return [{"kind": faults.MAC_TIMEOUT, **card, "port": int(place[2])}]
    return None


def _of_port(
    verdict: Verdict, every: list[Verdict], port: dict[str, int], about: set[str]
) -> list[dict[str, Any]] | None:
    kind = _OF_PORT[verdict.check]
    if kind == faults.PORT_DOWN:
        here = {each.check for each in every if each.component == verdict.component}
        if "port-flapping" in here:
            return []
        if "kernel-log:mac-timeout" in about:
            kind = faults.MAC_TIMEOUT
    return [{"kind": kind, **port}]
