"""Sharded tensors in lazy mode: refused (docs.habana.ai, "Using DistributedTensor with Intel Gaudi")."""

from __future__ import annotations

from typing import Any

from gaudi3_hpu_simulator.errors import refuse
from gaudi3_hpu_simulator.strictness import is_on


def refuse_sharding() -> None:
    """Let no DTensor be made on hpu from now on; fully_shard makes its parameters DTensors, too."""
    from torch.distributed.tensor import DTensor

    original = DTensor.__new__

    def __new__(cls: type[Any], local_tensor: Any, spec: Any, *arguments: Any, **options: Any) -> Any:
        if spec.mesh.device_type == "hpu" and is_on("lazy-no-sharding"):
            raise refuse("sharded tensors (DTensor) in lazy mode, nor has Gaudi", "set PT_HPU_LAZY_MODE=0")
        return original(cls, local_tensor, spec, *arguments, **options)

    DTensor.__new__ = __new__  # type: ignore[method-assign]
