"""What a checkpoint has besides model and optimizer, in one safetensors file: its tensors, and the rest as JSON.

JSON has fewer types than a state: what it lacks is an object of one key, `TAG`, which names the type.
"""

from __future__ import annotations

import base64
import json
import math
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from gaudi3_scale.checkpoint.manifest import DamagedCheckpointError
from gaudi3_scale.errors import TrainerError

TAG = "$"
KEY = "state"
"""The only entry of the file's metadata: of more than one the order would differ from node to node."""
DTYPES = {str(value).removeprefix("torch."): value for value in vars(torch).values() if isinstance(value, torch.dtype)}


def pack(state: dict[str, Any]) -> bytes:
    """The file's content, equal for equal states; TrainerError names a type that is not stored."""
    from safetensors.torch import save

    tensors: dict[str, torch.Tensor] = {}
    text = json.dumps(_plain(state, tensors), separators=(",", ":"), allow_nan=False)
    return save(tensors, {KEY: text})


def unpack(path: Path) -> dict[str, Any]:
    """The state in a file; DamagedCheckpointError if it is none. Nothing but data can come out of it."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
            state = _rich(json.loads((file.metadata() or {})[KEY]), tensors)
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, RecursionError, RuntimeError) as error:
        raise DamagedCheckpointError(f"{path.name} cannot be read ({type(error).__name__})") from None
    if not isinstance(state, dict):
        raise DamagedCheckpointError(f"{path.name} holds no state")
    return state


def _plain(value: Any, tensors: dict[str, torch.Tensor]) -> Any:
    """As JSON has it, with the tensors set aside."""
    kind = type(value)
    if value is None or kind in (bool, int, str) or (kind is float and math.isfinite(value)):
        return value
    if kind is list:
        return [_plain(each, tensors) for each in value]
    if kind is dict and TAG not in value and all(type(key) is str for key in value):
        return {key: _plain(each, tensors) for key, each in value.items()}
    if kind in (dict, OrderedDict):
        pairs = [[_plain(key, tensors), _plain(each, tensors)] for key, each in value.items()]
        return {TAG: ["dict" if kind is dict else "ordered", pairs]}
    if kind in (tuple, set, frozenset, torch.Size):
        # Sets have no order of their own, and equal states have to be equal files.
        parts = sorted(value, key=repr) if kind in (set, frozenset) else value
        return {TAG: [kind.__name__, [_plain(each, tensors) for each in parts]]}
    if kind in (bytes, bytearray):
        return {TAG: [kind.__name__, base64.b64encode(value).decode()]}
    if kind is complex:
        return {TAG: ["complex", [_plain(value.real, tensors), _plain(value.imag, tensors)]]}
    if kind is float:
        return {TAG: ["float", repr(value)]}
    if kind in (torch.dtype, torch.device):
        return {TAG: [kind.__name__, str(value).removeprefix("torch.")]}
    if kind in (torch.Tensor, torch.nn.Parameter) and value.layout is torch.strided and not value.is_quantized:
        name = str(len(tensors))
        wide = value.is_complex()
        data = torch.view_as_real(value.detach()) if wide else value.detach()
        tensors[name] = data.resolve_neg().cpu().contiguous().clone()
        return {TAG: ["parameter" if kind is torch.nn.Parameter else "tensor", [name, wide, value.requires_grad]]}
    raise TrainerError(
        f"The state to be saved holds an object of type {kind.__module__}.{kind.__qualname__}, which is not read from "
        "a checkpoint for safety: let the state_dict of your loaders, callbacks and schedulers have numbers, strings, "
        "tensors, lists and dictionaries only."
    )


def _rich(value: Any, tensors: dict[str, torch.Tensor]) -> Any:
    """What `_plain` had been given."""
    if isinstance(value, list):
        return [_rich(each, tensors) for each in value]
    if not isinstance(value, dict):
        return value
    if TAG not in value:
        return {key: _rich(each, tensors) for key, each in value.items()}
    kind, content = value[TAG]
    return _MAKERS[kind](content, tensors)


def _tensor(content: Any, tensors: dict[str, torch.Tensor]) -> torch.Tensor:
    name, wide, grad = content
    tensor = torch.view_as_complex(tensors[name]) if wide else tensors[name]
    return tensor.requires_grad_(bool(grad))


def _parts(content: Any, tensors: dict[str, torch.Tensor]) -> list[Any]:
    return [_rich(each, tensors) for each in content]


def _pairs(content: Any, tensors: dict[str, torch.Tensor]) -> list[tuple[Any, Any]]:
    return [(_rich(key, tensors), _rich(each, tensors)) for key, each in content]


_MAKERS: dict[str, Callable[[Any, dict[str, torch.Tensor]], Any]] = {
    "dict": lambda content, tensors: dict(_pairs(content, tensors)),
    "ordered": lambda content, tensors: OrderedDict(_pairs(content, tensors)),
    "tuple": lambda content, tensors: tuple(_parts(content, tensors)),
    "set": lambda content, tensors: set(_parts(content, tensors)),
    "frozenset": lambda content, tensors: frozenset(_parts(content, tensors)),
    "Size": lambda content, tensors: torch.Size(_parts(content, tensors)),
    "bytes": lambda content, tensors: base64.b64decode(content),
    "bytearray": lambda content, tensors: bytearray(base64.b64decode(content)),
    "complex": lambda content, tensors: complex(*_parts(content, tensors)),
    "float": lambda content, tensors: float(content),
    "dtype": lambda content, tensors: DTYPES[content],
    "device": lambda content, tensors: torch.device(content),
    "tensor": _tensor,
    "parameter": lambda content, tensors: torch.nn.Parameter(_tensor([*content[:2], False], tensors), bool(content[2])),
}
