# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What the playbook verify sums up of all nodes, of which each may answer anything: a line for each, and the jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from .._kinds import count, mapping, text
from .._printable import printable
from .._refusal import Refusal
from .answers import JobAnswer

_NAMES = {"plugin": "Intel's plugin", "torch": "PyTorch", "lightning": "Lightning", "python": "Python"}
#: Behind what is no measurement on cards.
_SPEED = ", which says nothing about a real Gaudi"
_BILL = ": the hours are those of this machine, not of Gaudi"


@dataclass(frozen=True)
class Wanted:
    """A job of the list ``trainer_jobs``; without a name the only job of the site, whatever it is called."""

    name: str = ""
    nodes: Optional[tuple[str, ...]] = None
    head: str = ""

    @classmethod
    def of(cls, value: object) -> Wanted:
        """From one entry of the list."""
        given = mapping(value)
        nodes = given.get("nodes")
        return cls(
            str(given.get("name") or ""),
            tuple(str(node) for node in nodes) if isinstance(nodes, (list, tuple)) else None,
            str(given.get("head") or ""),
        )


@dataclass(frozen=True)
class Answers:
    """What each node answered, by its name: its cards, and the jobs that could be read."""

    nodes: tuple[str, ...]
    jobs: Mapping[str, Sequence[JobAnswer]]
    lines: tuple[str, ...]
    """Nodes with the same cards and software share one; another for each whose answer about its jobs cannot be read."""

    @classmethod
    def of(cls, facts: Mapping[str, object], jobs: Mapping[str, object], asked: bool) -> Answers:
        """From ``ansible_facts.gaudi`` and the jobs that gaudi_train_info returned; ``asked`` whether jobs were."""
        nodes, found, odd = tuple(sorted(facts)), {}, []
        same: dict[str, list[str]] = {}
        for node in nodes:
            same.setdefault(cards_line(facts[node]), []).append(node)
            found[node], why = _jobs(jobs.get(node), asked)
            if why:
                odd.append(f"{node}: its answer about its jobs cannot be read ({why})")
        lines = [f"{', '.join(names)}: {line}" for line, names in same.items()] + odd
        return cls(nodes, found, tuple(lines))


def cards_line(facts: object) -> str:
    """The cards of one node and their software, or why the node's answer about them cannot be read."""
    try:
        return _cards(facts)
    except Refusal as error:
        return f"its answer about its cards cannot be read ({str(error).rstrip('.')})"


def _cards(facts: object) -> str:
    if not isinstance(facts, Mapping) or not facts:
        raise Refusal("it has none" if not facts else f"it is {printable(facts, 60)}")
    given = mapping(facts)
    cards = count(given.get("card_count"))
    if cards is None:
        raise Refusal(f"card_count = {printable(given.get('card_count'), 60)}")
    driver, smi = (_version(given, name, name) for name in ("driver_version", "hl_smi_version"))
    firmware = given.get("firmware") or {}
    if not isinstance(firmware, Mapping):
        raise Refusal(f"firmware = {printable(firmware, 60)}")
    spi = _version(mapping(firmware), "spi", "firmware.spi")
    return f"{cards} cards, driver {driver or 'not loaded'}, firmware {spi or 'unknown'}, hl-smi {smi or 'unknown'}"


def _version(given: Mapping[str, Any], name: str, where: str) -> str:
    value = given.get(name)
    found = "" if value is None else text(value, 100)
    if found is None:
        raise Refusal(f"{where} = {printable(value, 60)}")
    return found


def _jobs(answer: object, asked: bool) -> tuple[list[JobAnswer], str]:
    """The jobs that a node answers with, and the parts of the answer that are no job."""
    if not isinstance(answer, (list, tuple)):
        return [], f"jobs = {printable(answer, 60)}" if asked else ""
    found, odd = [], ""
    for each in answer:
        try:
            found.append(JobAnswer.of(each))
        except Refusal:
            odd = odd or f"it has {printable(each, 60)} where a job with its name and state is expected"
    return found, odd


def _known(job: Optional[JobAnswer]) -> dict[str, Any]:
    """What a job says of itself, without what it does not know."""
    status = job.status if job is not None else None
    return {name: value for name, value in status.values.items() if value is not None} if status is not None else {}


def _said(job: Optional[JobAnswer]) -> Mapping[str, Any]:
    return job.status.values if job is not None and job.status is not None else {}


@dataclass(frozen=True)
class Site:
    """What the inventory says: the jobs, and the head of all nodes."""

    wanted: tuple[Wanted, ...]
    head: str

    @classmethod
    def of(cls, jobs: object, head: object) -> Site:
        """From ``trainer_jobs`` and the name of the head; without a list there is one job at most."""
        entries = jobs if isinstance(jobs, (list, tuple)) else ()
        return cls(tuple(Wanted.of(each) for each in entries) or (Wanted(),), str(head or ""))


def summary(answers: Answers, site: Site) -> dict[str, list[str]]:
    """``lines`` of the nodes and their jobs, and ``ends`` with the software and the device of each job."""
    lines, ends = list(answers.lines), []
    for wanted in site.wanted:
        jobs = {node: _job_of(answers.jobs[node], wanted) for node in answers.nodes}
        job = _shown(jobs, wanted, site.head, answers.nodes)
        lines += _lines(job, wanted)
        spares = [node for node in answers.nodes if (each := jobs[node]) is not None and each.state == "spare"]
        if spares and "step" in _known(job):
            lines.append(f"spare nodes that were not needed: {', '.join(spares)}")
        ends += _ends(job, wanted)
    return {"lines": lines, "ends": ends}


def _job_of(jobs: Sequence[JobAnswer], wanted: Wanted) -> Optional[JobAnswer]:
    return next((job for job in jobs if job.name == wanted.name or not wanted.name), None)


def _shown(
    jobs: Mapping[str, Optional[JobAnswer]], wanted: Wanted, head: str, nodes: tuple[str, ...]
) -> Optional[JobAnswer]:
    """A job as its head has it; as another node has it where the head has not trained."""
    own = nodes if wanted.nodes is None else wanted.nodes
    first = next((node for node in own if node in nodes), nodes[0] if nodes else "")
    place = wanted.head or (head if head in own else first)
    shown = jobs[place] if place in jobs else jobs.get(first)
    if "step" in _said(shown):
        return shown
    return next((job for job in jobs.values() if "step" in _said(job)), shown)


def _device(known: Mapping[str, Any]) -> str:
    return str(known.get("hardware_name", known.get("device", "")))


def _lines(job: Optional[JobAnswer], wanted: Wanted) -> list[str]:
    if job is None:
        absent = (
            f" {wanted.name}: absent"
            if wanted.name
            else ": none, as neither trainer_job_name nor trainer_jobs names one"
        )
        return [f"training job{absent}"]
    known = _known(job)
    on = f" on {_device(known)}" if _device(known) else ""
    line = f"training job {job.name}: {job.state}"
    if "step" in known:
        line += f", step {known['step']}" + (f" of {known['max_steps']}" if "max_steps" in known else "")
    if "world_size" in known:
        line += f", {known['world_size']} processes{on}"
    lines = [line]
    losses = [
        f"{known[name]:.3f} {at}" for name, at in (("first_loss", "at first"), ("loss", "at last")) if name in known
    ]
    if losses:
        baseline = f" (byte-frequency baseline {known['baseline_loss']:.3f})" if "baseline_loss" in known else ""
        lines.append(f"loss: {', '.join(losses)}{baseline}")
    if "tokens_per_second" in known:
        lines.append(
            f"speed: {known['tokens_per_second']:,.0f} tokens/s{on}{'' if 'hardware_name' in known else _SPEED}"
        )
    if "batch" in known:
        batch = known["batch"]
        lines.append(
            f"batch: {batch['micro_batch_size']} samples per process and pass ({batch['how']}), "
            f"{batch['samples_per_step']} per step"
        )
    if "cost" in known:
        lines.append(_cost(known["cost"]) + ("" if "hardware_name" in known else _BILL))
    if "checkpoint" in known:
        lines.append(f"checkpoint: {known['checkpoint']} (on every node of the job)")
    return lines


def _cost(given: Mapping[str, Any]) -> str:
    cost = {name: value for name, value in given.items() if value is not None}
    each = f", {cost['per_million_tokens']:.2f} per million tokens" if "per_million_tokens" in cost else ""
    source = f" ({cost['price_source']}, {cost.get('price_date', 'no date')})" if "price_source" in cost else ""
    price = f"at {cost['price_per_hour']:.2f} per hour for all nodes"
    return f"cost: {cost['spent']:.2f} {cost['currency']}{each}, {price}{source}"


def _ends(job: Optional[JobAnswer], wanted: Wanted) -> list[str]:
    known, said = _known(job), _said(job)
    of = f" of {wanted.name}" if wanted.name else ""
    lines = []
    software = known.get("software") or {}
    if software:
        lines.append(
            f"software{of}: " + ", ".join(f"{name} {software[key]}" for key, name in _NAMES.items() if key in software)
        )
    if _device(known):
        # A device without a hardware name is none, also where a status does not say so.
        unnamed = said.get("device") == "hpu" and "hardware_name" in said and said["hardware_name"] is None
        simulated = said.get("simulated", unnamed)
        lines.append(f"device{of}: {_device(known)}{', simulated on processors' if simulated else ''}")
    return lines
