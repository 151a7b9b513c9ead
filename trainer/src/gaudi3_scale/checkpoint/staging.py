"""Copies of tensors in host memory, in buffers that are kept from save to save."""

from __future__ import annotations

import torch

from gaudi3_scale.hpu.kernels import locks_memory
from gaudi3_scale.internals import like

PLAIN = 64 * 1024


def is_sharded(tensors: dict[str, torch.Tensor]) -> bool:
    """Is any of them spread over processes?"""
    from torch.distributed.tensor import DTensor

    return any(isinstance(tensor, DTensor) for tensor in tensors.values())


def plain_tensors(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The small ones that every rank has whole, such as an optimizer's step counts.

    In a sharded checkpoint they belong to the state that every node has: torch.distributed.checkpoint would deal them
    out among the ranks' files, and every node would need all of these to resume.
    """
    from torch.distributed.tensor import DTensor

    return {name: t for name, t in tensors.items() if not isinstance(t, DTensor) and t.nbytes <= PLAIN}


class Staging:
    """Host memory of the size of this rank's state; page-locked where the device gains from that."""

    def __init__(self) -> None:
        self._buffers: dict[str, torch.Tensor] = {}

    @torch.no_grad()
    def stage(self, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Copies of these tensors, valid until the next call; a DTensor stays one, with its local part copied."""
        from torch.distributed.tensor import DTensor

        devices: set[torch.device] = set()
        staged: dict[str, torch.Tensor] = {}
        for name, tensor in tensors.items():
            local = tensor.to_local() if isinstance(tensor, DTensor) else tensor
            buffer = self._buffer(name, local)
            pinned = buffer.device.type == "cpu" and local.device.type != "cpu" and buffer.is_pinned()
            buffer.copy_(local, non_blocking=pinned)
            if pinned:
                devices.add(local.device)
            staged[name] = like(tensor, buffer) if isinstance(tensor, DTensor) else buffer
        for device in devices:
            torch.accelerator.current_stream(device).synchronize()
        return staged

    def _buffer(self, name: str, local: torch.Tensor) -> torch.Tensor:
        buffer = self._buffers.get(name)
        if buffer is None or buffer.shape != local.shape or buffer.dtype != local.dtype:
            buffer = torch.empty(local.shape, dtype=local.dtype, pin_memory=locks_memory(local.device.type))
            self._buffers[name] = buffer
        return buffer
