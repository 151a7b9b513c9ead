"""The page's table of options is that of the code."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from gaudi3_scale import config as configuration
from gaudi3_scale.memory import AdvancedMemoryManager, MemoryOptimizer
from gaudi3_scale.precision import GaudiMixedPrecision

PAGE = Path(__file__).resolve().parents[2] / "docs" / "use" / "memory.md"


def test_every_option_is_in_the_table_and_no_other() -> None:
    page = PAGE.read_text()
    documented = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    options = [
        name
        for kind in (GaudiMixedPrecision, MemoryOptimizer, AdvancedMemoryManager)
        for name in inspect.signature(kind).parameters
        if name != "device"
    ]
    assert documented == options
    named = set(re.findall(r"\bmemory\.(\w+)(?==)|`memory\.(\w+)`", page))
    keys = {key.removeprefix("memory.") for key in configuration.keys() if key.startswith("memory.")}  # noqa: SIM118
    assert {first or second for first, second in named} <= keys and named
