"""Names of a package that are imported when they are first asked for, as they need torch or Lightning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

PUBLIC: Mapping[str, Mapping[str, str]] = {
    "gaudi3_scale.checkpoint": {"GaudiCheckpoint": "callbacks.gaudi_checkpoint"},
    "gaudi3_scale.distributed": {"OptimizedDDP": "integration.ddp.strategy"},
    "gaudi3_scale.interruption": {"InterruptionCallback": "callbacks.interruption_callback"},
    "gaudi3_scale.throughput.callback": {
        "ThroughputCallback": "callbacks.throughput_callback",
        "input_tokens": "callbacks.throughput_callback",
    },
}
"""Documented addresses of what is defined on a higher floor than the package that names it."""


def lazily(package: str, own: Mapping[str, str] | None = None) -> Callable[[str], Any]:
    """The `__getattr__` of a package whose names are defined in these modules of `gaudi3_scale`, and in `PUBLIC`."""
    homes = {**(own or {}), **PUBLIC.get(package, {})}

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"gaudi3_scale.{homes[name]}"), name)

    return find
