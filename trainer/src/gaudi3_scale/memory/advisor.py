"""`MemoryOptimizer`: what to do about memory without changing what is learnt."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from gaudi3_scale.errors import ConfigError
from gaudi3_scale.hpu.kernels import inference_graph
from gaudi3_scale.internals import tree_flatten, tree_unflatten
from gaudi3_scale.memory.checkpointing import checkpoint_all

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MicroBatches:
    """Splits a batch, and accumulates gradients equal to those of the whole.

    Args:
        micro_batch_size: samples per forward pass.
        accumulation_steps: forward passes per optimizer step.
    """

    micro_batch_size: int
    accumulation_steps: int = 1

    def __post_init__(self) -> None:
        if self.micro_batch_size < 1 or self.accumulation_steps < 1:
            raise ConfigError(
                f"micro_batch_size is {self.micro_batch_size} and accumulation_steps {self.accumulation_steps}: "
                "both must be at least 1."
            )

    @property
    def batch_size(self) -> int:
        """Samples per optimizer step."""
        return self.micro_batch_size * self.accumulation_steps

    def split(self, batch: Any) -> Iterator[Any]:
        """Micro-batches of a nest of tensors (B, ...) with B up to `batch_size`; the last may be smaller."""
        leaves, structure = tree_flatten(batch)
        sizes = {len(leaf) for leaf in leaves if isinstance(leaf, Tensor)}
        if len(sizes) != 1:
            raise ConfigError(f"The batch has tensors of {sorted(sizes)} samples: all must have as many.")
        (size,) = sizes
        if size > self.batch_size:
            raise ConfigError(
                f"The batch has {size} samples, more than micro_batch_size {self.micro_batch_size} x "
                f"accumulation_steps {self.accumulation_steps} = {self.batch_size}: raise one of them."
            )
        for start in range(0, size, self.micro_batch_size):
            rows = slice(start, start + self.micro_batch_size)
            yield tree_unflatten([leaf[rows] if isinstance(leaf, Tensor) else leaf for leaf in leaves], structure)

    def backward(
        self,
        loss: Callable[[Any], Tensor],
        batch: Any,
        weight: Callable[[Any], float | Tensor] = lambda part: len(tree_flatten(part)[0][0]),
    ) -> Tensor:
        """Forward and backward over the micro-batches; the detached loss of the whole batch.

        Args:
            loss: mean loss of a micro-batch, with gradient.
            batch: as for `split`.
            weight: what a micro-batch's mean counts for, by default its samples; for a mean over the tokens whose label
                is not -100, their number.
        """
        parts = list(self.split(batch))
        weights = [float(weight(part)) for part in parts]
        total: Tensor | None = None
        for part, share in zip(parts, weights, strict=True):
            value = loss(part) * (share / sum(weights))
            torch.autograd.backward(value)
            total = value.detach() if total is None else total + value.detach()
        assert total is not None, "a batch has a sample"
        return total


class MemoryOptimizer:
    """Options that lower the memory of a model's step.

    Args:
        enable_hpu_graphs: capture the forward pass of a model in evaluation mode as an HPU graph (lazy mode only).
        enable_gradient_checkpointing: recompute every repeated block in backward; gradients stay equal.
        micro_batch_size: samples per forward pass; None = the whole batch.
        accumulation_steps: forward passes per optimizer step.

    `report()` says what each option does on this device, or why it does nothing; it is also logged.
    """

    def __init__(
        self,
        enable_hpu_graphs: bool = False,
        enable_gradient_checkpointing: bool = False,
        micro_batch_size: int | None = None,
        accumulation_steps: int = 1,
    ) -> None:
        if micro_batch_size is None and accumulation_steps != 1:
            raise ConfigError(
                f"accumulation_steps is {accumulation_steps} without a micro_batch_size: give both, or neither."
            )
        self.enable_hpu_graphs = enable_hpu_graphs
        self.enable_gradient_checkpointing = enable_gradient_checkpointing
        self.micro_batches = MicroBatches(micro_batch_size, accumulation_steps) if micro_batch_size else None
        """Splits a batch, and accumulates; None without a micro_batch_size."""
        self._effects: dict[str, str] = {}

    def optimize_model(self, model: nn.Module) -> nn.Module:
        """The model with the options applied, in place unless a graph wraps it."""
        self._effects = {
            "enable_gradient_checkpointing": "off",
            "enable_hpu_graphs": "off",
            "micro_batch_size": "off: the whole batch at once",
        }
        if self.micro_batches is not None:
            about = self.micro_batches
            self._effects["micro_batch_size"] = (
                f"micro_batches splits batches of up to {about.batch_size} samples into "
                f"{about.accumulation_steps} x {about.micro_batch_size}, with the gradient of the whole"
            )
        if self.enable_gradient_checkpointing:
            names = checkpoint_all(model, "full")
            self._effects["enable_gradient_checkpointing"] = f"{len(names)} blocks are recomputed in backward"
        if self.enable_hpu_graphs:
            model = self._graphs(model)
        for option, effect in self.report().items():
            log.info("%s: %s", option, effect)
        return model

    def report(self) -> dict[str, str]:
        """Option and its effect on the model that was optimized; empty before that."""
        return dict(self._effects)

    def _graphs(self, model: nn.Module) -> nn.Module:
        first = next(model.parameters(), None)
        kernel = inference_graph(first.device.type if first is not None else "cpu")
        about = kernel.about
        if kernel.call is None:
            about = f"no effect: {about}"
        elif model.training:
            about = "no effect: a graph replays inference, and the model is in training mode; call eval() before"
        else:
            model = kernel.call(model)
        self._effects["enable_hpu_graphs"] = about
        return model
