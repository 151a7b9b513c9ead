# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What is asked of one host, in which order, and what is wrong with it: the first of the reasons."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from ansible.module_utils.parsing.convert_bool import boolean

from .._cards.answer import BusAnswer
from .._host.facts import refuse_odd_facts
from .._printable import printable
from .._refusal import Refusal
from .._release.support_matrix import release_cautions, release_problem
from . import drivers, exporters, fabric, job, mirror, node_exporter, train, tuning
from .model import Answers, Phase, Question, Values, mapping
from .monitoring import Part
from .monitoring_host import Watch
from .phases import PHASES
from .run import Run

#: An address, which every other host can reach as it is.
ADDRESS = re.compile("[0-9.]+$|.*:")


def more(values: Values, run: Run) -> list[str]:
    """What is asked of few nodes besides, before the first change, by the phases that do."""
    asked = {
        "dnf": run.needs_cards and drivers.by_dnf(values),
        "fabric": run.needs_cards and fabric.builds(values),
        "train": run.needs_cards and (job.asks_image(values) or (run.has_jobs and job.asks_more(values))),
        "node_exporter": exporters.asks_package(values, run),
    }
    return [name for name, applies in asked.items() if applies]


class Access(Protocol):
    """The way to one host and to its variables."""

    def value(self, name: str) -> Any:
        """A variable of the roles, None where it has no value."""

    def facts(self) -> Mapping[str, Any]:
        """The facts of the host, by their names without the prefix."""

    def learn(self, facts: Mapping[str, Any], found: Answers) -> None:
        """Take what was answered into the values of variables."""

    def module(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """What a module of the collection answers."""

    def options(self, question: Question) -> tuple[str, Mapping[str, Any]]:
        """Which module a question asks, with which options."""

    def faults(self, roles: Sequence[str]) -> Sequence[str]:
        """What is wrong with the variables of these roles."""


class Host:
    """One host, as far as it is known."""

    def __init__(self, access: Access, name: str, run: Run, trains: bool, watch: Watch | None = None) -> None:
        """``watch`` is a monitoring host's."""
        self._access = access
        self._value = access.value
        self.name = name
        self.run = run
        self.trains = trains
        self._watch = watch
        self.found: dict[str, Any] = {}
        self.seen: dict[str, Any] = {}
        """Facts that were found besides those which were gathered."""
        self.cautions: list[str] = []

    def plan(self) -> dict[str, Any]:
        """All that a run needs to know, as ``gaudi_host_plan`` returns it."""
        result: dict[str, Any] = {"found": self.found, "leave": [], "more": [], "problem": ""}
        try:
            refuse_odd_facts(self._access.facts())
        except Refusal:
            return result  # The plan of the site names it.
        try:
            self._plan(result)
        except Refusal as error:
            result["problem"] = str(error)
        return result

    def require(self, phases: Sequence[Phase], known: Answers) -> None:
        """Ask what single phases need; ``Refusal`` where something is wrong.

        ``known`` are the answers of this run's preflight, if it had one.
        """
        phases = [phase for phase in phases if not self._knows(phase, known)]
        if drivers.PHASE in phases:
            bus = self._access.facts().get("gaudi_pci") or self._bus().get("gaudi_pci")
            self._release(BusAnswer.of(bus))
        self._ask_phases(phases, [phase.name for phase in phases])

    def _knows(self, phase: Phase, known: Answers) -> bool:
        """Take the answers that are known, where they say that something is to be done, as it would be said again."""
        answers = {each.name: mapping(known, each.name) for each in phase.questions if each.applies(self._value)}
        if not all(answers.values()) or not any(each.get("changed") is True for each in answers.values()):
            return False
        self.found.update(answers)
        return True

    def _plan(self, result: dict[str, Any]) -> None:
        result["name"] = self._name()
        cards = self._cards(result) if self.trains else None
        needed = cards if self.run.needs_cards else None
        if needed:
            self._iommu(needed)
        faults = self._access.faults((*self.run.roles(self.trains), *(self._watch.roles() if self._watch else ())))
        if faults:
            raise Refusal("\n".join(["These variables cannot be used:", *faults]))
        if self.run.has("monitoring", "preflight"):
            exporters.demand(self._value, self.trains)
            self._ask([node_exporter.VERSION])
            if said := node_exporter.version_problem(self._value, self.found):
                raise Refusal(said)
        if needed:
            self._release(needed)
        phases = [phase for phase in PHASES if (needed or phase.anywhere) and phase.asks(self.run, self._value)]
        closes = self.run.closes and boolean(self._value("firewall_enabled"), strict=False)
        first = self._watch.first(closes) if self._watch else []
        installed = [phase.name for phase in phases if self.run.has(phase.name, "preflight")]
        answers = self._ask_phases(phases, installed, first)
        if train.PHASE in phases:
            problem = train.problem(self.name, self._value, self.run, self.found)
            if problem:
                raise Refusal(problem)
            result["job"] = train.shares(self._value)
        then = self._watch.then(answers) if self._watch else []
        detailed = phases if self.run.whole and (drivers.runs(self.found) or not self.trains) else []
        answers = self._ask((question for phase in detailed for question in phase.details), then)
        if self._watch:
            self._ask([mirror.question(self._watch.installs(answers), self.found)])
        result["leave"] = [phase.name for phase in phases if phase.unchanged(self._value, self.found)]
        result["leave"] += self._watch.leave(answers) if self._watch else []
        result["more"] = more(self._value, self.run) if self.trains else []
        if "pytorch" in self.found:
            result["pytorch"] = {name: self._value(f"pytorch_{name}") for name in ("root", "release")}

    def _name(self) -> Any:
        """What a host's name means there. Installers write it beside a loopback address, where no other reaches it."""
        name = self._value("gaudi_cluster_address") or self._value("ansible_host") or self.name
        if not self.run.meets or ADDRESS.match(str(name)):
            return None
        part = {"name": "name", "module": "addresses", "arguments": {"name": name}, "tolerated": True}
        answer = (self._look([part]).get("found") or {}).get("name")
        return answer.get("printed") if isinstance(answer, Mapping) else None

    def _cards(self, result: dict[str, Any]) -> BusAnswer | None:
        """The cards; None where the plan of the site names what is wrong with them."""
        result["cards"] = self._bus().get("gaudi_pci", {})
        try:
            cards = BusAnswer.of(result["cards"])
        except Refusal:
            return None
        return cards if cards.card_count else None

    def _bus(self) -> Mapping[str, Any]:
        answer = self._access.module("gaudi_pci_facts", {"fabric": True})
        if answer.get("failed"):
            raise Refusal(str(answer.get("msg")))
        facts = answer.get("ansible_facts")
        self.seen.update(facts if isinstance(facts, Mapping) else {})
        self._access.learn(self.seen, self.found)
        return self.seen

    def _iommu(self, cards: BusAnswer) -> None:
        if cards.iommu_problem is None or boolean(self._value("tuning_accept_translated_iommu"), strict=False):
            return
        arguments = self._value("tuning_kernel_command_line")
        answer = self._access.module("kernel_command_line", {"arguments": arguments})
        if answer.get("failed"):
            raise Refusal(str(answer.get("msg")))
        present = self._value("tuning_kernel_command_line_state") == "present"
        consent = present and boolean(self._value("tuning_reboot_allowed"), strict=False)
        problem = tuning.iommu_problem(cards.iommu_problem, arguments, answer.get("missing"), consent, self.run)
        if problem:
            raise Refusal(f"{self.name}: {problem}")

    def _release(self, cards: BusAnswer) -> None:
        facts, release = self._access.facts(), self._value("synapseai_release")
        system = printable(f"{facts['distribution']} {facts['distribution_version']}", 200)
        unsupported = boolean(self._value("synapseai_accept_unsupported_os"), strict=False)
        unknown = boolean(self._value("synapseai_accept_unknown_release"), strict=False)
        generation = None if cards.generation is None else printable(cards.generation, 60)
        problem = release_problem(release, system, unsupported, unknown, generation)
        if problem:
            raise Refusal(problem)
        self.cautions = release_cautions(release, system)

    def _ask_phases(self, phases: Sequence[Phase], installed: Sequence[str], more: Sequence[Part] = ()) -> Answers:
        """Ask what phases need, and the mirror where one that is ``installed`` takes from it: not in a second run."""
        try:
            answers = self._ask((question for phase in phases for question in phase.questions), more)
        except Refusal:
            # Of a mirror that is not there, its own sentence says more than those of apt and pip.
            self._ask([mirror.question(installed, self.found)])
            raise
        self._ask([mirror.question(installed, self.found)])
        return answers

    def _ask(self, questions: Iterable[Question], more: Sequence[Part] = ()) -> Answers:
        """Ask, and keep what was answered. What was answered to ``more`` may hold secrets and is only returned."""
        parts = [*more]
        for question in questions:
            if question.applies(self._value):
                module, options = self._access.options(question)
                known = {"name": question.name, "tolerated": question.tolerated}
                parts.append({**known, "module": module, "arguments": options})
        if not parts:
            return {}
        answer = self._look(parts)
        found = answer.get("found")
        found = found if isinstance(found, Mapping) else {}
        hidden = {part["name"] for part in more}
        self.found.update({name: each for name, each in found.items() if name not in hidden})
        self._access.learn(self.seen, self.found)
        if answer.get("failed"):
            raise Refusal(str(answer.get("msg")))
        return {name: each for name, each in found.items() if name in hidden}

    def _look(self, parts: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        # The address of a package index may have a password in it.
        secrets = [each for each in [self._value("pytorch_pip_index_url")] if each]
        return self._access.module("gaudi_node_look", {"parts": parts, "secrets": secrets})
