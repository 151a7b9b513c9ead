"""Switches and dumps of the bridge's compiler and memory ([bridge] 1.19, `utils/debug/__init__.py`).

Nothing is compiled or pooled here: switches do nothing, counts are 0, and what would print a report is refused.
"""

from __future__ import annotations

import sys
from typing import Any

import torch

from gaudi3_hpu_simulator.errors import refusing
from habana_frameworks.torch.utils.debug.logger import Logger

__all__ = ["Logger", "get_tensor_info"]


def _switch(name: str) -> Any:
    def switch(flag: Any = None) -> None:
        return None

    switch.__name__ = switch.__qualname__ = name
    switch.__doc__ = f"{name}: nothing to switch, because nothing is compiled."
    return switch


_enable_bn_param_recalculation = _switch("_enable_bn_param_recalculation")
_enable_constant_pooling = _switch("_enable_constant_pooling")
_enable_eliminate_common_subexpression = _switch("_enable_eliminate_common_subexpression")
_enable_eliminate_dead_code = _switch("_enable_eliminate_dead_code")
_enable_fuse_bn_relu_optimization = _switch("_enable_fuse_bn_relu_optimization")
_enable_fuse_conv_bn_optimization = _switch("_enable_fuse_conv_bn_optimization")
_enable_fuse_t_mm_optimization = _switch("_enable_fuse_t_mm_optimization")
_enable_peephole_optimization = _switch("_enable_peephole_optimization")
_enable_permute_pass = _switch("_enable_permute_pass")
_enable_replace_inplace_ops = _switch("_enable_replace_inplace_ops")
_enable_replace_views = _switch("_enable_replace_views")
_set_dynamic_mode = _switch("_set_dynamic_mode")
_set_module_name = _switch("_set_module_name")
_disable_bucket_refinement = _switch("_disable_bucket_refinement")
_flush_disk_cache = _switch("_flush_disk_cache")
_clear_jit_cache = _switch("_clear_jit_cache")
_bridge_cleanup = _switch("_bridge_cleanup")
clear_dynamic_bucket_recipe_info = _switch("clear_dynamic_bucket_recipe_info")

_INSTEAD = "use torch.hpu.memory_stats(), or run on hardware"
_memstat_livealloc = refusing("_memstat_livealloc", _INSTEAD)
_memstat_devmem_start_collect = refusing("_memstat_devmem_start_collect", _INSTEAD)
_memstat_devmem_stop_collect = refusing("_memstat_devmem_stop_collect", _INSTEAD)
_mem_log = refusing("_mem_log", _INSTEAD)
_dump_bucket_memory_stat = refusing("_dump_bucket_memory_stat", _INSTEAD)
_dump_dynamic_shape_memory_stat = refusing("_dump_dynamic_shape_memory_stat", _INSTEAD)
_dump_history_memory_stat = refusing("_dump_history_memory_stat", _INSTEAD)
_dump_memory_reporter = refusing("_dump_memory_reporter", _INSTEAD)
_dump_recipe_memory_stat = refusing("_dump_recipe_memory_stat", _INSTEAD)
_dump_refined_recipe_stat = refusing("_dump_refined_recipe_stat", _INSTEAD)
_dump_synapse_recipe_memory_stat = refusing("_dump_synapse_recipe_memory_stat", _INSTEAD)
_towl_configure = refusing("_towl_configure", _INSTEAD)
_towl_print = refusing("_towl_print", _INSTEAD)
load_ds_checkpoint = refusing("load_ds_checkpoint", "run on hardware")
save_ds_checkpoint = refusing("save_ds_checkpoint", "run on hardware")
_get_shape_agnostic_unsupported_ops = refusing("_get_shape_agnostic_unsupported_ops", "run on hardware")
_get_eager_compiler_unsupported_op_prefixes = refusing("_get_eager_compiler_unsupported_op_prefixes", "run on hardware")


def _get_fallback_op_count() -> dict[str, int]:
    """Operations that fell back to the host: none is counted, because all run there."""
    return {}


def _get_jit_cache_size() -> int:
    return 0


def _is_enabled_weight_permute_pass() -> bool:
    return False


def _is_enabled_synapse_layout_handling() -> bool:
    return True


def _is_enabled_lazy_collectives() -> bool:
    from habana_frameworks.torch.internal import bridge_config

    return bool(bridge_config.value("PT_HPU_ENABLE_LAZY_COLLECTIVES"))


def _hb_print(msg: str) -> None:
    print(msg, file=sys.stderr)


def _hg_print(msg: str) -> None:
    """Nothing to do: a message for the log of HPU graphs."""


def get_tensor_info(tensor: torch.Tensor) -> tuple[int, int] | None:
    """Address and bytes of a tensor's storage; None for one elsewhere."""
    if tensor.device.type != "hpu":
        return None
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.nbytes()
