# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Firewall: the table of the cluster's ports, and the unit that loads it at each boot."""

from __future__ import annotations

from ansible.module_utils.parsing.convert_bool import boolean

from .._host.service_state import is_unchanged
from .model import Answers, Phase, Question, Values, mapping
from .run import Run

TABLE = "Close the ports to others"
BOOT = "Run the unit that closes them at each boot"


def _asks(run: Run, values: Values) -> bool:
    return run.has("firewall", "preflight") and boolean(values("firewall_enabled"), strict=False)


def _unchanged(values: Values, answers: Answers) -> bool:
    """The table is loaded, for which nft has to be there, and each boot loads it."""
    return (
        boolean(values("firewall_enabled"), strict=False)
        and is_unchanged(mapping(answers, "firewall"))
        and is_unchanged(mapping(answers, "firewall_boot"))
    )


PHASE = Phase(
    "firewall",
    [Question("firewall", "firewall", TABLE)],
    _asks,
    _unchanged,
    True,
    [Question("firewall_boot", "firewall", BOOT)],
)
