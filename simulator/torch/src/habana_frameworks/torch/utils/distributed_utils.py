"""Older place of `initialize_distributed_hpu`."""

from __future__ import annotations

import warnings
from typing import Any


def initialize_distributed_hpu() -> Any:
    """As in `habana_frameworks.torch.distributed.hccl`."""
    from habana_frameworks.torch.distributed import hccl

    warnings.warn("utils.distributed_utils is deprecated: import distributed.hccl instead", stacklevel=2)
    return hccl.initialize_distributed_hpu()
