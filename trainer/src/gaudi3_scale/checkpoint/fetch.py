"""Reading a checkpoint whose files lie on several nodes: what this place lacks is brought here first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.distributed.checkpoint.metadata import TensorStorageMetadata
from torch.distributed.checkpoint.planner import LoadPlan, LoadPlanner
from torch.futures import Future

from gaudi3_scale.checkpoint.frozen import frozen_identity
from gaudi3_scale.checkpoint.manifest import MANIFEST, STATE, DamagedCheckpointError
from gaudi3_scale.checkpoint.peers import CheckpointPeers
from gaudi3_scale.checkpoint.reading import VerifiedReader
from gaudi3_scale.checkpoint.restore import FROZEN, TrainingState
from gaudi3_scale.checkpoint.shape import restoring
from gaudi3_scale.checkpoint.store import Checkpoint, CheckpointStore
from gaudi3_scale.checkpoint.tensors import read_tensors
from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.files import write_atomically


class PeerReader(VerifiedReader):
    """Reads from this place's directory, after getting from the others what this place's ranks need and it lacks.

    With the layout of before these are the ranks' own shards, which are there; a node that lost its disk, or another
    number of processes, needs more.
    """

    def __init__(self, checkpoint: Checkpoint, peers: CheckpointPeers) -> None:
        super().__init__(checkpoint.path, checkpoint.manifest.files)
        self._checkpoint = checkpoint
        self._peers = peers

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Fetch, then read. Collective, as the load is."""
        needed = {self.storage_data[item.storage_index].relative_path for item in plan.items}
        lacking = sorted(needed - set(self._checkpoint.manifest.here))
        if self._peers.size > 1:
            self._checkpoint = fetch(self._checkpoint, self._peers, needed)
        elif lacking:
            raise TrainerError(
                f"The checkpoint {self._checkpoint.path} has only some of its files here, without {lacking[0]}: "
                "copy the others from the nodes that wrote them, or from the target."
            )
        return super().read_data(plan, planner)


def fetch(checkpoint: Checkpoint, peers: CheckpointPeers, needed: set[str]) -> Checkpoint:
    """Bring these files to this rank's place; the checkpoint as it is here then. Collective.

    Every rank names what it needs itself; the manifest of each place's writer says what is there.
    """
    manifest, path = checkpoint.manifest, checkpoint.path
    have: dict[int, set[str]] = {}
    want: dict[int, set[str]] = {}
    for rank, (theirs, wanted) in enumerate(peers.gather((set(manifest.here), needed))):
        want.setdefault(peers.places[rank], set()).update(wanted)
        if peers.places[rank] == rank:
            have[rank] = theirs
    failure: OSError | None = None
    for wave in peers.spread(have, want, manifest.files):
        failure = peers.exchange(wave, path) or failure
    got = manifest.with_here({*have[peers.folder_rank], *want[peers.folder_rank]})
    if peers.writer and failure is None and got != manifest:
        try:
            write_atomically(path / MANIFEST, got.dump())
        except OSError as error:
            failure = error
    failures = [f for f in peers.gather(failure) if f is not None]
    if failures:
        raise TrainerError(
            f"The checkpoint {path} could not be brought from the nodes that have it ({failures[0]}): "
            "look at the disks' room and health, and start again."
        )
    return replace(checkpoint, manifest=got)


def load(
    checkpoint: Checkpoint,
    peers: CheckpointPeers,
    model: nn.Module,
    optimizers: Sequence[torch.optim.Optimizer],
    state: dict[str, Any],
) -> None:
    """The checkpoint's tensors into a model and its optimizers; without optimizers the model only. Collective.

    `state` is the checkpoint's. However many processes there were: each reads the parts that it holds now.
    """
    try:
        reader = PeerReader(checkpoint, peers)
        plain: dict[str, torch.Tensor] = state["plain"]
        saved = {*reader.read_metadata().state_dict_metadata, *plain}
        if not optimizers:
            saved = {name for name in saved if name.startswith("model.")}
        frozen = state.get("training", {}).get(FROZEN)
        if frozen is not None and frozen != frozen_identity(model):
            raise ConfigError(
                f"The checkpoint {checkpoint.path} holds only what was trained beside other frozen weights than this "
                "model's: give the base that it was trained with, or another output_dir."
            )
        training = TrainingState(model, optimizers, with_frozen=frozen is None)
        tensors = training.select(saved, str(checkpoint.path))
        read_tensors({name: tensor for name, tensor in tensors.items() if name not in plain}, reader, peers.group)
        with torch.no_grad(), restoring(checkpoint.path / STATE):
            for name in plain.keys() & tensors.keys():
                tensors[name].copy_(plain[name])
            if optimizers:
                training.apply(state["training"], str(checkpoint.path))
    except DamagedCheckpointError as damage:
        raise checkpoint.unusable(damage) from None


def read_all(path: Path) -> dict[str, Any]:
    """A whole checkpoint as one dictionary: its state, and its tensors under `tensors`. All files must be here."""
    store = CheckpointStore(path.parent, keep=1)
    checkpoint = Checkpoint(step := int(path.name.rpartition("-")[2]), path, store.read(step))
    reader = VerifiedReader(path, checkpoint.manifest.files)
    metadata = reader.read_metadata().state_dict_metadata
    tensors = {
        name: torch.empty(about.size, dtype=about.properties.dtype)
        for name, about in metadata.items()
        if isinstance(about, TensorStorageMetadata)
    }
    read_tensors(tensors, reader, None)
    state = checkpoint.state()
    return {**state, "tensors": {**tensors, **state.pop("plain")}}
