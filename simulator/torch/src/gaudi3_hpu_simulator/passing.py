"""What a Gaudi compiles or records: run uncompiled, and said so once, or refused (GAUDI3_HPU_SIMULATOR_GRAPHS)."""

from __future__ import annotations

import os
import sys
from functools import cache

from gaudi3_hpu_simulator.errors import refuse
from gaudi3_hpu_simulator.strictness import is_on

VARIABLE = "GAUDI3_HPU_SIMULATOR_GRAPHS"


def run_uncompiled(what: str, note: str) -> None:
    """Let `what` run without a compiler, with `note` on stderr the first time; refuse it where the setting says so."""
    setting = os.environ.get(VARIABLE) or "run"
    if setting not in ("run", "refuse"):
        raise ValueError(f"{VARIABLE} is {setting!r}, but it has to be 'run' or 'refuse'.")
    if setting == "refuse":
        raise refuse(what, f"{VARIABLE}=refuse asks for this error, leave it out or use hardware")
    _say(note)


def allow_graphs() -> None:
    """Let HPU graphs run; they hold what lazy mode collects, so that eager mode has none."""
    from habana_frameworks.torch import mode

    if not mode.LAZY and is_on("graphs-lazy-only"):
        raise refuse("HPU graphs in eager mode, in which Gaudi records nothing either", "set PT_HPU_LAZY_MODE=1")
    note = "HPU graphs run their operations again at each replay, nothing was recorded on a card"
    run_uncompiled("graphs to record and replay", note)


@cache
def _say(note: str) -> None:
    print(f"gaudi3-hpu-simulator: {note}", file=sys.stderr, flush=True)
