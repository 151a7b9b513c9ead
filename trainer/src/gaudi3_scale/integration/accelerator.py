"""Lightning's accelerator for Gaudi, and for the devices one compares it with."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from lightning.pytorch.accelerators import Accelerator

from gaudi3_scale.errors import ConfigError
from gaudi3_scale.hpu.device import available, first_available, index_of, missing

BEFORE_FIRST_USE: list[Callable[[], None]] = []
"""Called whenever an accelerator is made; `lightning_variants` serves another imported Lightning by it."""


class GaudiAccelerator(Accelerator):
    """Gaudi cards, of which a process owns one, always with index 0: `Trainer(accelerator=GaudiAccelerator(), ...)`.

    `GaudiAccelerator("cuda")` and `("cpu")` run the same strategies elsewhere; `("auto")` is the first that there is of
    HPU, CUDA and CPU. A device that is named and is not there is an error, never another one.
    """

    kind: ClassVar[str] = "hpu"

    def __new__(cls, device: str = "hpu") -> Any:
        """Lightning asks the class, not the instance, what it has: each device has a class of its own."""
        if cls is not GaudiAccelerator:
            return super().__new__(cls)
        if device == "auto":
            device = first_available()
        if device not in CLASSES:
            raise ConfigError(f"GaudiAccelerator was given {device!r}: give hpu, cuda, cpu or auto.")
        if not available(device):
            raise ConfigError(
                f"GaudiAccelerator is for {device}, but {missing(device)}: install what is missing, or name another "
                'device, as in GaudiAccelerator("cpu").'
            )
        for prepare in BEFORE_FIRST_USE:
            prepare()
        return super().__new__(CLASSES[device])

    def __init__(self, device: str = "hpu") -> None:
        """`device` is hpu, cuda, cpu or auto."""

    def setup_device(self, device: torch.device) -> None:
        """Make it the current one, where a process has a choice.

        `torch.hpu.set_device` writes HLS_MODULE_ID: a process that is alone would wait for the card of module 0 instead
        of taking a free one.
        """
        if device.type == "cuda":
            torch.cuda.set_device(device)

    def setup(self, trainer: Any) -> None:
        """Refuse a strategy that Lightning chose without knowing the device."""
        from gaudi3_scale.integration.strategies import GaudiStrategy

        if not isinstance(trainer.strategy, GaudiStrategy):
            raise ConfigError(
                f"The strategy is {type(trainer.strategy).__name__}, which does not know {self.kind}: give strategy "
                "gaudi_single (one process), habana_ddp or habana_fsdp, or use GaudiTrainer, which chooses."
            )

    def get_device_stats(self, device: Any) -> dict[str, Any]:
        """Memory statistics as the device's driver counts them; empty on CPU."""
        if self.kind == "cpu":
            return {}
        stats: dict[str, Any] = torch.get_device_module(torch.device(device)).memory_stats(device)
        return stats

    def teardown(self) -> None:
        """Nothing is held."""

    @classmethod
    def parse_devices(cls, devices: Any) -> list[int]:
        """Indices of the devices that this node's processes use: of a number, a list or a text of either.

        Of Gaudi cards only the number counts, as a process cannot choose among them; another list is refused.
        """
        if isinstance(devices, str):
            devices = [int(part) for part in devices.split(",") if part] if "," in devices else int(devices)
        if isinstance(devices, int):
            count = available(cls.kind) if devices == -1 else devices
            devices = list(range(count))
        there = available(cls.kind)
        if not devices or (cls.kind != "cpu" and (len(devices) > there or max(devices) >= there)):
            raise ConfigError(
                f"devices is {devices}, but this node has {there} {cls.kind} device(s), numbered from 0: ask for those."
            )
        indices: list[int] = list(devices)
        if cls.kind == "hpu" and indices != list(range(len(indices))):
            raise ConfigError(
                f"devices is {indices}, but a process cannot choose its Gaudi card by an index: give the number of "
                f"cards ({len(indices)}), and name their modules in HABANA_VISIBLE_MODULES."
            )
        return indices

    @classmethod
    def get_parallel_devices(cls, devices: list[int]) -> list[torch.device]:
        if cls.kind == "cpu":
            return [torch.device("cpu") for _ in devices]
        return [torch.device(cls.kind, index_of(cls.kind, index)) for index in devices]

    @classmethod
    def auto_device_count(cls) -> int:
        """As many as torchrun started processes on this node, else what is there; of CPU, one process."""
        return int(os.environ.get("LOCAL_WORLD_SIZE") or 0) or available(cls.kind)

    @classmethod
    def is_available(cls) -> bool:
        return available(cls.kind) > 0

    @classmethod
    def name(cls) -> str:
        return cls.kind


class GaudiOnCUDA(GaudiAccelerator):
    """The same on CUDA."""

    kind = "cuda"


class GaudiOnCPU(GaudiAccelerator):
    """The same on CPU, with processes in place of cards."""

    kind = "cpu"


class GaudiOnHPU(GaudiAccelerator):
    """Cards."""

    kind = "hpu"


CLASSES: dict[str, type[GaudiAccelerator]] = {"hpu": GaudiOnHPU, "cuda": GaudiOnCUDA, "cpu": GaudiOnCPU}
