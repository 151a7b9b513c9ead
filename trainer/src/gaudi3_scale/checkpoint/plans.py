"""What the ranks tell each other when a sharded checkpoint is saved or read, as data and never as pickles.

torch.distributed.checkpoint collects the ranks' plans at one of them and sends each its part, with torch's object
collectives, which unpickle what a peer sends. Here the same goes through `exchange`.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch.distributed.checkpoint import metadata, planner, storage
from torch.distributed.checkpoint.api import CheckpointException

from gaudi3_scale.checkpoint.manifest import DamagedCheckpointError
from gaudi3_scale.distributed import exchange
from gaudi3_scale.errors import TrainerError
from gaudi3_scale.internals import PLAN_EXCHANGE, STORAGE_INFO, STORAGE_PREFIX, have_plan_exchange

for _kind in (
    *(planner.WriteItemType, planner.LoadItemType, planner.BytesIOWriteData, planner.TensorWriteData),
    *(planner.WriteItem, planner.ReadItem, planner.SavePlan, planner.LoadPlan),
    *(metadata.ChunkStorageMetadata, metadata.TensorProperties, metadata.TensorStorageMetadata),
    *(metadata.BytesStorageMetadata, metadata.StorageMeta, metadata.Metadata, metadata.MetadataIndex),
    *(storage.WriteResult, STORAGE_INFO.get(), STORAGE_PREFIX.get()),
):
    exchange.record(_kind)


@exchange.record
@dataclass(frozen=True)
class Failure:
    """Why a rank could not do its part."""

    error: TrainerError | OSError | None
    message: str
    damaged: bool

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """An error, of which the others get what they act on."""
        known = error if isinstance(error, TrainerError | OSError) else None
        message = str(error) if isinstance(error, DamagedCheckpointError) else f"{type(error).__name__}: {error}"
        return cls(known, message, isinstance(error, DamagedCheckpointError))

    def raised(self) -> BaseException:
        """The error at the rank that hears of it."""
        if self.error is not None:
            return self.error
        return DamagedCheckpointError(self.message) if self.damaged else RuntimeError(self.message)


@exchange.record
@dataclass(frozen=True)
class Failed:
    """A step that failed, with the failures by rank."""

    step: str
    failures: dict[int, Failure]


class PlanExchange(PLAN_EXCHANGE.get()):  # type: ignore[misc]
    """torch's own, whose objects travel as data."""

    def broadcast_object(self, object: Any) -> Any:
        """The coordinator's object, everywhere."""
        if not self.use_dist:
            return object
        return _received(exchange.broadcast(_sent(object), self.global_coordinator_rank, self.group))

    def gather_object(self, object: Any) -> list[Any] | None:
        """Everyone's object at the coordinator."""
        if not self.use_dist:
            return [object]
        found = exchange.gather(_sent(object), self.group, self.coordinator_rank)
        return None if found is None else [_received(each) for each in found]

    def all_gather_object(self, object: Any) -> list[Any]:
        """Everyone's object, everywhere."""
        if not self.use_dist:
            return [object]
        return [_received(each) for each in exchange.all_gather(_sent(object), self.group)]

    def scatter_object(self, object_list: list[Any] | None) -> Any:
        """This rank's of the coordinator's objects."""
        if not self.use_dist:
            return (object_list or [None])[0]
        sent = [_sent(each) for each in object_list or ()] if self.is_coordinator else None
        return _received(exchange.scatter(sent, self.group, self.coordinator_rank))


def _sent(value: Any) -> Any:
    if isinstance(value, CheckpointException):
        return Failed(str(value.args[0]), {rank: Failure.of(each[0]) for rank, each in value.failures.items()})
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], BaseException):
        return Failure.of(value[0])
    return value


def _received(value: Any) -> Any:
    """What torch looks for: an error together with a stack, which stays at the rank that has it."""
    if isinstance(value, Failed):
        return CheckpointException(value.step, {rank: _wrapped(each) for rank, each in value.failures.items()})
    return _wrapped(value) if isinstance(value, Failure) else value


def _wrapped(failure: Failure) -> Any:
    return failure.raised(), traceback.StackSummary()


_ours = threading.local()


def _chosen(*arguments: Any, **named: Any) -> Any:
    kind = PlanExchange if getattr(_ours, "at", False) else PLAN_EXCHANGE_OF_TORCH
    return kind(*arguments, **named)


PLAN_EXCHANGE_OF_TORCH = PLAN_EXCHANGE.get()
have_plan_exchange(_chosen)


@contextmanager
def as_data() -> Iterator[None]:
    """Saves and loads of this thread exchange plans as data; those that a user's program makes stay as they are."""
    _ours.at = True
    try:
        yield
    finally:
        _ours.at = False
