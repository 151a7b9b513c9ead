"""Seeded traces of trainings, healthy or with one fault, with the noise of real ones.

Noise of every trace: correlated and heavy-tailed jitter, hiccups of one to three steps, slow and drifting steps while
it warms up, checkpoints that stall and go on in the background, memory that settles and is collected every 50 steps, a
late compilation, ranks that differ a little.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gaudi3_scale.monitoring import StepReading

MAGNITUDES: dict[str, dict[str, float]] = {
    "step_time": {"+15 %": 1.15, "+30 %": 1.3, "twice": 2.0},
    "data_wait": {"15 % of a step": 0.15, "30 %": 0.3, "60 %": 0.6},
    "compilations": {"every 2nd step": 2, "every 5th": 5, "every 15th": 15},
    "memory_creep": {"+0.02 % a step": 2e-4, "+0.1 %": 1e-3, "+0.5 %": 5e-3},
    "straggler": {"+30 %": 1.3, "+50 %": 1.5, "2.5 times": 2.5},
}
"""Of faults, by kind."""
LIMIT = 96 * 2.0**30


@dataclass(frozen=True)
class Trace:
    """Readings, and from which step on there is the fault; None of a healthy one."""

    readings: list[StepReading]
    onset: int | None


def trace(kind: str | None, magnitude: float, seed: int, steps: int) -> Trace:
    """One whose fault, if it has one, begins between steps 300 and 500."""
    draw = np.random.default_rng(seed)
    onset = int(draw.integers(300, 500)) if kind is not None else steps + 1
    return Trace(list(_readings(kind, magnitude, draw, steps, onset)), onset if kind is not None else None)


def _readings(
    kind: str | None, magnitude: float, draw: np.random.Generator, steps: int, onset: int
) -> Iterator[StepReading]:
    ranks = int(draw.choice([2, 4, 8, 32]))
    slow = int(draw.integers(ranks))
    compute = _compute(draw, steps)
    wait = draw.exponential(float(draw.uniform(0.003, 0.015)), steps) + _hiccups(draw, steps, 0.0, 0.5)
    own = float(draw.uniform(0.2, 0.4)) * _own(draw, steps, ranks)
    memory = _memory(draw, steps, ranks)
    late = int(draw.integers(100, steps))
    every = int(draw.integers(40, 200))
    shapes = 1
    for step in range(1, steps + 1):
        at = step - 1
        faulty, seconds = step >= onset, float(compute[at])
        shapes += step in (3, 7, late) or (kind == "compilations" and faulty and (step - onset) % magnitude == 0)
        if kind == "step_time" and faulty:
            seconds *= magnitude
        times = own[at] * seconds
        if kind == "straggler" and faulty:
            times[slow] *= magnitude
            seconds *= magnitude  # all wait for it
        if kind == "compilations" and faulty and (step - onset) % magnitude == 0:
            seconds += float(draw.uniform(1, 20))
        share = float(wait[at])
        if kind == "data_wait" and faulty:
            share = min(0.95, magnitude / (1 - magnitude) * float(draw.lognormal(0, 0.3)))
        used = memory[at]
        if kind == "memory_creep" and faulty:
            used = used * (1 + magnitude * (step - onset))
        disturbed = step % every == 0
        if step > every and step % every < 2:
            seconds *= float(draw.uniform(1.05, 2.0))
        waited = seconds * share
        yield StepReading(step, seconds + waited, waited, int(shapes), tuple(used), tuple(times), disturbed)


def _compute(draw: np.random.Generator, steps: int) -> np.ndarray:
    """Seconds of each step."""
    jitter, correlation = float(draw.uniform(0.01, 0.03)), float(draw.uniform(0.0, 0.7))
    noise = np.zeros(steps)
    fresh = draw.standard_normal(steps) * jitter * np.sqrt(1 - correlation**2)
    for step in range(1, steps):
        noise[step] = correlation * noise[step - 1] + fresh[step]
    noise += 0.005 * draw.standard_t(3, steps)
    steady = np.arange(steps)
    warm = 1 + 5 * np.exp(-steady / 4) + float(draw.uniform(0, 0.2)) * np.exp(-steady / float(draw.uniform(20, 60)))
    hiccups = 1 + _hiccups(draw, steps, 0.5, 7.0)
    return np.asarray(float(draw.uniform(0.2, 2.0)) * warm * np.exp(noise) * hiccups)


def _hiccups(draw: np.random.Generator, steps: int, low: float, high: float) -> np.ndarray:
    """One in a hundred steps, and up to two after it."""
    extra = np.zeros(steps)
    for begin in np.flatnonzero(draw.random(steps) < 0.01):
        extra[begin : begin + int(draw.integers(1, 4))] = draw.uniform(low, high)
    return extra


def _own(draw: np.random.Generator, steps: int, ranks: int) -> np.ndarray:
    """Each rank's own work as a factor; (steps, ranks)."""
    of_rank = 1 + 0.01 * draw.standard_normal(ranks)
    noise = np.exp(0.02 * draw.standard_normal((steps, ranks)) + 0.005 * draw.standard_t(3, (steps, ranks)))
    odd = draw.random((steps, ranks)) < 0.01
    return np.asarray(of_rank * noise * np.where(odd, draw.uniform(1.2, 4.0, (steps, ranks)), 1.0))


def _memory(draw: np.random.Generator, steps: int, ranks: int) -> np.ndarray:
    """Bytes; (steps, ranks)."""
    level = draw.uniform(10, 40) * 2**30 * (1 + 0.01 * draw.standard_normal(ranks))
    at = np.arange(steps)[:, None]
    settling, garbage = 1 - 0.3 * np.exp(-at / 8), 0.02 * float(draw.random()) * (at % 50) / 50
    return np.asarray(level * (settling + garbage + 0.002 * draw.standard_normal((steps, ranks))))
