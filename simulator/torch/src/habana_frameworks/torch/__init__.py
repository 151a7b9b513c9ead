"""Importing this is what makes torch know the device.

The imports at the end, and what a second one of them finds there, are those of [bridge] 1.19, `__init__.py`.
"""

from __future__ import annotations

import os as _os

import torch

from gaudi3_hpu_simulator.load import install as _install

_install()

import habana_frameworks.torch.activity_profiler  # noqa: E402
import habana_frameworks.torch.core  # noqa: E402
import habana_frameworks.torch.distributed.hccl  # noqa: E402
import habana_frameworks.torch.hpu  # noqa: E402
import habana_frameworks.torch.internal.bridge_config as bc  # noqa: E402

__all__ = ["bc", "torch"]

if bc.value("PT_HPU_GPU_MIGRATION"):
    import habana_frameworks.torch.gpu_migration  # noqa: F401
if _os.environ.get("PT_HPU_LAZY_MODE", "0") != "0":
    from gaudi3_hpu_simulator.sharding import refuse_sharding as _refuse_sharding

    _refuse_sharding()
