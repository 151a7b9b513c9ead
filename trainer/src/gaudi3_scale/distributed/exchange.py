"""Objects from process to process: as data, never as pickles, so that what comes over the network runs nothing.

torch's `all_gather_object` unpickles whatever a peer sends, which runs what the peer likes. Here an object travels as
JSON and tensors. Besides plain data it may be a path, one of the dataclasses and enumerations that are marked with
`record`, an OSError, or an error of this package.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TypeVar

from gaudi3_scale.errors import TrainerError

if TYPE_CHECKING:
    import torch

    from gaudi3_scale.codec import Makers

T = TypeVar("T")
LIMIT = 2**30
"""Bytes of one process's message; a larger one is not asked for."""
_records: dict[str, type] = {}


def record(kind: type[T]) -> type[T]:
    """A dataclass, or an enumeration, whose objects processes may send each other."""
    _records[kind.__name__] = kind
    return kind


def all_gather(value: T, group: Any) -> list[T]:
    """The value of every rank of a gloo group, by rank. Collective; TrainerError on all ranks if one cannot be sent."""
    import torch
    import torch.distributed as dist

    message = bytearray(dumps(value))
    lengths = _lengths(len(message), group)
    sent = _padded(message, max(lengths))
    received = [torch.empty_like(sent) for _ in lengths]
    dist.all_gather(received, sent, group=group)
    return [_loads(each, length) for each, length in zip(received, lengths, strict=True)]


def gather(value: T, group: Any, at: int = 0) -> list[T] | None:
    """The value of every rank of a gloo group at the rank `at` of it, None at the others. Collective."""
    import torch
    import torch.distributed as dist

    message = bytearray(dumps(value))
    lengths = _lengths(len(message), group)
    sent = _padded(message, max(lengths))
    here = dist.get_rank(group) == at
    received = [torch.empty_like(sent) for _ in lengths] if here else None
    dist.gather(sent, received, dst=_global(at, group), group=group)
    if received is None:
        return None
    return [_loads(each, length) for each, length in zip(received, lengths, strict=True)]


def scatter(values: Sequence[T] | None, group: Any, source: int = 0) -> T:
    """This rank's of the values that the rank `source` of a gloo group gives, one for each rank. Collective."""
    import torch
    import torch.distributed as dist

    messages = None if values is None else [bytearray(dumps(each)) for each in values]
    length = torch.zeros(dist.get_world_size(group), dtype=torch.int64)
    if messages is not None:
        length.copy_(torch.tensor([len(each) for each in messages]))
    dist.broadcast(length, src=_global(source, group), group=group)
    lengths = _checked([int(each) for each in length])
    received = torch.empty(max(lengths), dtype=torch.uint8)
    sent = None if messages is None else [_padded(each, max(lengths)) for each in messages]
    dist.scatter(received, sent, src=_global(source, group), group=group)
    value: T = _loads(received, lengths[dist.get_rank(group)])
    return value


def broadcast(value: T, source: int = 0, group: Any = None, device: Any = "cpu") -> T:
    """The value of the rank `source`, counted as in the whole job. Collective; `device` is one that the group takes."""
    import torch
    import torch.distributed as dist

    sends = dist.get_rank() == source
    message = bytearray(dumps(value)) if sends else bytearray()
    length = torch.tensor([len(message)], device=device)
    dist.broadcast(length, src=source, group=group)
    size = _checked([int(length)])[0]
    sent = _padded(message, size).to(device) if sends else torch.empty(size, dtype=torch.uint8, device=device)
    dist.broadcast(sent, src=source, group=group)
    received: T = _loads(sent.cpu(), size)
    return received


def _lengths(mine: int, group: Any) -> list[int]:
    """How long everyone's message is, by rank. Collective."""
    import torch
    import torch.distributed as dist

    size = torch.tensor([mine])
    sizes = [torch.zeros_like(size) for _ in range(dist.get_world_size(group))]
    dist.all_gather(sizes, size, group=group)
    return _checked([int(each) for each in sizes])


def _checked(lengths: list[int]) -> list[int]:
    if not all(0 < length <= LIMIT for length in lengths):
        raise TrainerError(_strange(f"a message of {max(lengths, key=abs)} bytes"))
    return lengths


def _padded(message: bytearray, length: int) -> torch.Tensor:
    import torch

    message.extend(bytes(length - len(message)))
    return torch.frombuffer(message, dtype=torch.uint8)


def _loads(received: torch.Tensor, length: int) -> Any:
    return loads(received[:length].numpy().tobytes())


def _global(rank: int, group: Any) -> int:
    """The number in the whole job of a rank of a group."""
    import torch.distributed as dist

    return rank if group is None else dist.get_global_rank(group, rank)


def done_by_all(gather: Callable[[Any], list[Any]], action: Callable[[], T]) -> list[T]:
    """Every rank's result; if anyone fails, everyone fails with the error of the lowest rank that did. Collective."""
    result, failure = None, None
    try:
        result = action()
    except TrainerError as error:
        failure = error
    outcomes = gather((result, failure))
    for _, theirs in outcomes:
        if theirs is not None:
            raise theirs
    return [theirs for theirs, _ in outcomes]


def dumps(value: Any) -> bytes:
    """The length of the JSON (8 bytes, big-endian), the JSON, and the tensors in the format of safetensors."""
    from safetensors.torch import save

    from gaudi3_scale.codec import NotPlainError, Tensors, encode

    tensors: Tensors = {}
    try:
        plain = encode(value, tensors, _parts)
    except NotPlainError as error:
        tensors.clear()
        refusal = f"An object of type {error} was to be sent to other processes, which take plain data: report it."
        plain = encode({"refused": refusal}, tensors)
    else:
        plain = {"value": plain}
    text = json.dumps(plain, separators=(",", ":"), allow_nan=False).encode()
    return len(text).to_bytes(8, "big") + text + (save(tensors) if tensors else b"")


def loads(message: bytes) -> Any:
    """What `dumps` had been given; TrainerError if it is nothing of the kind, or could not be sent."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    from gaudi3_scale.codec import decode

    try:
        end = 8 + int.from_bytes(message[:8], "big")
        told: Any = json.loads(message[8:end])
        tensors = load(message[end:]) if len(message) > end else {}
        if "refused" not in told:
            return decode(told["value"], tensors, _makers())
        refusal = str(told["refused"])
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError, RuntimeError, OverflowError) as error:
        raise TrainerError(_strange(f"a message that is no data of this job ({type(error).__name__})")) from None
    raise TrainerError(refusal)


def _strange(what: str) -> str:
    return (
        f"A process of the job sent {what}: run the same gaudi3-scale on all nodes, and let nobody else reach the "
        "ports of the cluster's network."
    )


def _parts(value: Any) -> tuple[str, Any] | None:
    """The name and the parts of an object that is more than plain data."""
    kind = type(value)
    if _records.get(kind.__name__) is kind:
        if isinstance(value, Enum):
            return "record", [kind.__name__, [value.value]]
        return "record", [
            kind.__name__,
            [getattr(value, field.name) for field in dataclasses.fields(value) if field.init],
        ]
    if isinstance(value, TrainerError):
        return "error", [kind.__name__, str(value)]
    if isinstance(value, OSError):
        return "os-error", [value.errno, value.strerror or str(value)]
    if isinstance(value, PurePath):
        return "path", str(value)
    return None


def _makers() -> Makers:
    return {"record": _record, "error": _error, "os-error": lambda parts: OSError(*parts), "path": Path}


def _record(parts: Any) -> Any:
    name, values = parts
    return _records[name](*values)


def _error(parts: Any) -> TrainerError:
    """Of its own class, as its exit code matters, if this process knows that."""
    name, words = parts
    classes = [TrainerError]
    for kind in classes:
        classes += kind.__subclasses__()
    return next((kind for kind in classes if kind.__name__ == name), TrainerError)(str(words))
