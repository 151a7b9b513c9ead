"""Checkpoints: sharded, asynchronous, verified, pruned; whatever happens to a process, a disk or a bucket.

    checkpoints/step-00000050/__0_0.distcp       tensors, as torch.distributed.checkpoint writes them; a file per rank
    checkpoints/step-00000050/.metadata          which tensor lies where
    checkpoints/step-00000050/state.safetensors  everything that is no tensor of the model or optimizer
    checkpoints/step-00000050/manifest.json      size and SHA-256 of each file; written last: its presence is the commit

A checkpoint is built in a directory of another name, made durable, and renamed. One that has the right name but not the
content its manifest states was damaged afterwards, and is skipped with a warning.

The parts: `store` (a node's disk), `peers` (who keeps what, and the copies between nodes), `saver` (the asynchronous
save), `restore` (the state back into a model), `frozen` (what is not trained and left out), `collect` (all files of a
checkpoint in one folder), `target` and `upload` (an object store or a shared directory besides).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gaudi3_scale.checkpoint.manifest import MANIFEST, DamagedCheckpointError, Entry, Manifest
from gaudi3_scale.checkpoint.store import Checkpoint, CheckpointStore
from gaudi3_scale.lazy import lazily

if TYPE_CHECKING:
    from gaudi3_scale.checkpoint.saver import Saver

__all__ = [
    "MANIFEST",
    "Checkpoint",
    "CheckpointStore",
    "DamagedCheckpointError",
    "Entry",
    "GaudiCheckpoint",
    "Manifest",
    "Saver",
]

__getattr__ = lazily(
    __name__,
    {
        "Saver": "checkpoint.saver",
    },
)
