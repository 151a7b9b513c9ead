# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Drivers: packages, the loaded driver, its ports, and the unit that brings both up at each boot."""

from __future__ import annotations

from .._host.service_state import is_unchanged
from .model import Answers, Phase, Question, Values, empty, mapping
from .run import Run

DRIVER = "Load the driver, bring its ports up and read both back"
PACKAGES = "Bring the packages to the release (apt)"
BOOT = "Have driver and external ports brought up at each boot"


def _asks(run: Run, _values: Values) -> bool:
    return run.needs_cards


def _on_debian(values: Values) -> bool:
    return bool(values("_synapseai_family") == "Debian")


def runs(answers: Answers) -> bool:
    """Whether the release is installed and its driver runs. What dnf installs is not known, and the role runs there."""
    driver = mapping(answers, "driver")
    return (
        empty(mapping(answers, "packages"), "done")
        and empty(driver, "unloaded")
        and empty(driver, "loaded")
        and driver.get("ports_brought_up") is False
        and driver.get("reboot_required") is False
    )


def _unchanged(_values: Values, answers: Answers) -> bool:
    return runs(answers) and is_unchanged(mapping(answers, "boot"))


PHASE = Phase(
    "drivers",
    [
        Question("driver", "synapseai", DRIVER),
        Question("packages", "synapseai", PACKAGES, applies=_on_debian),
    ],
    _asks,
    _unchanged,
    details=[Question("boot", "synapseai", BOOT)],
)
