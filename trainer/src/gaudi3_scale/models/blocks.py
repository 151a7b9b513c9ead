"""The repeated blocks of a model: what is compiled, sharding wraps and recomputation drops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn


def repeated_blocks(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """Qualified name and module of each transformer block, in the order of the model; empty where nothing repeats.

    The blocks are the items of the longest nn.ModuleList whose items are all of one class, and of any other list of
    that class (an encoder's and a decoder's). A list within a block, such as its experts, is part of that block.
    """
    lists = list(_outermost(model, ""))
    if not lists:
        return []
    longest = max(lists, key=lambda named: len(named[1]))
    kind = type(longest[1][0])
    return [
        (f"{name}.{index}" if name else index, block)
        for name, items in lists
        if type(items[0]) is kind
        for index, block in items.named_children()
    ]


def compile_blocks(model: nn.Module, backend: str | Callable[..., Any]) -> int:
    """Compile each block by itself, in place: blocks of one shape share a graph. Returns the number of blocks.

    To be called after activation checkpointing, which becomes part of the graph, and before sharding, whose hooks run
    around it. The names of parameters stay. A model in which nothing repeats is compiled as a whole (0 blocks).
    """
    blocks = repeated_blocks(model)
    for part in [block for _, block in blocks] or [model]:
        part.compile(backend=backend)
    return len(blocks)


def _outermost(module: nn.Module, name: str) -> list[tuple[str, nn.ModuleList]]:
    """Lists of at least two modules of one class that are in no other such list."""
    if isinstance(module, nn.ModuleList) and len(module) > 1 and len({type(item) for item in module}) == 1:
        return [(name, module)]
    children = module.named_children()
    return [found for child, item in children for found in _outermost(item, f"{name}.{child}" if name else child)]
