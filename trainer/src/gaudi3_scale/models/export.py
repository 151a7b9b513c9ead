"""A trained model as a folder in the form of transformers: config.json, model.safetensors and the tokenizer."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, Literal

from gaudi3_scale.checkpoint import Checkpoint, CheckpointStore
from gaudi3_scale.checkpoint.fetch import load
from gaudi3_scale.checkpoint.manifest import DamagedCheckpointError
from gaudi3_scale.checkpoint.peers import Peers
from gaudi3_scale.config import Config, ModelConfig
from gaudi3_scale.data.job import directory
from gaudi3_scale.data.shards import TOKENIZER, Corpus, identity, read_index
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.models.build import build, quiet_bars

Precision = Literal["float32", "bfloat16", "float16"]


def export(config: Config, to: Path, step: int | None, merge: bool, precision: Precision) -> tuple[int, bool]:
    """Write a checkpoint's model; its step, and whether a tokenizer is with it.

    The newest whole checkpoint is taken unless a step is given. The model is the one that the checkpoint was written
    with. Of a model with adapters only they are written, unless they are to be merged.
    """
    import torch

    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise ConfigError(f"{to} is there and not empty: give the path of a folder to make.")
    quiet_bars()
    checkpoint = _checkpoint(config, step)
    about = checkpoint.manifest.about
    model_config = ModelConfig.model_validate(about["model"])
    model: Any = build(model_config, weights=False)
    load(checkpoint, Peers.single(), model, [], checkpoint.state())
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
        building.replace(to)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return checkpoint.step, corpus is not None


def _checkpoint(config: Config, step: int | None) -> Checkpoint:
    store = CheckpointStore(config.output_dir / "checkpoints", config.checkpoint.keep)
    try:
        found = store.newest() if step is None else store.verify(step)
    except DamagedCheckpointError as damage:
        raise ConfigError(
            f"The checkpoint {store.path(step or 0)} cannot be exported ({damage}): choose one of the steps "
            f"{', '.join(map(str, store.steps())) or '(there are none)'}."
        ) from None
    if found is None:
        raise ConfigError(
            f"There is no whole checkpoint in {store.directory}: give the output_dir of a job that has saved one."
        )
    return found


def _corpus(folder: Path, wanted: dict[str, Any]) -> Corpus | None:
    """The prepared data that the model was trained on, if it is still here."""
    found = (read_index(path) for path in sorted(folder.glob("*")) if path.is_dir())
    return next((corpus for corpus in found if corpus is not None and identity(corpus) == wanted), None)
