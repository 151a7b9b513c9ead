"""The recipe cache of a training job: its key, and the variable by which the bridge finds it."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from collections.abc import Callable, MutableMapping
from typing import BinaryIO

from gaudi3_scale.config import Config
from gaudi3_scale.config.auto_precision import OF_DEVICE
from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.hpu.pci import generation
from gaudi3_scale.recipe_cache.archive import read_key
from gaudi3_scale.recipe_cache.key import CacheKey
from gaudi3_scale.recipe_cache.recipe_store import Store

VARIABLE = "PT_HPU_RECIPE_CACHE_CONFIG"
PACKAGE = "habana-torch-plugin"
NO_RELEASE = "none"
_held: list[BinaryIO] = []
"""Locks of this process's caches, which end with it."""


def key_of_job(config: Config, processes: int) -> CacheKey:
    """The key of a job on this machine. ``shapes``: the model's name with a digest of all that sizes follow from."""
    sizes = {
        "model": config.model.model_dump(mode="json"),
        "memory": config.memory.model_dump(mode="json"),
        "micro_batch": config.train.micro_batch_size,
        "warmup": [stage.model_dump(mode="json") for stage in config.train.batch_warmup],
        "mode": config.train.mode,
        "data": config.data.content,
    }
    digest = hashlib.sha256(json.dumps(sizes, sort_keys=True).encode()).hexdigest()[:16]
    name = "".join(each if each.isascii() and each.isprintable() else "?" for each in config.model.name[-80:])
    return CacheKey(
        release=release(),
        card=generation() or "none",
        # `auto` is the same as the precision that it stands for on a card.
        dtype=OF_DEVICE["hpu"] if config.train.precision == "auto" else config.train.precision,
        parallelism=f"{config.train.strategy} {processes}",
        shapes=f"{name} {config.model.sequence_length} tokens {digest}",
    )


def release() -> str:
    """Of the bridge that is installed, as its package has it; `none` where there is none."""
    try:
        return importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return NO_RELEASE


def prepare(config: Config, environment: MutableMapping[str, str], log: Callable[[str], None]) -> None:
    """Set the variable for this process, before torch is imported, and hold the cache until the process ends.

    The archive is taken if this node has none of this key. One that is refused costs the compiling, not the training:
    it is reported, and an empty cache begins.
    """
    settings = config.recipe_cache
    if settings.directory is None:
        return
    if environment.get(VARIABLE):
        log(f"{VARIABLE} is set, so recipe_cache.directory is not used")
        return
    store = Store(settings.directory)
    key = key_of_job(config, int(environment.get("WORLD_SIZE", "1")))
    if settings.archive is not None and settings.signing_key_file is None:
        raise ConfigError("recipe_cache.archive is used only with recipe_cache.signing_key_file: set it, too.")
    if settings.archive is not None and settings.signing_key_file is not None:
        signing_key = read_key(settings.signing_key_file)
        wanted = {name: getattr(key, name) for name in CacheKey.__dataclass_fields__}
        try:
            store.take(settings.archive, signing_key, wanted)
        except TrainerError as error:
            log(f"{error} The training goes on, and its graphs are compiled.")
    try:
        entry = store.make(key)
        _held.append(store.hold(entry))
        store.prune(int(settings.keep_gb * 10**9), entry)
    except (TrainerError, OSError) as error:
        log(f"{error} The training goes on without a recipe cache.")
        return
    environment[VARIABLE] = entry.variable(settings.size_mb)
