# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Fabric: the collective library's configuration and the external ports."""

from __future__ import annotations

from .model import Answers, Phase, Question, Values, empty, mapping
from .run import Run

CONFIGURATION = "Write the collective library's configuration"
PORTS = "Bring the external ports up"


def _asks(run: Run, _values: Values) -> bool:
    return run.needs_cards


def _has_ports(values: Values) -> bool:
    return bool(values("_fabric_found") == "gaudi")


def _unchanged(values: Values, answers: Answers) -> bool:
    return (
        _has_ports(values) and empty(mapping(answers, "fabric"), "files") and empty(mapping(answers, "ports"), "down")
    )


PHASE = Phase(
    "fabric",
    [Question("fabric", "fabric", CONFIGURATION)],
    _asks,
    _unchanged,
    details=[Question("ports", "fabric", PORTS, applies=_has_ports)],
)
