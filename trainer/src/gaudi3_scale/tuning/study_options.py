"""What a search is for, and what it may take."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from gaudi3_scale.config import Config
from gaudi3_scale.cost import bill
from gaudi3_scale.errors import ConfigError


class Objective(StrEnum):
    """What is made as good as it can be."""

    tokens_per_second = "tokens_per_second"
    tokens_per_currency = "tokens_per_currency"
    time_to_loss = "time_to_loss"


class StudyStorage(StrEnum):
    """How the study is kept: a journal may be shared by nodes, SQLite may not."""

    journal = "journal"
    sqlite = "sqlite"


class Pruner(StrEnum):
    """Which trials are ended early."""

    median = "median"
    hyperband = "hyperband"
    none = "none"


@dataclass(frozen=True)
class Limits:
    """What a trial has to keep; one that does not is recorded as infeasible, with the reason."""

    memory_gib: float | None = None
    """Largest memory of a process: of its device, on a CPU its resident memory."""
    loss: float | None = None
    """Largest loss after the last step of a trial."""
    loss_tolerance: float | None = 0.05
    """By how much of the default's loss after the same steps a trial's may be larger; None = any."""


@dataclass(frozen=True)
class Options:
    """How to search."""

    folder: Path
    """Of the study: it holds all that a search knows, and a search that was killed goes on from it."""
    objective: Objective = Objective.tokens_per_second
    target_loss: float | None = None
    """For `time_to_loss`: the training loss to reach."""
    limits: Limits = field(default_factory=Limits)
    trials: int = 20
    """In all, over all restarts and nodes; the first is the job as it is."""
    steps: int = 40
    """Optimizer steps of a trial, of which the first quarter is not measured."""
    time_limit: float = 600.0
    """Seconds after which a trial is ended."""
    processes: int = 1
    """Of each trial, unless the space has the key `processes`."""
    storage: StudyStorage = StudyStorage.journal
    pruner: Pruner = Pruner.median
    repeats: int = 5
    """Runs of each of the best and the default at the end, in turn."""
    seed: int = 0
    join: bool = False
    """Work on a study on which other processes may work at the same time."""

    @property
    def maximise(self) -> bool:
        """Whether more is better."""
        return self.objective is not Objective.time_to_loss

    @property
    def warm_steps(self) -> int:
        """Steps at the beginning of a trial that are not measured."""
        return max(1, self.steps // 4)

    def check(self, config: Config) -> None:
        """ConfigError where the search cannot be made."""
        for name, least in (("trials", 2), ("steps", 8), ("processes", 1), ("repeats", 2)):
            if getattr(self, name) < least:
                raise ConfigError(f"--{name} is {getattr(self, name)}: give at least {least}.")
        if self.time_limit <= 0:
            raise ConfigError(f"--time-limit is {self.time_limit:g} seconds: give more than 0.")
        if (self.target_loss is not None) != (self.objective is Objective.time_to_loss):
            raise ConfigError("--target-loss and --objective time_to_loss go together: give both, or neither.")
        if self.objective is Objective.tokens_per_currency:
            price_per_hour(config)
        if self.join and self.storage is not StudyStorage.journal:
            raise ConfigError("--join needs --storage journal: SQLite is not safe in a folder that nodes share.")


def price_per_hour(config: Config) -> tuple[float, str]:
    """Of the nodes that a trial is paid for, and the currency. ConfigError without a price."""
    terms = bill.terms(config.cost, nodes=1)
    if not terms:
        raise ConfigError(
            "The objective tokens_per_currency needs what an hour of a node costs, which is never assumed: set "
            "cost.node_price_per_hour, cost.price_source and cost.price_date."
        )
    return float(terms[bill.KEY]["price_per_hour"]), str(terms[bill.KEY]["currency"])
