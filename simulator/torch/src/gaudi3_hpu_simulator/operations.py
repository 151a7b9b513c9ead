"""Which operations have a kernel on hardware, and what becomes of the others."""

from __future__ import annotations

import os
from typing import Any

VARIABLE = "GAUDI3_HPU_SIMULATOR_OPERATIONS"
CHOICES = ("all", "name", "refuse")
# The CPU's own, which stand here for the attention that torch composes for a Gaudi.
OWN = ("_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention_for_cpu_backward")


def choose(core: Any) -> None:
    """Tell the C++ part, by the environment: every operation runs, or those that a Gaudi lacks are named or refused.

    A Gaudi runs what its plugin has no kernel for on the host, without a word (`hpu_ops/cpu_fallback.cpp`).
    """
    choice = os.environ.get(VARIABLE, "") or "all"
    if choice not in CHOICES:
        raise ValueError(f"{VARIABLE} is {choice!r}, but it has to be one of {', '.join(CHOICES)}.")
    if choice != "all":
        from gaudi3_hpu_simulator.vendor_operations import LISTED

        core.list_operations([f"aten::{name}" for name in (*LISTED, *OWN)], choice == "refuse")
