"""The weights of a transformers folder, read straight into a model that each process holds a part of.

    plan = plan_weights(model, config)      # of shapes only; refuses a folder that does not fit
    fully_shard(...)                        # or not
    model.to_empty(device=...)
    read_weights(tensors, plan)             # each process reads its part of each tensor

torch.distributed.checkpoint decides which part of a tensor a process holds, for any mesh, and safetensors reads that
part from the disk. Where the folder has a tensor in another form than the model (a matrix per expert, for example),
transformers' own conversion is run on the tensors that it takes, and on no others: that is the buffer of a process.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import LoadPlan, LoadPlanner
from torch.distributed.checkpoint.storage import StorageReader
from torch.futures import Future

from gaudi3_scale.checkpoint.tensors import read_tensors
from gaudi3_scale.config import ModelConfig
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.models.folder import weight_paths

REMEDY = "mend the folder, take back what model.config changes, or set model.weights to random."
OPEN_FILES = 2
"""Weight files that a process has open at a time; their pages count as its memory."""


@dataclass
class WeightSource:
    """The stored tensors of which one or more of a model's are made."""

    stored: list[tuple[str, str]] = field(default_factory=list)
    """Name in the folder, and the pattern of the conversion that took it."""
    converter: Any = None
    """A `WeightConverter` of transformers; None: one tensor, as it is."""


@dataclass
class WeightsPlan:
    """Where each of a model's tensors comes from."""

    files: dict[str, Path]
    """File of each stored tensor."""
    sources: dict[str, WeightSource]
    """By name in the model, without the names that adapters or wrappers add."""
    shapes: dict[str, torch.Size]
    model: Any
    """As shapes: some conversions look at its configuration."""


def weight_files(folder: Path) -> dict[str, Path]:
    """The file of each tensor that a folder stores; ConfigError as `weight_paths`, or if a file cannot be opened."""
    from safetensors import SafetensorError, safe_open

    found: dict[str, Path] = {}
    try:
        for path in weight_paths(folder):
            with safe_open(path, framework="pt") as file:
                found.update(dict.fromkeys(file.keys(), path))
    except (OSError, SafetensorError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")[:200]
        raise ConfigError(f"The weights in {str(folder)!r} cannot be loaded ({reason}): {REMEDY}") from None
    return found


def plan_weights(model: Any, config: ModelConfig) -> WeightsPlan:
    """Match the folder of `config` with a transformers model of shapes, before adapters or wrappers change its names.

    Raises ConfigError if a parameter is in no file, or has another shape there. A parameter that is tied to another
    one is not asked for. What the model does not have is not read, as in `from_pretrained`.
    """
    files = weight_files(Path(config.name))
    shapes = {name: tensor.shape for name, tensor in model.state_dict().items()}
    stored = _stored_shapes(files)
    plan = WeightsPlan(files, {}, shapes, model)
    for target, source in _match(model, files).items():
        for name, shape in _made(plan, target, source, stored).items():
            if name in shapes:
                plan.sources[name] = source
                if shapes[name] != shape:
                    raise ConfigError(
                        f"The weights in {config.name!r} have {name!r} as {list(shape)}, and the configured shape is "
                        f"{list(shapes[name])}: {REMEDY}"
                    )
    groups: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        groups.setdefault(id(parameter), []).append(name)
    missing = sorted(names[0] for names in groups.values() if not any(name in plan.sources for name in names))
    if missing:
        raise ConfigError(
            f"The weights in {config.name!r} lack {missing[0]!r} and {len(missing) - 1} more in the configured shape: "
            f"{REMEDY}"
        )
    for names in groups.values():  # so that whichever of the tied names a wrapped model has is found
        known = next(name for name in names if name in plan.sources)
        plan.sources.update({name: plan.sources[known] for name in names if name not in plan.sources})
    return plan


def read_weights(tensors: dict[str, torch.Tensor], plan: WeightsPlan) -> None:
    """Read into allocated tensors, whole or sharded (DTensor), by their names in the plan; each process for itself."""
    reader = FolderReader(plan)
    try:
        read_tensors(tensors, reader, None)
    finally:
        reader.close()


class FolderReader(StorageReader):
    """Gives torch.distributed.checkpoint the tensors of a plan, each as one chunk of which any part can be read."""

    def __init__(self, plan: WeightsPlan) -> None:
        self._plan = plan
        self._open: dict[Path, Any] = {}
        self._made: tuple[int, dict[str, torch.Tensor]] = (0, {})

    def reset(self, checkpoint_id: Any = None) -> None:
        """One folder per reader."""

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        """The plan names the folder."""
        return checkpoint_id is None

    def read_metadata(self, *arguments: Any, **named: Any) -> Metadata:
        described: dict[str, Any] = {}
        for name in self._plan.sources:
            shape = self._plan.shapes[name]
            chunk = ChunkStorageMetadata(torch.Size([0] * len(shape)), shape)
            described[name] = TensorStorageMetadata(TensorProperties(), shape, [chunk])
        return Metadata(described)

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *rest: Any, **named: Any) -> None:
        """Nothing is written."""

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Read the parts, file after file; cast to the type that the model has."""

        def file_of(item: Any) -> tuple[str, str]:
            source = self._plan.sources[item.storage_index.fqn]
            return str(self._plan.files[source.stored[0][0]]), source.stored[0][0]

        for item in sorted(plan.items, key=file_of):
            part = tuple(slice(o, o + n) for o, n in zip(item.storage_offsets, item.lengths, strict=True))
            target = planner.resolve_tensor(item).detach()
            target.copy_(self._read(item.storage_index.fqn, part))
            planner.commit_tensor(item, target)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def close(self) -> None:
        """Give the files and the buffer back."""
        self._open.clear()
        self._made = (0, {})

    def _read(self, name: str, part: tuple[slice, ...]) -> torch.Tensor:
        source = self._plan.sources[name]
        if source.converter is None:
            stored = source.stored[0][0]
            return self._file(stored).get_slice(stored)[part] if part else self._file(stored).get_tensor(stored)  # type: ignore[no-any-return]
        if self._made[0] != id(source):
            self._made = (0, {})  # the one before must not be held while this one is made
            get = {stored: _getter(self._file(stored), stored) for stored, _ in source.stored}
            self._made = id(source), _convert(self._plan.model, name, source, get)
        return self._made[1][name][part]

    def _file(self, stored: str) -> Any:
        from safetensors import safe_open

        path = self._plan.files[stored]
        if path not in self._open:
            while len(self._open) >= OPEN_FILES:
                del self._open[next(iter(self._open))]
            self._open[path] = safe_open(path, framework="pt")
        return self._open[path]


def _getter(file: Any, stored: str) -> Callable[[], torch.Tensor]:
    return lambda: file.get_tensor(stored)


def _match(model: Any, files: dict[str, Path]) -> dict[str, WeightSource]:
    """Stored tensors by the first of the model's names that they make, as transformers' own loading matches them."""
    from transformers.conversion_mapping import get_model_conversion_mapping
    from transformers.core_model_loading import WeightConverter, WeightRenaming, dot_natural_key, rename_source_key

    mapping = get_model_conversion_mapping(model)
    renamings = [entry for entry in mapping if isinstance(entry, WeightRenaming)]
    converters = [entry for entry in mapping if isinstance(entry, WeightConverter)]
    by_pattern = {pattern: converter for converter in converters for pattern in converter.source_patterns}
    have, prefix = model.state_dict(), model.base_model_prefix
    found: dict[str, WeightSource] = {}
    for stored in sorted(files, key=dot_natural_key):
        target, pattern = rename_source_key(stored, renamings, converters, prefix, have)
        if target not in have and stored in have:
            target, pattern = rename_source_key(stored, [], [], prefix, have)
        if target not in have:
            continue
        source = found.setdefault(target, WeightSource())
        if pattern is not None and source.converter is None:
            source.converter = by_pattern[pattern]
        source.stored.append((stored, pattern if pattern is not None else stored))
    return found


def _stored_shapes(files: dict[str, Path]) -> dict[str, torch.Size]:
    from safetensors import safe_open

    shapes: dict[str, torch.Size] = {}
    for path in sorted(set(files.values())):
        with safe_open(path, framework="pt") as file:
            shapes.update({name: torch.Size(file.get_slice(name).get_shape()) for name in file.keys()})  # noqa: SIM118
    return shapes


def _made(plan: WeightsPlan, target: str, source: WeightSource, stored: dict[str, torch.Size]) -> dict[str, torch.Size]:
    """Names and shapes of what comes out of a source, found out with tensors that have no content."""
    if source.converter is None:
        return {target: stored[source.stored[0][0]]}
    get = {name: _empty(stored[name]) for name, _ in source.stored}
    try:
        return {name: tensor.shape for name, tensor in _convert(plan.model, target, source, get).items()}
    except (RuntimeError, ValueError, IndexError, KeyError, TypeError):  # parts that do not fit together
        return {}


def _empty(shape: torch.Size) -> Callable[[], torch.Tensor]:
    return lambda: torch.empty(shape, device="meta")


def _convert(
    model: nn.Module, target: str, source: WeightSource, get: dict[str, Callable[[], torch.Tensor]]
) -> dict[str, torch.Tensor]:
    converter = copy.deepcopy(source.converter)
    for stored, pattern in source.stored:
        converter.add_tensor(target, stored, pattern, get[stored])
    made = converter.convert(target, model=model, config=model.config)
    return {name: value[0] if isinstance(value, list) else value for name, value in made.items()}
