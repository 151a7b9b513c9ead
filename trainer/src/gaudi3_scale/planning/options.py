"""How a job may be spread over devices, and what each way needs at any batch and any number of them.

A step's sections (`peak.sections_of`) are affine in the batch, and in the share of a sharded weight that a process
holds, which is one over the number of processes that it is split over. So three predictions tell all: of one sample and
of two on `FEW` processes, and of one on `MANY`. The plan that is recommended is predicted once more as it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from gaudi3_scale.config import Config
from gaudi3_scale.planning.peak import allowed, largest, sections_of

if TYPE_CHECKING:
    from gaudi3_scale.planning.account import MemorySection

FEW, MANY = 8, 512
STRATEGIES = ("DDP", "HSDP", "FSDP")
"""In the order in which they are preferred: what is exchanged over the network between nodes grows."""
RECOMPUTATIONS = ("none", "selective", "full")
"""In the order of what they cost in time."""


@dataclass(frozen=True)
class Option:
    """One way to train."""

    strategy: str
    recompute: str
    precision: str

    def config(self, job: Config, devices: int, per_node: int) -> Config:
        """The job trained in this way on this many devices; HSDP splits each copy over a node."""
        train = {
            "precision": self.precision,
            "strategy": "habana_ddp" if self.strategy == "DDP" else "habana_fsdp",
            "replicas": devices // per_node if self.strategy == "HSDP" else 1,
        }
        if self.strategy == "DDP":
            train |= {"reshard_after_forward": True, "reduce_each_micro_batch": True}
        memory = {"activation_checkpointing": self.recompute, "budget_gib": None}
        return job.model_copy(
            update={
                "train": job.train.model_copy(update=train),
                "memory": job.memory.model_copy(update=memory),
            }
        )

    @property
    def text(self) -> str:
        """What is recomputed, as a phrase of the plan."""
        return {"none": "nothing recomputed", "selective": "all but products", "full": "all blocks"}[self.recompute]


class Need:
    """Bytes of an option at any batch and number of devices; what is not asked for is not predicted."""

    def __init__(self, job: Config, option: Option, kind: str) -> None:
        """On devices of a type."""
        self.split = option.strategy != "DDP"
        place = option if not self.split else dataclasses.replace(option, strategy="FSDP")
        self._few, self._many = (place.config(job, size, size) for size in (FEW, MANY))
        self._kind = kind

    @cached_property
    def one(self) -> tuple[MemorySection, ...]:
        """Of one sample on FEW processes; of the next two one of both is different."""
        return sections_of(self._few, 1, FEW, self._kind)

    @cached_property
    def two(self) -> tuple[MemorySection, ...]:
        """Of two samples."""
        return sections_of(self._few, 2, FEW, self._kind)

    @cached_property
    def many(self) -> tuple[MemorySection, ...]:
        """Of MANY processes, or, with copies of the model, of any number."""
        return sections_of(self._many, 1, MANY, self._kind) if self.split else self.one

    def least(self) -> int:
        """Bytes that no batch and no number of devices up to MANY is below."""
        return allowed(max(each.bytes for each in self.many))

    def bytes(self, micro_batch: int, split_over: int) -> int:
        """Peak with weights split over this many processes (ignored for DDP, whose `many` is `one`)."""
        if split_over >= MANY and micro_batch == 1:
            return self.least()
        share = (1 / split_over - 1 / FEW) / (1 / MANY - 1 / FEW) if self.split else 0.0
        highest = 0.0
        more = self.one if micro_batch == 1 else self.two
        for one, two, many in zip(self.one, more, self.many if share else self.one, strict=True):
            batch = (micro_batch - 1) * (two.bytes - one.bytes)
            highest = max(highest, one.bytes + batch + share * (many.bytes - one.bytes))
        return allowed(highest)

    def largest_batch(self, limit: int, split_over: int) -> int:
        """Samples per process that fit into this many bytes; 0 for none."""
        return largest(lambda batch: self.bytes(batch, split_over), limit)


def split_over(option: Option, devices: int, per_node: int) -> int:
    """Processes that share a copy of the weights."""
    return {"DDP": 1, "HSDP": min(devices, per_node), "FSDP": devices}[option.strategy]


def options(precision: str, devices: int, per_node: int, recomputations: Sequence[str]) -> list[Option]:
    """All for this many devices, the most preferred one first: least computed twice, then least on the network."""
    strategies = [name for name in STRATEGIES if name != "HSDP" or devices > per_node]
    return [Option(strategy, recompute, precision) for recompute in recomputations for strategy in strategies]
