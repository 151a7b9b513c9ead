"""Memory of the card in bytes, under Habana's own names; asking for it takes the card into use.

Tensors are counted with exactly their bytes: no rounding, no pool, no workspace of graphs or collectives.
"""

from __future__ import annotations

import warnings
from typing import Any

from gaudi3_hpu_simulator.errors import refusing
from gaudi3_hpu_simulator.extension import extension
from habana_frameworks.torch.hpu._utils import valid


def _statistics(device: Any) -> dict[str, int]:
    valid(device)
    statistics: dict[str, int] = extension().statistics()
    return statistics


def memory_stats(device: Any = None) -> dict[str, int]:
    """Limit, use and counts of the card. System allocations are the same as allocations: there is no pool here."""
    now = _statistics(device)
    return {
        "Limit": now["limit"],
        "InUse": now["in_use"],
        "MaxInUse": now["max_in_use"],
        "NumAllocs": now["allocations"],
        "NumFrees": now["frees"],
        "ActiveAllocs": now["active"],
        "MaxAllocSize": now["max_allocation"],
        "TotalSystemAllocs": now["allocations"],
        "TotalSystemFrees": now["frees"],
        "TotalActiveAllocs": now["active"],
    }


def memory_allocated(device: Any = None) -> int:
    """Bytes in use."""
    return _statistics(device)["in_use"]


def max_memory_allocated(device: Any = None) -> int:
    """Most bytes that were in use since the start or the last reset."""
    return _statistics(device)["max_in_use"]


def memory_reserved(device: Any = None) -> int:
    """The card's whole memory, as Habana's function returns."""
    return _statistics(device)["limit"]


def max_memory_reserved(device: Any = None) -> int:
    """The card's whole memory, as Habana's function returns."""
    return _statistics(device)["limit"]


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Bytes free and in all."""
    now = _statistics(device)
    return now["limit"] - now["in_use"], now["limit"]


def memory_cached(device: Any = None) -> int:
    """The old name of `memory_reserved`."""
    warnings.warn("torch.hpu.memory_cached is now torch.hpu.memory_reserved.", FutureWarning, stacklevel=2)
    return memory_reserved(device)


def max_memory_cached(device: Any = None) -> int:
    """The old name of `max_memory_reserved`."""
    warnings.warn("torch.hpu.max_memory_cached is now torch.hpu.max_memory_reserved.", FutureWarning, stacklevel=2)
    return max_memory_reserved(device)


def memory_usage(device: Any = None) -> int:
    """Bytes in use, as `memory_allocated`."""
    return _statistics(device)["in_use"]


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """`memory_stats` as a table."""
    return "\n".join(f"{name:<20}{value:>20}" for name, value in memory_stats(device).items())


def reset_peak_memory_stats(device: Any = None) -> None:
    """Start `max_memory_allocated` from the present use."""
    valid(device)
    extension().reset_peak()


def reset_max_memory_allocated(device: Any = None) -> None:
    """As `reset_peak_memory_stats`."""
    reset_peak_memory_stats(device)


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Start the counts of allocations and frees from zero."""
    valid(device)
    extension().reset_accumulated()


def empty_cache() -> None:
    """Give unused memory back: none is kept."""


_extended_memory_summary = refusing("pools of memory to describe", "use memory_summary()")
_extended_memory_summary_dict = refusing("pools of memory to describe", "use memory_stats()")
_get_hlml_shared_object_name = refusing("memory shared with hlml", "use hl-smi on a simulated node")
