"""How an optimizer step is made up of batches that fit, and which step is the cheapest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gaudi3_scale.batch.scaling import keep_samples, scaled_rate
from gaudi3_scale.errors import ConfigError

__all__ = ["BatchOptimizer", "BatchPlan"]


@dataclass(frozen=True)
class BatchPlan:
    """An optimizer step."""

    micro_batch: int
    """Samples per process and forward pass."""
    accumulation: int
    """Forward passes."""
    samples: int
    """Of all processes."""
    learning_rate: float
    why: str
    """One sentence."""


class BatchOptimizer:
    """Plans steps from the largest batch that fits.

    Args:
        largest: samples per process that fit, as `AdaptiveBatchFinder` finds them.
        world_size: processes.
        learning_rate: chosen for steps of `reference` samples.
        reference: samples per step, of all processes; None = no scaling.
        scaling: linear, square_root or none.

    >>> optimizer = BatchOptimizer(largest=12, world_size=2, learning_rate=1e-3, reference=32, scaling="square_root")
    >>> plan = optimizer.plan(global_batch_size=128)
    >>> plan.micro_batch, plan.accumulation, plan.learning_rate
    (8, 8, 0.002)
    >>> optimizer.cheapest({64: 1.0, 128: 1.2, 256: 2.0}, critical=100)
    128
    """

    def __init__(
        self,
        largest: int,
        world_size: int = 1,
        learning_rate: float = 1e-3,
        reference: int | None = None,
        scaling: str = "none",
    ) -> None:
        if not isinstance(largest, int) or isinstance(largest, bool):
            raise ConfigError(
                f"largest is of type {type(largest).__name__}: BatchOptimizer takes the number of samples that fit, "
                "which AdaptiveBatchFinder finds for a model."
            )
        if scaling not in ("linear", "square_root", "none"):
            raise ConfigError(f"scaling is {scaling!r}: give linear, square_root or none.")
        if scaling != "none" and reference is None:
            raise ConfigError(f"scaling is {scaling}: give reference, the samples per step learning_rate is for.")
        if largest < 1 or world_size < 1:
            raise ConfigError(f"largest is {largest} and world_size {world_size}: give 1 or more of both.")
        self.largest, self.world_size = largest, world_size
        self.learning_rate, self.reference, self.scaling = learning_rate, reference, scaling

    def plan(self, global_batch_size: int | None = None) -> BatchPlan:
        """A step of this many samples; None = one pass of the largest batch on every process."""
        step = keep_samples(self.largest, global_batch_size or self.largest * self.world_size, self.world_size)
        reference = self.reference or step.samples
        rate = scaled_rate(self.learning_rate, step.samples, reference, self.scaling)
        why = (
            f"{step.micro_batch} of at most {self.largest} samples fit in each of {step.accumulation} pass(es) of "
            f"{self.world_size} process(es); learning rate {rate:.4g}: {self.scaling} in {step.samples} / {reference}."
        )
        return BatchPlan(step.micro_batch, step.accumulation, step.samples, rate, why)

    def cheapest(self, step_seconds: Mapping[int, float], critical: float) -> int:
        """The samples per step that reach a loss in the least time, and so at the least price.

        Args:
            step_seconds: measured seconds of a step, by samples per step.
            critical: the critical batch size in samples: a step of B samples needs 1 + critical / B times the steps of
                an endless batch (McCandlish et al., "An Empirical Model of Large-Batch Training", 2018).
        """
        if not step_seconds or min(step_seconds.values()) <= 0 or min(step_seconds) < 1 or critical <= 0:
            raise ConfigError("Give the seconds of at least one step, all above zero, and a critical batch above zero.")
        return min(step_seconds, key=lambda samples: step_seconds[samples] * (1 + critical / samples))
