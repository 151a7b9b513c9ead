"""A torch device `hpu` without hardware: host memory counted per card, and the CPU's kernels.

Loaded by `import torch` itself, through the entry point that Intel's plugin uses too. What is of the simulator, and not
of Habana's interface, is here.
"""

from __future__ import annotations

__all__ = ["set_memory_limit"]


def set_memory_limit(limit: int, device: int | None = None) -> None:
    """Set a card's memory in bytes; of all cards if no index is given. Allocations beyond it fail as on a Gaudi."""
    from gaudi3_hpu_simulator.load import extension

    core = extension()
    for index in range(core.device_count()) if device is None else (device,):
        core.set_limit(index, limit)
