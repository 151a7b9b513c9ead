"""`AdvancedMemoryManager`: checkpointing above a size, sequence buckets, pinned memory."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn
from torch.utils.data import DataLoader, Dataset

from gaudi3_scale.errors import ConfigError
from gaudi3_scale.hpu.kernels import pinned_memory
from gaudi3_scale.memory.buckets import Padding, SequenceBuckets
from gaudi3_scale.memory.checkpointing import checkpoint_all
from gaudi3_scale.memory.sentinel import ShapeSentinel

log = logging.getLogger(__name__)


class AdvancedMemoryManager:
    """Decides by the size of the model, and keeps input shapes few.

    Args:
        checkpoint_above_parameters: recompute the blocks of models with more parameters than this.
        checkpoint_above_bytes: likewise, by the bytes of the parameters.
        sequence_buckets: lengths that batches are padded to; none = as they come.
        pin_memory: page-locked host memory for loaders, where the device gains from it.
    """

    def __init__(
        self,
        checkpoint_above_parameters: int | None = None,
        checkpoint_above_bytes: int | None = None,
        sequence_buckets: Sequence[int] = (),
        pin_memory: bool = True,
    ) -> None:
        if checkpoint_above_parameters is not None and checkpoint_above_bytes is not None:
            raise ConfigError(
                f"Checkpointing was asked for above {checkpoint_above_parameters} parameters and above "
                f"{checkpoint_above_bytes} bytes: give one of the two."
            )
        self.above_parameters = checkpoint_above_parameters
        self.above_bytes = checkpoint_above_bytes
        self.buckets = SequenceBuckets(sequence_buckets) if sequence_buckets else None
        self.shapes = ShapeSentinel()
        self.pin_memory = pin_memory
        self._effects: dict[str, str] = {}

    def prepare_model(self, model: nn.Module) -> nn.Module:
        """The model, its blocks recomputed in backward if it is larger than was said."""
        parameters = sum(p.numel() for p in model.parameters())
        size = sum(p.numel() * p.element_size() for p in model.parameters())
        if self.above_parameters is not None:
            large, text = parameters > self.above_parameters, f"{parameters:,} parameters of {self.above_parameters:,}"
        elif self.above_bytes is not None:
            large, text = size > self.above_bytes, f"{size:,} bytes of {self.above_bytes:,}"
        else:
            large, text = False, "no size was given"
        about = f"off: {text}"
        if large:
            about = f"{len(checkpoint_all(model, 'full'))} blocks are recomputed in backward: {text}"
        self._note("checkpointing", about)
        return model

    def prepare_batch(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """The batch, padded to a bucket; its shape is counted."""
        padded = self.buckets.pad(batch) if self.buckets else dict(batch)
        self.shapes.observe(padded)
        return padded

    def loader(self, data: Dataset[Any], device_type: str, **options: Any) -> DataLoader[Any]:
        """A DataLoader for a device of this type, with these options of torch's."""
        pinned = pinned_memory(device_type)
        pins = self.pin_memory and pinned.call is not None
        if not self.pin_memory:
            self._note("pin_memory", "off")
        else:
            self._note("pin_memory", pinned.about if pins else f"no effect: {pinned.about}")
        return DataLoader(data, pin_memory=pins, **options)

    def padding(self) -> Padding | None:
        """What the buckets padded so far; None without buckets."""
        return self.buckets.report() if self.buckets else None

    def report(self) -> dict[str, str]:
        """What each part does or did, or why it does nothing."""
        padding = self.padding()
        return {
            **self._effects,
            "sequence_buckets": str(padding) if padding else "off: batches as they come",
            "shapes": self.shapes.report(),
        }

    def _note(self, option: str, effect: str) -> None:
        self._effects[option] = effect
        log.info("%s: %s", option, effect)
