"""A torch device `hpu` without hardware: host memory counted per card, and the CPU's kernels.

Loaded by `import torch` itself, through the entry point that Intel's plugin uses too. What is of the simulator, and not
of Habana's interface, is here.
"""

from __future__ import annotations

__all__ = ["set_memory_limit"]


def set_memory_limit(limit: int) -> None:
    """Set the memory of this process's card in bytes. Allocations beyond it fail as on a Gaudi."""
    from gaudi3_hpu_simulator.extension import extension

    extension().set_limit(limit)
