"""Precision, always chosen here: Lightning's own `bf16-mixed` would autocast for CUDA on a device it does not know."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from lightning.pytorch.plugins.precision import Precision

from gaudi3_scale.device import Device


class Float32(Precision):
    """Everything in float32."""

    precision = "32-true"


class BFloat16Autocast(Precision):
    """float32 weights and optimizer, bfloat16 where autocast deems it safe; no loss scaling is needed."""

    precision = "bf16-mixed"

    def __init__(self, device_type: str) -> None:
        self._device_type = device_type

    @contextmanager
    def forward_context(self) -> Iterator[None]:
        """Autocast on the device that is used."""
        with torch.autocast(self._device_type, dtype=torch.bfloat16):
            yield


def build_precision(name: str, device: Device) -> Precision:
    """The plugin for `train.precision`."""
    return Float32() if name == "32-true" else BFloat16Autocast(device.type)
