# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The phases of a site that ask a host before the first change, in the order in which they do."""

from __future__ import annotations

from . import drivers, exporters, fabric, firewall, pytorch, train, tuning

PHASES = (
    drivers.PHASE,
    fabric.PHASE,
    tuning.PHASE,
    pytorch.PHASE,
    train.PHASE,
    train.INSTALL,
    firewall.PHASE,
    exporters.NODE,
    exporters.CARDS,
)
BY_NAME = {phase.name: phase for phase in PHASES}
