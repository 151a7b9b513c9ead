"""A trial and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from gaudi3_scale.config import Config

State = Literal["complete", "infeasible", "pruned", "failed", "out of memory", "timed out", "killed"]
"""killed = the search itself was, and the trial is made again."""


@dataclass(frozen=True)
class Trial:
    """One configuration to try."""

    number: int
    folder: Path
    config: Config
    """Of the trial: the job's, with the values of the search."""
    processes: int
    values: dict[str, Any]
    """By key of the space."""
    mark: str
    """In the environment of all its processes, so that none outlives the search."""


@dataclass
class Outcome:
    """What a trial measured, whether it went well or not."""

    state: State = "complete"
    reason: str = ""
    """One sentence, of all but complete ones."""
    tokens_per_second: float | None = None
    """Of all processes, after the steps that are not measured."""
    loss: float | None = None
    """After the last step that was read, in nats per token."""
    seconds_to_loss: float | None = None
    """From the first logged step to the one with the target loss."""
    memory_gib: float | None = None
    """Largest of any process."""
    seconds: float = 0.0
    """Of the whole trial, its start included."""
    environment: dict[str, Any] = field(default_factory=dict)
    """What it ran on."""


Report = Callable[[int, float], bool]
"""Tells an intermediate value after a step (tokens/s, or the loss for time_to_loss); shall the trial end now?"""
Runner = Callable[[Trial, Report], Outcome]
"""Makes a trial. What goes wrong in it is an outcome, not an exception."""
