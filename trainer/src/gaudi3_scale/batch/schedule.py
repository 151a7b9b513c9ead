"""How many samples each optimizer step takes: a function of the samples consumed so far, never of steps or processes.

A step takes the batch of the stage in which its first sample lies. Whoever resumes knows how many samples were
consumed, so that it goes on with the same steps, on however many processes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gaudi3_scale.errors import ConfigError
from gaudi3_scale.models.learning_rate import learning_rate_scale

if TYPE_CHECKING:
    from gaudi3_scale.config import Config, TrainConfig

RULES: dict[str, Callable[[float], float]] = {"square_root": math.sqrt, "linear": float, "none": lambda _: 1.0}
"""What the learning rate is multiplied by at a batch this many times the first one (`train.batch_learning_rate`)."""


@dataclass(frozen=True)
class BatchSchedule:
    """Stages of rising batches, each from a number of samples on; `step` and `samples` are a known point on the way.

    >>> schedule = BatchSchedule(((0, 4), (10, 8)))
    >>> [schedule.consumed(step) for step in range(6)]
    [0, 4, 8, 12, 20, 28]
    """

    stages: tuple[tuple[int, int], ...]
    """(samples consumed from which it holds, samples per step); the first one from 0."""
    step: int = 0
    """Optimizer steps after which `samples` were consumed."""
    samples: int = 0

    @classmethod
    def of(cls, config: Config, world_size: int, step: int = 0, samples: int = 0) -> BatchSchedule:
        """That of a configuration; without `train.batch_warmup` it has one stage."""
        length = config.tokens_per_sample
        stages = tuple((-(-each.from_tokens // length), each.samples_per_step) for each in config.train.batch_warmup)
        return cls(stages or ((0, config.train.first_batch(world_size)),), step, samples)

    def per_step(self, samples: int) -> int:
        """Samples of the step that begins when this many were consumed."""
        return next(size for begins, size in reversed(self.stages) if begins <= samples)

    def left(self, samples: int) -> int | None:
        """Steps from there to the next stage; None in the last one."""
        ends = next((begins for begins, _ in self.stages if begins > samples), None)
        return None if ends is None else -(-(ends - samples) // self.per_step(samples))

    def consumed(self, step: int) -> int:
        """Samples consumed by this many steps. Before the known point it is counted from the beginning."""
        at, samples = (self.step, self.samples) if step >= self.step else (0, 0)
        while at < step:
            left = self.left(samples)
            steps = step - at if left is None else min(left, step - at)
            samples += steps * self.per_step(samples)
            at += steps
        return samples

    def steps(self, samples: int) -> int:
        """Steps after which at least this many samples are consumed."""
        at, done = (self.step, self.samples) if samples >= self.samples else (0, 0)
        while done < samples:
            left, size = self.left(done), self.per_step(done)
            wanted = -(-(samples - done) // size)
            made = wanted if left is None else min(left, wanted)
            at, done = at + made, done + made * size
        return at


def check_stages(train: TrainConfig, world_size: int) -> None:
    """ConfigError if the processes cannot take a stage's batch in whole micro-batches."""
    each = train.micro_batch_size * world_size
    for stage in train.batch_warmup:
        if stage.samples_per_step % each:
            raise ConfigError(
                f"train.batch_warmup wants {stage.samples_per_step} samples per step, which {world_size} process(es) "
                f"with train.micro_batch_size={train.micro_batch_size} cannot take, as {each} at a time do not divide "
                "it: set train.micro_batch_size to a divisor, or use another number of processes."
            )


def learning_rate_of(train: TrainConfig, tokens_per_sample: int, schedule: BatchSchedule) -> Callable[[int], float]:
    """Share of `train.learning_rate` by optimizer step.

    Where the batch grows, `train.learning_rate` is that of the first batch; the rate grows by
    `train.batch_learning_rate`, and rise and fall are counted in samples, in units of the first batch: so they are
    where the same number of tokens would have come to with that batch.
    """
    if not train.batch_warmup and train.schedule_tokens is None:
        return lambda step: learning_rate_scale(step, train)
    first = schedule.stages[0][1]
    tokens = train.schedule_tokens
    whole = schedule.consumed(train.max_steps) if tokens is None else tokens / tokens_per_sample
    grow = RULES[train.batch_learning_rate]

    def share(step: int) -> float:
        samples = schedule.consumed(step)
        return grow(schedule.per_step(samples) / first) * learning_rate_scale(samples / first, train, whole / first)

    return share


def schedule_text(train: TrainConfig) -> str:
    """The schedule for readers."""
    stages = train.batch_warmup
    later = ", ".join(f"{each.samples_per_step:,} from {each.from_tokens:,} tokens" for each in stages[1:])
    rule = {
        "square_root": "grows with the square root of the batch",
        "linear": "grows with the batch",
        "none": "does not grow with the batch",
    }[train.batch_learning_rate]
    text = f"batch warm-up: {stages[0].samples_per_step:,} samples per step{', ' if later else ''}{later}"
    return f"{text}; the learning rate {rule}, and its schedule counts tokens"
