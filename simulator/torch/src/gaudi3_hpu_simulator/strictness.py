"""Which rules of ``simulator/strictness.yml`` hold.

A node's own choice lies in ``/var/lib/gaudi3-simulator/strictness``; ``GAUDI3_SIMULATOR_STRICTNESS`` in the environment
takes precedence over it. Both hold words such as ``one-index=off``.
"""
# Written by `make strictness`; edit simulator/src/gaudi3_simulator/node/strictness.py instead.

from __future__ import annotations

import os

from gaudi3_hpu_simulator.strictness_rules import RULES

VARIABLE = "GAUDI3_SIMULATOR_STRICTNESS"
FILE = "/var/lib/gaudi3-simulator/strictness"


def is_on(rule: str) -> bool:
    """Whether the rule holds here; KeyError for one that does not exist, ValueError for a setting of one."""
    return states()[rule]


def states() -> dict[str, bool]:
    """Every rule and whether it holds here; ValueError for a setting of one that does not exist."""
    return {**RULES, **_parsed(_file()), **_parsed(os.environ.get(VARIABLE, ""))}


def _file() -> str:
    try:
        with open(os.environ.get("GAUDI3_SIMULATOR_ROOT", "") + FILE, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def _parsed(text: str) -> dict[str, bool]:
    chosen: dict[str, bool] = {}
    for word in text.replace(",", " ").split():
        name, _, state = word.partition("=")
        if name not in RULES or state not in ("on", "off"):
            raise ValueError(
                f"{word!r} sets no rule of the simulator: write RULE=on or RULE=off with one of {', '.join(RULES)}."
            )
        chosen[name] = state == "on"
    return chosen
