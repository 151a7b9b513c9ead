"""`state.pt` of checkpoints before format 3: a pickle, read without torch's unpickler and without running anything.

Those that a job of an earlier version left can be gone on from, with `checkpoint.adopt`. Tensors are made of the bytes
in the archive, within their bounds; of all else only plain data is let through.
"""

from __future__ import annotations

import math
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import torch

from gaudi3_scale.checkpoint.manifest import DamagedCheckpointError

LIMIT = 2**31
"""Bytes of a state.pt; an honest one has a few megabytes."""
STORAGES = {
    "FloatStorage": torch.float32,
    "DoubleStorage": torch.float64,
    "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
    "LongStorage": torch.int64,
    "IntStorage": torch.int32,
    "ShortStorage": torch.int16,
    "CharStorage": torch.int8,
    "ByteStorage": torch.uint8,
    "BoolStorage": torch.bool,
}


def read_old_state(path: Path) -> dict[str, Any]:
    """The state in a file that `torch.save` wrote; DamagedCheckpointError if anything in it is no plain data."""
    try:
        with zipfile.ZipFile(path) as archive:
            if any(e.compress_type != zipfile.ZIP_STORED or e.file_size > LIMIT for e in archive.infolist()):
                raise DamagedCheckpointError(f"{path.name} is compressed or too large, which no checkpoint is")
            (name,) = [each for each in archive.namelist() if each.endswith("/data.pkl")]
            with archive.open(name) as file:
                state = _Unpickler(file, archive, name.removesuffix("data.pkl")).load()
    except DamagedCheckpointError:
        raise
    except Exception as error:  # a broken pickle raises almost anything
        raise DamagedCheckpointError(f"{path.name} cannot be read ({type(error).__name__})") from None
    if not isinstance(state, dict):
        raise DamagedCheckpointError(f"{path.name} holds no state")
    return state


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: Any, archive: zipfile.ZipFile, folder: str) -> None:
        super().__init__(file)
        self._archive = archive
        self._folder = folder

    def find_class(self, module: str, name: str) -> Any:
        """Types of plain data that cannot be changed, and functions of this module."""
        if module == "torch" and isinstance(getattr(torch, name, None), torch.dtype):
            return getattr(torch, name)
        if module == "torch" and name in STORAGES:
            return STORAGES[name]
        known = {
            ("torch._utils", "_rebuild_tensor_v2"): lambda *parts: _tensor(*parts),
            ("torch._utils", "_rebuild_parameter"): lambda data, grad, hooks: torch.nn.Parameter(data, bool(grad)),
            ("torch", "Size"): torch.Size,
            ("torch", "device"): torch.device,
            ("collections", "OrderedDict"): OrderedDict,
            ("builtins", "set"): set,
            ("__builtin__", "set"): set,
            ("builtins", "complex"): complex,
            ("__builtin__", "complex"): complex,
            ("_codecs", "encode"): lambda text, encoding: str(text).encode("latin1"),
        }
        if (module, name) not in known:
            raise DamagedCheckpointError(f"its state refers to {module}.{name}, which is no plain data")
        return known[module, name]

    def persistent_load(self, pid: Any) -> torch.Tensor:
        """The bytes of a storage, as a tensor of one dimension."""
        kind, dtype, key, _, count = pid
        if kind != "storage" or not isinstance(dtype, torch.dtype) or not str(key).isdigit():
            raise DamagedCheckpointError("its state refers to something else where a tensor's bytes belong")
        data = self._archive.read(f"{self._folder}data/{key}")
        if len(data) != int(count) * dtype.itemsize:
            raise DamagedCheckpointError("its state has tensors of other sizes than its bytes")
        return torch.frombuffer(bytearray(data), dtype=dtype) if data else torch.empty(0, dtype=dtype)


def _tensor(storage: Any, offset: Any, size: Any, stride: Any, grad: Any, *_: Any) -> torch.Tensor:
    size, stride = [int(each) for each in size], [int(each) for each in stride]
    if min([int(offset), *size, *stride]) < 0 or len(size) != len(stride):
        raise DamagedCheckpointError("its state has a tensor of a negative size")
    last = int(offset) + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if math.prod(size) and last >= storage.numel():
        raise DamagedCheckpointError("its state has a tensor that ends outside of its bytes")
    return storage.as_strided(size, stride, int(offset)).clone().requires_grad_(bool(grad))  # type: ignore[no-any-return]
