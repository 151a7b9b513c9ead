"""Named tensors to and from a checkpoint's files, through torch.distributed.checkpoint."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save
from torch.distributed.checkpoint.storage import StorageReader, StorageWriter


def write_tensors(tensors: dict[str, torch.Tensor], writer: StorageWriter, group: Any) -> None:
    """Save; collective over the group, and of this process alone without one."""
    planner = DefaultSavePlanner(flatten_state_dict=False, flatten_sharded_tensors=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        save(tensors, storage_writer=writer, planner=planner, process_group=group, no_dist=group is None)


def read_tensors(tensors: dict[str, torch.Tensor], reader: StorageReader, group: Any) -> None:
    """Load into these tensors, which may be sharded in another way than those that were saved."""
    planner = DefaultLoadPlanner(flatten_state_dict=False, flatten_sharded_tensors=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        load(tensors, storage_reader=reader, planner=planner, process_group=group, no_dist=group is None)
