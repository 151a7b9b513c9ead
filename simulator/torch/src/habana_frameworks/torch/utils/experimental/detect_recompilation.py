"""Shapes of a data set, and the recompilations of a model, of which there are none to see here.

Signatures: [bridge] 1.19, `utils/experimental/detect_recompilation.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from gaudi3_hpu_simulator.errors import refuse


def get_shape(item: Any) -> Any:
    """The shapes of the tensors in lists and dicts, as something that can be hashed."""
    if isinstance(item, torch.Tensor):
        return tuple(item.shape)
    if isinstance(item, (list, tuple)):
        return tuple(get_shape(part) for part in item)
    if isinstance(item, dict):
        return tuple((get_shape(name), get_shape(part)) for name, part in item.items())
    return hash(item)


def data_dynamicity(dl: Iterable[Any]) -> dict[Any, int]:
    """How often each shape comes; printed, too."""
    assert not torch.distributed.is_initialized(), "Look at the data in one process, without torch.distributed."
    seen: dict[Any, int] = {}
    for batch in dl:
        shape = get_shape(batch)
        seen[shape] = seen.get(shape, 0) + 1
    for shape, count in sorted(seen.items(), key=lambda item: -item[1]):
        print(f"{count} x {shape}")
    print(f"{len(seen)} different shapes")
    return seen


def const_shape_dataloader(dl: Iterable[Any], maxlen: int) -> Any:
    """At most `maxlen` batches, all of the shape that first comes that often."""
    by_shape: dict[Any, list[Any]] = {}
    found: list[Any] = []
    for batch in dl:
        found = by_shape.setdefault(get_shape(batch), [])
        found.append(batch)
        if len(found) >= maxlen:
            break
    else:
        found = max(by_shape.values(), key=len, default=[])
    return torch.utils.data.DataLoader(found, batch_size=None, collate_fn=None)  # type: ignore[arg-type]


def detect_recompilation_auto_model(
    model: torch.nn.Module, mdlname: str = "Net", waittime: float = 1, csv_out: str = "out"
) -> torch.nn.Module:
    """Count the graphs that each module compiles: refused, because none is."""
    raise refuse("recompilations to detect, because nothing is compiled", "leave the detection out, or run on hardware")
