# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What is decided for all hosts of a run at once, from what each of them answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .._cards.answer import bus_answers
from .._host.answers import loopbacks
from .._host.facts import Gathered
from . import pytorch, train
from .monitoring_host import NAMES
from .phases import BY_NAME


@dataclass(frozen=True)
class Site:
    """The decision of a preflight."""

    problem: str = ""
    """Why nothing is done on any host."""
    refusals: Mapping[str, str] = field(default_factory=dict)
    """Why nothing is done, for hosts on which something is wrong."""
    leave: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Hosts on which a phase would change nothing, by the phase."""
    asked: Sequence[str] = ()
    """Hosts that need not be asked for the job again before it starts."""
    choices: Sequence[Mapping[str, Any]] = ()
    """The cards of each job, with its nodes."""


def decide(plans: Mapping[str, object], gaudi: frozenset[str], needs_cards: bool) -> Site:
    """From what ``gaudi_host_plan`` returned of each host, whatever that is."""
    problem = _silence(plans) or _names(plans)
    if problem:
        return Site(problem)
    found = {host: given for host, given in plans.items() if isinstance(given, Mapping)}
    nodes = {host: given for host, given in found.items() if host in gaudi}
    if needs_cards and (problem := _cards(nodes)):
        return Site(problem)
    refusals = {host: str(given["problem"]) for host, given in found.items() if given.get("problem")}
    if refusals:
        return Site(refusals=refusals)
    return replace(
        _job(nodes),
        leave={
            phase: [host for host, given in found.items() if phase in given.get("leave", ())]
            for phase in (*BY_NAME, *NAMES)
        },
    )


def _silence(plans: Mapping[str, object]) -> str:
    """Hosts that do not answer, or cannot be changed: if one dropped out in silence, the others would be changed."""
    answers = Gathered.of(plans)
    down, mute, plain = answers.silent, answers.mute, answers.powerless
    if down:
        remedy = (
            "the way to them"
            if len(down) == len(plans)
            else f"them, or leave them out with --limit '!{',!'.join(down)}'"
        )
        return f"{len(down)} of {len(plans)} hosts do not answer over ssh ({', '.join(down)}): repair {remedy}."
    if mute:
        return (
            f"The facts of {', '.join(mute)} cannot be read ({answers.why}): repair that, or leave them out with "
            f"--limit '!{',!'.join(mute)}'."
        )
    if plain:
        return (
            f"On {', '.join(plain)} tasks run as {answers.user}, who may change neither packages nor services: set "
            "ansible_become=true for the groups gaudi and monitoring (or run with --become), or log in as root."
        )
    return ""


def _names(plans: Mapping[str, object]) -> str:
    printed = {host: given.get("name") for host, given in plans.items() if isinstance(given, Mapping)}
    loops = loopbacks(printed)
    if not loops:
        return ""
    return (
        f"The inventory knows {', '.join(loops)} by name alone, which on the host itself is a loopback address, where "
        "no other host reaches it: set ansible_host or gaudi_cluster_address to the address on the cluster network."
    )


def _cards(nodes: Mapping[str, Mapping[str, Any]]) -> str:
    """Nodes without a card. A site one of whose nodes has lost its cards is monitored all the more."""
    asked = {host: given for host, given in nodes.items() if "cards" in given or not given.get("problem")}
    answers = bus_answers({host: given.get("cards") for host, given in asked.items()})
    odd, bare = answers["odd"], answers["bare"]
    if odd:
        one = len(odd) == 1
        return (
            f"What {', '.join(odd)} {'answers' if one else 'answer'} about the cards on the PCI bus cannot be read "
            f"({answers['why']}): repair what answers there (Python, the collection's modules), or take "
            f"{'it' if one else 'them'} out with --limit '!{',!'.join(odd)}'."
        )
    if bare:
        one = len(bare) == 1
        lacks = (
            "has no Gaudi card on its PCI bus: take it" if one else "have no Gaudi card on their PCI buses: take them"
        )
        return (
            f"{', '.join(bare)} {lacks} out of group gaudi, or look at {'its' if one else 'their'} hardware with "
            "'lspci -d 1da3:'."
        )
    return ""


def _job(nodes: Mapping[str, Mapping[str, Any]]) -> Site:
    """The job of all nodes together, or one of each list of nodes."""
    answers = {host: given["found"] for host, given in nodes.items()}
    jobs = {host: given["job"] for host, given in nodes.items() if given.get("job")}
    if not jobs:
        return Site(problem=_tarballs(nodes, answers))
    by_nodes = {tuple(job["nodes"]): job for job in reversed(jobs.values())}
    choices = {names: train.choose(job, answers) for names, job in by_nodes.items()}
    refusals = {
        host: said
        for host, job in jobs.items()
        if (said := train.problem_with_others(host, job, answers, str(choices[tuple(job["nodes"])]["problem"])))
    }
    kept = [{"nodes": list(names), **choice} for names, choice in choices.items()]
    if refusals:
        return Site(refusals=refusals, choices=kept)
    return Site(
        problem=_tarballs(nodes, answers),
        asked=[host for host, job in jobs.items() if job.get("settled")],
        choices=kept,
    )


def _tarballs(nodes: Mapping[str, Mapping[str, Any]], answers: Mapping[str, Mapping[str, Any]]) -> str:
    where = next((given["pytorch"] for given in nodes.values() if given.get("pytorch")), None)
    if not where:
        return ""
    reported = [given.get("pytorch") for given in answers.values()]
    return pytorch.tarballs_problem(reported, where["root"], where["release"])
