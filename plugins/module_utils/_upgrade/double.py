# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A node's double for a rehearsal: it is what its report says, answers as the node would, and changes step by step.

A step is a row of instants, and the power may go at each. What apt, the kernel and a card do within one is not in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from . import steps
from .state import NodeState

#: What a card shows of which a flash was cut off, as far as a rehearsal goes.
HALF = "half flashed"
#: How a step ends that is made to fail.
BROKEN = "it is made to fail"
LOST = "the card does not answer"


class Double:
    """One node, and what happened to it."""

    def __init__(self, state: NodeState, held: Sequence[str]) -> None:
        self._state = state
        self._packages = dict(state.versions.packages)
        self._held = sorted(held)
        self._driver, self._plugin = state.versions.driver, state.versions.plugin
        self._firmware = dict(state.firmware or {})
        self._fenced, self._jobs = False, list(state.jobs)
        self._left: list[str] = []
        self._facts = state.versions.as_facts()
        #: Whether a card is lost whose flash was cut off. On hardware nobody knows.
        self.is_lost = False
        #: Steps in the order in which they changed something or were tried, repeated ones once; how often each changed
        #: the node; how often the flash of each card began.
        self.order: list[str] = []
        self.effects: Counter[str] = Counter()
        self.flashes: Counter[str] = Counter()

    def copy(self) -> Double:
        """Another one at the same instant."""
        other = Double.__new__(Double)
        other.__dict__.update(self.__dict__)
        for name in ("_packages", "_firmware", "effects", "flashes"):
            setattr(other, name, type(getattr(self, name))(getattr(self, name)))
        for name in ("_held", "_jobs", "_left", "order"):
            setattr(other, name, list(getattr(self, name)))
        return other

    def answer(self) -> dict[str, Any]:
        """As gaudi_release_info and gaudi_fence answer. Cards show firmware through their driver alone."""
        versions = {**self._facts, "packages": dict(self._packages), "driver": self._driver}
        if self._plugin:
            versions["plugin"] = self._plugin
        shown = dict(self._firmware) if self._driver else {}
        return {
            "versions": versions,
            "cards": self._state.cards,
            "held": list(self._held),
            "fence": {"by": "person", "reason": steps.REASON, "jobs": list(self._left)} if self._fenced else None,
            "jobs": list(self._jobs),
            **({"firmware": shown} if self._state.firmware is not None else {}),
        }

    @property
    def is_half(self) -> bool:
        """Whether the flash of a card was cut off."""
        return HALF in self._firmware.values()

    def shape(self) -> tuple[Any, ...]:
        """All that the node is, to be compared."""
        packages = tuple(sorted(self._packages.items()))
        firmware = tuple(sorted(self._firmware.items()))
        return (packages, tuple(self._held), self._driver, self._plugin, firmware, self._fenced, tuple(self._jobs))

    def fault(self, ways: Sequence[Mapping[str, str]]) -> str:
        """What no power cut may leave, as a part of a sentence; ``ways`` are the package sets that jobs may find."""
        if sum(each == HALF for each in self._firmware.values()) > 1:
            return "two cards are half flashed at once"
        if self._fenced:
            return ""
        if HALF in self._firmware.values():
            return "it is in service with a half flashed card"
        if self._packages not in ways:
            return "it is in service with packages of two releases"
        release = next(iter(self._packages.values()), "")
        if not self._driver or self._driver.partition("-")[0] != release.partition("-")[0]:
            return "it is in service without the driver of its packages"
        return ""

    def carry_out(self, due: Mapping[str, Any], wanted: Mapping[str, Any], fails: bool) -> Iterator[str]:
        """Do the step of `standing.next_of`, instant by instant; each yields what failed; mostly nothing."""
        step, way = due["step"], f"{due['phase']} {due['step']}"
        if not self.order or self.order[-1] != way:
            self.order.append(way)
        before = self.shape()
        yield ""
        for problem in self._change(step, due, wanted, fails):
            yield problem
            if problem:
                return
        if self.shape() != before:
            self.effects[way] += 1
        yield BROKEN if fails else ""

    def _change(self, step: str, due: Mapping[str, Any], wanted: Mapping[str, Any], fails: bool) -> Iterator[str]:
        if step == steps.FENCE:
            self._fenced, self._left = True, list(dict.fromkeys([*self._left, *self._jobs]))
            yield ""
            self._jobs = []
        elif step == steps.PACKAGES:
            yield from self._install(due, wanted, fails)
        elif step == steps.DRIVER:
            if self._driver_of(due["release"]) != self._driver:
                self._driver = ""
                yield BROKEN if fails else ""
                self._driver = self._driver_of(due["release"])
        elif step == steps.PYTORCH:
            self._plugin = self._plugin_of(due["release"])
        elif step == steps.UNFENCE:
            self._fenced, self._left = False, []
        elif steps.is_flash(step):
            yield from self._flash(step.partition(" ")[2], str(wanted["firmware"]), fails)

    def _install(self, due: Mapping[str, Any], wanted: Mapping[str, Any], fails: bool) -> Iterator[str]:
        for name, version in wanted["packages"].items():
            self._packages[name] = version
            yield BROKEN if fails else ""
        for name in due["surplus"]:
            self._packages.pop(name, None)
            yield ""
        back = bool(wanted["exact"])
        self._held = sorted(wanted["held"] or ()) if back else sorted({*self._held, *wanted["packages"]})

    def _flash(self, card: str, image: str, fails: bool) -> Iterator[str]:
        """Only a card that does not show the image; the driver is out meanwhile, and reads it back."""
        driver = self._driver_of(next(iter(self._packages.values()), ""))
        self._driver = driver  # a run that was cut off has left it out: the card is asked first
        yield LOST if self.is_lost and self._firmware.get(card) == HALF else ""
        if image not in self._firmware.get(card, ""):
            self._driver = ""
            yield ""
            self.flashes[card] += 1
            self._firmware[card] = HALF
            yield BROKEN if fails else ""
            self._firmware[card] = f"Preboot version {image}"
            yield ""
            self._driver = driver

    def _driver_of(self, release: str) -> str:
        """As it was where that is its release, else such a version."""
        mine, number = self._state.versions.driver, release.partition("-")[0]
        return mine if mine.partition("-")[0] == number else f"{number}-rehearsed"

    def _plugin_of(self, release: str) -> str:
        mine, number = self._state.versions.plugin, release.partition("-")[0]
        return mine if mine.startswith(f"{number}.") else release.replace("-", ".")
