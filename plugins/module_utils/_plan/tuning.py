# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Tuning: the kernel's settings, and cards whose addresses an IOMMU translates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .._kinds import exact
from .model import Answers, Phase, Question, Values, mapping
from .run import Run

SETTINGS = "Set huge pages, CPU governor and NUMA balancing, now and at boot"


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
