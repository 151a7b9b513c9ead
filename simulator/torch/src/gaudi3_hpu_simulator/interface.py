"""What Dynamo asks of a device while it captures a graph."""

from __future__ import annotations

from typing import Any

import torch
from torch._dynamo.device_interface import DeviceInterface

import habana_frameworks.torch.hpu as hpu


class HpuInterface(DeviceInterface):
    """The simulated device."""

    device = hpu.device
    Event = hpu.Event
    Stream = hpu.Stream

    class Worker:
        """What a compiling worker process asks."""

        @staticmethod
        def set_device(device: int) -> None:
            hpu.set_device(device)

        @staticmethod
        def current_device() -> int:
            return hpu.current_device()

        @staticmethod
        def get_device_properties(device: Any = None) -> Any:
            return hpu.get_device_properties(device)

    current_device = staticmethod(hpu.current_device)
    set_device = staticmethod(hpu.set_device)
    device_count = staticmethod(hpu.device_count)
    is_available = staticmethod(hpu.is_available)
    stream = staticmethod(hpu.stream)
    current_stream = staticmethod(hpu.current_stream)
    set_stream = staticmethod(hpu.set_stream)
    synchronize = staticmethod(hpu.synchronize)
    get_device_properties = staticmethod(hpu.get_device_properties)

    @staticmethod
    def exchange_device(device: int) -> int:
        return hpu.exchange_device(device)

    @staticmethod
    def maybe_exchange_device(device: int) -> int:
        return hpu.exchange_device(device)

    @staticmethod
    def get_raw_stream(device_idx: int) -> int:
        return 0

    @staticmethod
    def get_compute_capability(device: Any = None) -> str:
        return "gaudi3"

    @staticmethod
    def is_bf16_supported(including_emulation: bool = False) -> bool:
        return True

    @staticmethod
    def is_dtype_supported(dtype: torch.dtype, including_emulation: bool = False) -> bool:
        return not str(dtype).startswith("torch.float8")
