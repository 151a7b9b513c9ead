"""Plain data as JSON and tensors, for files and messages from which nothing but data can come.

JSON has fewer types than Python: what it lacks is an object of one key, `TAG`, which names the type.
"""

from __future__ import annotations

import base64
import math
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import torch

TAG = "$"
DTYPES = {str(value).removeprefix("torch."): value for value in vars(torch).values() if isinstance(value, torch.dtype)}
FORMATS = {
    str(value).removeprefix("torch."): value
    for value in vars(torch).values()
    if isinstance(value, torch.layout | torch.memory_format)
}
Tensors = dict[str, torch.Tensor]
Extra = Callable[[Any], tuple[str, Any] | None]
"""The tag and the parts of an object of another type; None if it knows no such type."""
Makers = Mapping[str, Callable[[Any], Any]]
"""By tag, what makes an object of such parts."""


class NotPlainError(TypeError):
    """An object of a type that is not encoded; the message is the type's name."""


def encode(value: Any, tensors: Tensors, extra: Extra = lambda value: None) -> Any:
    """As JSON has it, with the tensors set aside in `tensors`; NotPlainError names a type that is not encoded."""
    kind = type(value)
    if value is None or kind in (bool, int, str) or (kind is float and math.isfinite(value)):
        return value
    if kind is list:
        return [encode(each, tensors, extra) for each in value]
    if kind is dict and TAG not in value and all(type(key) is str for key in value):
        return {key: encode(each, tensors, extra) for key, each in value.items()}
    if kind in (dict, OrderedDict):
        pairs = [[encode(key, tensors, extra), encode(each, tensors, extra)] for key, each in value.items()]
        return {TAG: ["dict" if kind is dict else "ordered", pairs]}
    if kind in (tuple, set, frozenset, torch.Size):
        # Sets have no order of their own, and equal states have to be equal files.
        parts = sorted(value, key=repr) if kind in (set, frozenset) else value
        return {TAG: [kind.__name__, [encode(each, tensors, extra) for each in parts]]}
    if kind in (bytes, bytearray):
        return {TAG: [kind.__name__, base64.b64encode(value).decode()]}
    if kind is complex:
        return {TAG: ["complex", [encode(value.real, tensors, extra), encode(value.imag, tensors, extra)]]}
    if kind is float:
        return {TAG: ["float", repr(value)]}
    if kind in (torch.dtype, torch.device, torch.layout, torch.memory_format):
        return {TAG: [kind.__name__, str(value).removeprefix("torch.")]}
    if kind in (torch.Tensor, torch.nn.Parameter) and value.layout is torch.strided and not value.is_quantized:
        name = str(len(tensors))
        wide = value.is_complex()
        data = torch.view_as_real(value.detach()) if wide else value.detach()
        tensors[name] = data.resolve_neg().cpu().contiguous().clone()
        return {TAG: ["parameter" if kind is torch.nn.Parameter else "tensor", [name, wide, value.requires_grad]]}
    known = extra(value)
    if known is None:
        raise NotPlainError(f"{kind.__module__}.{kind.__qualname__}")
    return {TAG: [known[0], encode(known[1], tensors, extra)]}


def decode(value: Any, tensors: Tensors, makers: Makers | None = None) -> Any:
    """What `encode` had been given; KeyError, TypeError or ValueError if it is nothing that `encode` gives."""
    makers = makers or {}
    if isinstance(value, list):
        return [decode(each, tensors, makers) for each in value]
    if not isinstance(value, dict):
        return value
    if TAG not in value:
        return {key: decode(each, tensors, makers) for key, each in value.items()}
    kind, content = value[TAG]
    if kind in makers:
        return makers[kind](decode(content, tensors, makers))
    return _MAKERS[kind](content, tensors, makers)


def _tensor(content: Any, tensors: Tensors, makers: Makers) -> torch.Tensor:
    name, wide, grad = content
    tensor = torch.view_as_complex(tensors[name]) if wide else tensors[name]
    return tensor.requires_grad_(bool(grad))


def _parts(content: Any, tensors: Tensors, makers: Makers) -> list[Any]:
    return [decode(each, tensors, makers) for each in content]


def _pairs(content: Any, tensors: Tensors, makers: Makers) -> list[tuple[Any, Any]]:
    return [(decode(key, tensors, makers), decode(each, tensors, makers)) for key, each in content]


_MAKERS: dict[str, Callable[[Any, Tensors, Makers], Any]] = {
    "dict": lambda content, tensors, makers: dict(_pairs(content, tensors, makers)),
    "ordered": lambda content, tensors, makers: OrderedDict(_pairs(content, tensors, makers)),
    "tuple": lambda content, tensors, makers: tuple(_parts(content, tensors, makers)),
    "set": lambda content, tensors, makers: set(_parts(content, tensors, makers)),
    "frozenset": lambda content, tensors, makers: frozenset(_parts(content, tensors, makers)),
    "Size": lambda content, tensors, makers: torch.Size(_parts(content, tensors, makers)),
    "bytes": lambda content, tensors, makers: base64.b64decode(content),
    "bytearray": lambda content, tensors, makers: bytearray(base64.b64decode(content)),
    "complex": lambda content, tensors, makers: complex(*_parts(content, tensors, makers)),
    "float": lambda content, tensors, makers: float(content),
    "dtype": lambda content, tensors, makers: DTYPES[content],
    "layout": lambda content, tensors, makers: FORMATS[content],
    "memory_format": lambda content, tensors, makers: FORMATS[content],
    "device": lambda content, tensors, makers: torch.device(content),
    "tensor": _tensor,
    "parameter": lambda content, tensors, makers: torch.nn.Parameter(
        _tensor([*content[:2], False], tensors, makers), bool(content[2])
    ),
}
