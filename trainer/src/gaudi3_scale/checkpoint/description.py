"""`.metadata`, which torch.distributed.checkpoint writes as a pickle, read without running anything in it.

Every class that the pickle names is replaced by a record that remembers what it was given. The description is then made
of these records, each value being checked. No class or function of torch or of Python is reachable from the pickle, so
that nothing can be called, changed or imported, whatever the pickle says.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)

from gaudi3_scale.checkpoint.manifest import METADATA, DamagedCheckpointError, Entry
from gaudi3_scale.internals import StorageInfo

_METADATA = "torch.distributed.checkpoint.metadata"
_FILESYSTEM = "torch.distributed.checkpoint.filesystem"
RECORDS = {
    (_METADATA, "Metadata"),
    (_METADATA, "MetadataIndex"),
    (_METADATA, "StorageMeta"),
    (_METADATA, "TensorStorageMetadata"),
    (_METADATA, "ChunkStorageMetadata"),
    (_METADATA, "TensorProperties"),
    (_METADATA, "_MEM_FORMAT_ENCODING"),
    ("torch.distributed.checkpoint.planner", "_MEM_FORMAT_ENCODING"),
    (_FILESYSTEM, "_StorageInfo"),
    (_FILESYSTEM, "_StoragePrefix"),
    ("torch", "Size"),
    ("torch.serialization", "_get_layout"),
    ("builtins", "getattr"),  # how Python 3.11.0 to 3.11.3 pickle a member of an enumeration
}
"""Exact names, as a name with a dot would lead on from a module to whatever it has imported."""


class _Record:
    """What the pickle makes of one class: the arguments and the state it was given."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments
        self.state: Any = {}

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: Any) -> None:
        super().__init__(file)
        self.kinds: dict[tuple[str, str], type[_Record]] = {}

    def find_class(self, module: str, name: str) -> Any:
        """A record's class, made for this pickle alone; a dtype, which cannot be changed."""
        if (module, name) in RECORDS:
            return self.kinds.setdefault((module, name), type(name, (_Record,), {}))
        if module == "torch" and isinstance(getattr(torch, name, None), torch.dtype):
            return getattr(torch, name)
        raise DamagedCheckpointError(f"its .metadata refers to {module}.{name}, which describes no tensor")


def read_description(folder: Path, files: Mapping[str, Entry]) -> Metadata:
    """Which tensor lies where in these files; DamagedCheckpointError if anything in it is not that."""
    try:
        with (folder / METADATA).open("rb") as file:
            metadata = _known(_Unpickler(file).load(), "Metadata")
        tensors = {_text(n): _tensor(n, about) for n, about in _table(metadata["state_dict_metadata"]).items()}
        places = dict(_location(i, about, tensors, files) for i, about in _table(metadata["storage_data"]).items())
        for name, about in tensors.items():
            if any(MetadataIndex(name, chunk.offsets) not in places for chunk in about.chunks):
                raise DamagedCheckpointError(f"its .metadata says nothing of where a part of {name} lies")
    except DamagedCheckpointError:
        raise
    except OSError as error:
        raise DamagedCheckpointError(f"its .metadata cannot be read ({error.strerror})") from None
    except Exception as error:  # a broken pickle raises almost anything
        raise DamagedCheckpointError(f"its .metadata cannot be read ({type(error).__name__})") from None
    return Metadata(state_dict_metadata=dict(tensors), storage_data=places)


def _tensor(name: Any, about: Any) -> TensorStorageMetadata:
    if type(about).__name__ != "TensorStorageMetadata":
        raise DamagedCheckpointError(f"its .metadata says of {name} that it is no tensor")
    known = _known(about, "TensorStorageMetadata")
    dtype = _known(known["properties"], "TensorProperties", tuple)[0]
    size = _size(known["size"])
    if not isinstance(dtype, torch.dtype):
        raise DamagedCheckpointError(f"its .metadata says of {name} that its type is {type(dtype).__name__}")
    chunks = []
    for chunk in known["chunks"]:
        parts = _known(chunk, "ChunkStorageMetadata")
        offsets, sizes = _size(parts["offsets"]), _size(parts["sizes"])
        if not len(offsets) == len(sizes) == len(size) or any(
            o + s > whole for o, s, whole in zip(offsets, sizes, size, strict=True)
        ):
            raise DamagedCheckpointError(f"its .metadata says of a part of {name} that it lies outside of it")
        chunks.append(ChunkStorageMetadata(offsets, sizes))
    if sum(prod(chunk.sizes) for chunk in chunks) != prod(size):
        raise DamagedCheckpointError(f"its .metadata says nothing of a part of {name}")
    return TensorStorageMetadata(TensorProperties(dtype=dtype), size, chunks)


def _location(
    index: Any, about: Any, tensors: Mapping[str, TensorStorageMetadata], files: Mapping[str, Entry]
) -> tuple[MetadataIndex, StorageInfo]:
    """Where a part lies: within a file of the manifest, and long enough for what it is said to hold."""
    key, place = _known(index, "MetadataIndex"), _known(about, "_StorageInfo")
    name, offset = _text(key["fqn"]), _size(key["offset"])
    file, start, length = _text(place["relative_path"]), _number(place["offset"]), _number(place["length"])
    if file not in files or start + length > files[file].size:
        raise DamagedCheckpointError(f"its .metadata says of {name} that it lies in {file!r}, where it cannot be")
    if place.get("transform_descriptors"):
        raise DamagedCheckpointError(f"its .metadata says of {name} that it is compressed, which is not read")
    chunk = next((chunk for chunk in tensors[name].chunks if chunk.offsets == offset), None)
    if chunk is None or prod(chunk.sizes) * tensors[name].properties.dtype.itemsize > length:
        raise DamagedCheckpointError(f"its .metadata says of {name} that it is larger than what is stored of it")
    return MetadataIndex(name, offset), StorageInfo(file, start, length)


def _known(record: Any, kind: str, state: type = dict) -> Any:
    """The state of a record of this kind."""
    if not isinstance(record, _Record) or type(record).__name__ != kind or not isinstance(record.state, state):
        raise DamagedCheckpointError(f"its .metadata says something else where a {kind} belongs")
    return record.state


def _table(value: Any) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise DamagedCheckpointError(f"its .metadata says {type(value).__name__} where a table belongs")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise DamagedCheckpointError(f"its .metadata says {type(value).__name__} where a name belongs")
    return value


def _number(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise DamagedCheckpointError("its .metadata says something else where a number belongs")
    return value


def _size(value: Any) -> torch.Size:
    """A torch.Size, which is pickled as a call with one tuple."""
    if not isinstance(value, _Record) or type(value).__name__ != "Size" or len(value.arguments) > 1:
        raise DamagedCheckpointError("its .metadata says something else where a size belongs")
    return torch.Size([_number(each) for each in (value.arguments[0] if value.arguments else ())])
