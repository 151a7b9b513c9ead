# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Tuning: the kernel's settings, and cards whose addresses an IOMMU translates."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .._host.answers import remark_lines
from .._kinds import exact, texts
from .._refusal import Refusal
from .given import demand_facts, entries, fact, facts, host, listed, part, truth
from .model import Answers, Phase, Question, Values, mapping
from .run import Run

SETTINGS = "Set huge pages, CPU governor and NUMA balancing, now and at boot"
GOVERNOR = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
CSTATES = "intel_idle.max_cstate=0"


def _kernel(values: Values) -> tuple[int, ...]:
    """The kernel's version; an empty one, older than any, where it cannot be read."""
    found = re.match("([0-9]+)[.]([0-9]+)", fact(values, "kernel"))
    return tuple(map(int, found.groups())) if found else ()


def sysctl(values: Values) -> dict[str, Any]:
    """Kernel settings by their names; what the user sets takes precedence."""
    balancing = values("tuning_numa_balancing")
    harmful = (5, 9) <= _kernel(values) <= (5, 16)
    return {
        **({} if str(values("tuning_hugepages")) == "-1" else {"vm.nr_hugepages": values("tuning_hugepages")}),
        **({"kernel.numa_balancing": 0} if balancing == "disabled" or (balancing == "auto" and harmful) else {}),
        **entries(values("tuning_sysctl")),
    }


def sysfs(values: Values) -> dict[str, Any]:
    """Values of files of the kernel; what the user sets takes precedence."""
    governor = values("tuning_cpu_governor")
    return {**({GOVERNOR: governor} if governor else {}), **entries(values("tuning_sysfs"))}


def command_line(values: Values) -> list[dict[str, Any]]:
    """Arguments of the kernel's command line that count on this host, by what they are for."""
    cards = listed(part(facts(values), "gaudi_pci", "cards"))
    types = {str(kind) if (kind := entries(card).get("iommu")) is not None else None for card in cards}
    arguments, kernel, found = values("tuning_kernel_command_line"), _kernel(values), []
    if arguments and (types - {None} or kernel >= (6, 8)):
        reason = "with which no IOMMU translates the cards' addresses, see tuning_kernel_command_line_state"
        found.append(
            {
                "name": "gaudi3-scale",
                "arguments": arguments,
                "state": values("tuning_kernel_command_line_state"),
                "reason": "" if types == {"identity"} else reason,
            }
        )
    if values("tuning_cstates") != "unmanaged" and kernel >= (5, 9):
        found.append(
            {
                "name": "gaudi3-scale-cstates",
                "arguments": [CSTATES],
                "state": "present" if values("tuning_cstates") == "disabled" else "reported",
                "reason": "which the vendor documents for kernels from 5.9 on, see tuning_cstates",
            }
        )
    return found


def decide(values: Values) -> Mapping[str, Any]:
    """What role tuning sets on this host."""
    demand_facts(values)
    return {"sysctl": sysctl(values), "sysfs": sysfs(values), "command_line": command_line(values)}


def waiting(values: Values) -> list[str]:
    """Arguments, of those that were compared, that wait for a reboot; ``Refusal`` where that cannot be read."""
    answer = entries(values("_tuning_settings"))
    compared = answer.get("command_line", [])
    found: list[str] = []
    if not isinstance(compared, (list, tuple)):
        raise Refusal(_odd(values))
    for line, seen in zip(command_line(values), compared):
        if not line["reason"]:
            continue
        needed, missing = entries(seen).get("reboot_needed"), texts(entries(seen).get("missing"))
        if not isinstance(needed, bool) or (needed and missing is None):
            raise Refusal(_odd(values))
        found += missing if needed and missing else []
    return found


def _odd(values: Values) -> str:
    return (
        f"What {values('inventory_hostname')} answers about its kernel's command line cannot be read: look at what "
        "answers there (the collection's modules, Python)."
    )


def remarks_of_all(values: Values) -> list[str]:
    """What the hosts of the play do not have, each sentence once, behind the hosts that it is said of."""
    said = {name: part(host(values, name), "_tuning_settings", "remarks") for name in values("ansible_play_hosts")}
    return remark_lines(said)


def translated(values: Values) -> str:
    """What is left to do about cards that are translated behind a reboot with the arguments."""
    problem = exact(part(facts(values), "gaudi_pci", "iommu_problem")) or ""
    if not problem or truth(values, "tuning_accept_translated_iommu") or values("ansible_check_mode"):
        return ""
    said = iommu_problem(problem, values("tuning_kernel_command_line"), [], False, Run.of([], []))
    return f"{values('inventory_hostname')}: {said}"


def _asks(run: Run, _values: Values) -> bool:
    return run.has("tuning", "preflight")


def _unchanged(_values: Values, answers: Answers) -> bool:
    """All is set, and no argument of the kernel's command line waits for a reboot that would come in this phase."""
    found = mapping(answers, "tuning")
    lines = found.get("command_line")
    return (
        found.get("changed") is False
        and isinstance(lines, (list, tuple))
        and all(isinstance(line, Mapping) and line.get("reboot_needed") is False for line in lines)
    )


PHASE = Phase("tuning", [Question("tuning", "tuning", SETTINGS)], _asks, _unchanged)


def iommu_problem(problem: str, arguments: Sequence[str], missing: object, consent: bool, run: Run) -> str:
    """Why cards whose addresses are translated cannot train in this run; empty where the run ends that by a reboot.

    ``missing`` are the arguments that the kernel was not started with, as the host says.
    """
    wanted = " ".join(arguments)
    if not wanted:
        return (
            f"{problem}: tuning_kernel_command_line is empty, and nothing else of a run ends that: leave that variable "
            "out, which means iommu=pt and intel_iommu=on, or list the arguments that end it on this machine."
        )
    texts = [text for each in missing if (text := exact(each))] if isinstance(missing, (list, tuple)) else []
    if not texts:
        return (
            f"{problem}: the kernel was started with {wanted}, so look for another argument on its command line, or "
            "for a setting of its firmware, that asks for translation."
        )
    if not consent:
        return (
            f"{problem}: start the kernel with {' '.join(texts)}, by hand or in this run, with "
            "tuning_kernel_command_line_state=present and tuning_reboot_allowed=true, which reboots the node before "
            "its driver is loaded."
        )
    if not run.has("tuning"):
        return (
            f"{problem}: this run leaves out the phase tuning, which would start the kernel with {wanted}: run that "
            "phase first."
        )
    return ""
