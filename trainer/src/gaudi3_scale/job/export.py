"""A trained model as a folder in the form of transformers: config.json, model.safetensors and the tokenizer.

A file beside them says of which checkpoint it is (`job/lineage.py`)."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Literal

from gaudi3_scale.checkpoint import Checkpoint, CheckpointStore
from gaudi3_scale.checkpoint.collect import Wanted, collect
from gaudi3_scale.checkpoint.fetch import load
from gaudi3_scale.checkpoint.identity import key_of, of_folder
from gaudi3_scale.checkpoint.peers import CheckpointPeers
from gaudi3_scale.checkpoint.signing import Signer
from gaudi3_scale.checkpoint.target import open_target
from gaudi3_scale.config import Config, ModelConfig
from gaudi3_scale.config.auto_precision import OF_DEVICE, with_precision
from gaudi3_scale.data.shards import TOKENIZER, Corpus, identity, read_index
from gaudi3_scale.distributed.process_group import Topology, fresh_store
from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.job import lineage
from gaudi3_scale.job.data import directory
from gaudi3_scale.models.build import build, quiet_bars
from gaudi3_scale.secret import prove

Precision = Literal["float32", "bfloat16", "float16"]


def export(config: Config, to: Path, step: int | None, merge: bool, precision: Precision) -> tuple[int, bool] | None:
    """Write a checkpoint's model; its step, and whether a tokenizer is with it.

    The newest whole checkpoint is taken unless a step is given. The model is the one that the checkpoint was written
    with. Of a model with adapters only they are written, unless they are to be merged.

    Under the launcher the files of all nodes are brought to the first process, which writes the folder; None for the
    others. Files that no node has come from `checkpoint.target`.
    """
    quiet_bars()
    collected = to.with_name(f".{to.name}.{os.getpid()}.checkpoint")
    try:
        with _processes(config) as peers:
            busy = peers.gather(to.exists() and (not to.is_dir() or any(to.iterdir())))[0]
            if busy:
                raise ConfigError(f"{to} is there and not empty: give the path of a folder to make.")
            checkpoint = _checkpoint(config, peers, step, collected)
        # The other processes have ended by now, however long this takes.
        return None if checkpoint is None else _write(config, checkpoint, to, merge, precision)
    finally:
        shutil.rmtree(collected, ignore_errors=True)


@contextmanager
def _processes(config: Config) -> Iterator[CheckpointPeers]:
    """All processes under the launcher, or this one."""
    import torch.distributed as dist

    topology = Topology.from_environment()
    if topology.world_size == 1:
        yield CheckpointPeers.single()
        return
    timeout = timedelta(seconds=config.train.first_timeout)
    store = fresh_store(topology.rank, topology.world_size, timeout)
    dist.init_process_group("gloo", store=store, rank=topology.rank, world_size=topology.world_size, timeout=timeout)
    prove(dist.group.WORLD, "cpu")
    try:
        config.output_dir.mkdir(parents=True, exist_ok=True)
        yield CheckpointPeers.meet(config.output_dir, config.train.first_timeout).patient
    finally:
        dist.destroy_process_group()


def _checkpoint(config: Config, peers: CheckpointPeers, step: int | None, to: Path) -> Checkpoint | None:
    store = CheckpointStore(config.output_dir / "checkpoints", config.checkpoint.keep, partial(print, file=sys.stderr))
    settings = config.checkpoint
    if settings.signing_key_file is not None:
        store.signer = Signer.load(settings.signing_key_file)
    target = open_target(settings.target, settings.endpoint_url) if settings.target else None
    # The job may have trained on another device than this machine has, or than is named for the export, on which
    # train.precision auto is another.
    keys = {key_of(with_precision(config, kind)) for kind in OF_DEVICE}
    job = of_folder(config.output_dir, store)
    return collect(peers, store, Wanted(step, job[0].id if job is not None else None, keys), target, to)


def _write(config: Config, checkpoint: Checkpoint, to: Path, merge: bool, precision: Precision) -> tuple[int, bool]:
    import torch

    about = checkpoint.manifest.about
    model_config = ModelConfig.model_validate(about["model"])
    model: Any = build(model_config, weights=False)
    try:
        load(checkpoint, CheckpointPeers.single(), model, [], checkpoint.state())
    except TrainerError as error:  # name the folder that stays, not the one where the files were put together
        known = CheckpointStore(config.output_dir / "checkpoints", config.checkpoint.keep).path(checkpoint.step)
        raise type(error)(str(error).replace(str(checkpoint.path), str(known))) from None
    if model_config.lora.rank and merge:
        model = model.merge_and_unload()
    model = model.to(getattr(torch, precision)).eval()
    corpus = _corpus(directory(config), about["data"])
    building = to.with_name(f".{to.name}.{os.getpid()}.tmp")
    try:
        building.mkdir(parents=True)
        if corpus is not None:
            if corpus.unit != "byte":
                model.config.eos_token_id = corpus.separator
                if getattr(model, "generation_config", None) is not None:
                    model.generation_config.eos_token_id = corpus.separator
            for path in (corpus.folder / TOKENIZER).iterdir():
                shutil.copyfile(path, building / path.name)
        model.save_pretrained(building)
        lineage.write(checkpoint.manifest, building)
        building.replace(to)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return checkpoint.step, corpus is not None


def _corpus(folder: Path, wanted: dict[str, Any]) -> Corpus | None:
    """The prepared data that the model was trained on, if it is still here."""
    found = (read_index(path) for path in sorted(folder.glob("*")) if path.is_dir())
    return next((corpus for corpus in found if corpus is not None and identity(corpus) == wanted), None)
