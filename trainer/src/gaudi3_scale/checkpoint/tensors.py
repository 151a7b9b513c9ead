"""Named tensors to and from a checkpoint's files, through torch.distributed.checkpoint."""

from __future__ import annotations

import io
import warnings
from typing import Any

import torch
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from torch.distributed.checkpoint.planner import ReadItem
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save
from torch.distributed.checkpoint.storage import StorageReader, StorageWriter

from gaudi3_scale.checkpoint.manifest import DamagedCheckpointError
from gaudi3_scale.checkpoint.plans import as_data
from gaudi3_scale.errors import TrainerError


class TensorsOnly(DefaultLoadPlanner):
    """Loads tensors. The default one unpickles whatever the checkpoint calls an object, code included."""

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        raise DamagedCheckpointError(f"its .metadata says of {read_item.dest_index.fqn} that it is no tensor")


def write_tensors(tensors: dict[str, torch.Tensor], writer: StorageWriter, group: Any) -> None:
    """Save; collective over the group, and of this process alone without one."""
    planner = DefaultSavePlanner(flatten_state_dict=False, flatten_sharded_tensors=False)
    with warnings.catch_warnings(), as_data():
        warnings.simplefilter("ignore")
        save(tensors, storage_writer=writer, planner=planner, process_group=group, no_dist=group is None)


def read_tensors(tensors: dict[str, torch.Tensor], reader: StorageReader, group: Any) -> None:
    """Load into these tensors, which may be sharded in another way than those that were saved."""
    planner = TensorsOnly(flatten_state_dict=False, flatten_sharded_tensors=False)
    with warnings.catch_warnings(), as_data():
        warnings.simplefilter("ignore")
        try:
            load(tensors, storage_reader=reader, planner=planner, process_group=group, no_dist=group is None)
        except CheckpointException as error:
            cause = root(error)
            if isinstance(cause, TrainerError | DamagedCheckpointError):
                raise cause from None
            raise


def root(error: BaseException) -> BaseException:
    """What torch.distributed.checkpoint wrapped: the first rank's own exception."""
    failures = getattr(error, "failures", None)
    if isinstance(failures, dict) and failures:
        first = failures[min(failures)]
        return first[0] if isinstance(first, tuple) else error
    return error
