"""`torch.hpu`: the cards, their memory, random numbers and streams."""

from __future__ import annotations

import contextlib
import os
from typing import Any

import torch

from gaudi3_hpu_simulator.extension import extension
from habana_frameworks.torch.hpu import metrics, random
from habana_frameworks.torch.hpu._utils import (
    HABANA_VISIBLE_MODULES_VAR,
    HLS_MODULE_ID_VAR,
    NAME,
    _get_available_modules_from_environ,
    _get_device_index,
    one_card,
    valid,
)
from habana_frameworks.torch.hpu.graphs import (
    HPUGraph,
    ModuleCacher,
    TensorPacker,
    copy_to,
    graph,
    input_hash,
    is_current_stream_capturing,
    make_graphed_callables,
    wrap_in_hpu_graph,
    wrap_in_hpu_graph_func,
)
from habana_frameworks.torch.hpu.memory import (
    empty_cache,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_stats,
    memory_summary,
    memory_usage,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_peak_memory_stats,
)
from habana_frameworks.torch.hpu.metrics import metric_global, metric_localcontext, metrics_dump
from habana_frameworks.torch.hpu.random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from habana_frameworks.torch.hpu.streams import (
    Event,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    get_stream_info,
    set_stream,
    stream,
)
from habana_frameworks.torch.hpu.switches import *  # noqa: F403
from habana_frameworks.torch.hpu.switches import disable_dynamic_shape, enable_dynamic_shape, sdp_kernel
from habana_frameworks.torch.hpu.tensors import *  # noqa: F403

__all__ = [
    "HABANA_VISIBLE_MODULES_VAR",
    "HLS_MODULE_ID_VAR",
    "Event",
    "HPUGraph",
    "ModuleCacher",
    "Stream",
    "StreamContext",
    "TensorPacker",
    "_get_device_index",
    "copy_to",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "disable_dynamic_shape",
    "empty_cache",
    "enable_dynamic_shape",
    "exchange_device",
    "getDeterministic",
    "get_amp_supported_dtype",
    "get_autocast_hpu_dtype",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "get_stream_info",
    "graph",
    "init",
    "initial_seed",
    "input_hash",
    "is_autocast_hpu_enabled",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "make_graphed_callables",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "memory_usage",
    "metric_global",
    "metric_localcontext",
    "metrics",
    "metrics_dump",
    "random",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_peak_memory_stats",
    "sdp_kernel",
    "seed",
    "seed_all",
    "setDeterministic",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
    "utilization",
    "wrap_in_hpu_graph",
    "wrap_in_hpu_graph_func",
]


def _index(device: Any = None) -> int:
    """The index of the card given as a number, "hpu:0", a torch.device, or nothing: 0, or an error."""
    return one_card(device)


def is_available() -> bool:
    """Whether there is a card."""
    return device_count() > 0


def device_count() -> int:
    """Number of cards that this process may choose its one from: those of HABANA_VISIBLE_MODULES, where that is set."""
    count: int = extension().visible_cards()
    return count


def current_device() -> int:
    """Index of this process's card: 0. Asking takes the card into use."""
    init()
    return 0


def set_device(device: Any) -> None:
    """Choose the module for this process before its card is in use; the card's index is 0 afterwards, too.

    The index is the module's place among the visible ones, as in hpu/__init__.py of Habana's bridge 1.19: programs
    such as DeepSpeed give the local rank. A module that the launcher has chosen stays.
    """
    index = _get_device_index(device, optional=True)
    modules = _get_available_modules_from_environ()
    if index not in modules and not 0 <= index < len(modules):
        raise AssertionError(f"Trying to open device with idx={index} when only {modules} are available")
    if HLS_MODULE_ID_VAR not in os.environ and not is_initialized() and 0 <= index < len(modules):
        os.environ[HLS_MODULE_ID_VAR] = str(modules[index])


def exchange_device(device: int) -> int:
    """As `set_device`, but a negative index changes nothing; returns the previous index."""
    return one_card(max(device, 0))


class device(contextlib.ContextDecorator):
    """Use a card inside a `with`: the one with the index 0."""

    def __init__(self, device: Any) -> None:
        self.idx = -1 if device is None else max(_get_device_index(device, optional=True), -1)
        self.prev_idx = -1

    def __enter__(self) -> device:
        self.prev_idx = exchange_device(self.idx)
        return self

    def __exit__(self, *error: object) -> None:
        exchange_device(self.prev_idx)


class device_of(device):
    """Use the card of a tensor inside a `with`; a tensor elsewhere changes nothing."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.device.type == "hpu" else None)


def get_device_name(device: Any = None) -> str:
    """Name of the card's generation."""
    valid(device)
    return NAME


class _Properties:
    """What is known of a card without hardware."""

    def __init__(self) -> None:
        self.name = NAME
        self.total_memory = mem_get_info()[1]
        self.type = "hpu"
        self.multi_processor_count = 0

    def __repr__(self) -> str:
        return f"_HpuDeviceProperties(name='{self.name}', total_memory={self.total_memory >> 20}MB, simulated)"


def get_device_properties(device: Any = None) -> _Properties:
    """Name and memory of the card."""
    valid(device)
    return _Properties()


def get_device_capability(device: Any = None) -> str:
    """The card's software version; the simulator has none, and says so."""
    valid(device)
    return "simulated"


def synchronize(device: Any = None) -> None:
    """Wait for the card: operations have run when they return."""
    init()
    one_card(device)


def init() -> None:
    """Take the card into use."""
    extension().use()


def _lazy_init() -> None:
    """What torch calls before it first makes a tensor here."""
    init()


def is_initialized() -> bool:
    """Whether a card was used in this process."""
    used: bool = extension().used()
    return used


def __getattr__(name: str) -> bool:
    if name == "_initialized":  # activation checkpointing keeps the card's random numbers only where this is true
        return is_initialized()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _is_in_bad_fork() -> bool:
    return False


def is_bf16_supported() -> bool:
    """Gaudi computes in bfloat16."""
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Types for `torch.autocast("hpu")`."""
    return [torch.bfloat16, torch.float16]


def is_autocast_hpu_enabled() -> bool:
    """Whether the code runs under `torch.autocast("hpu")`."""
    return torch.is_autocast_enabled("hpu")


def get_autocast_hpu_dtype() -> torch.dtype:
    """The type that autocast lowers to."""
    return torch.get_autocast_dtype("hpu")


_deterministic = False


def setDeterministic(value: bool) -> None:
    """Ask for reproducible kernels; the CPU's are."""
    global _deterministic
    _deterministic = bool(value)


def getDeterministic() -> bool:
    """What `setDeterministic` was given."""
    return _deterministic


def utilization(device: Any = None) -> int:
    """How busy a card is, which would be a claim about time."""
    from gaudi3_hpu_simulator.errors import refuse

    raise refuse("utilisation", "measure on hardware")
