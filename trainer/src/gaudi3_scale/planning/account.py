"""What a step's live bytes are for, and the highest they come to in each of its sections."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gaudi3_scale.internals import storage_key, tree_leaves
from gaudi3_scale.memory.tracker import StorageTracker

PARTS = ("parameters", "buffers", "optimizer_state", "gradients", "collectives", "activations")
"""What a storage is for. Collectives: weights gathered from other processes, and buffers of gradients on their way."""
COLLECTIVES = PARTS.index("collectives")
OTHER = PARTS.index("activations")
NAMESPACES = ("c10d", "_c10d_functional", "fsdp")
"""Of operations whose operands are buffers of collectives."""


@dataclass(frozen=True)
class MemorySection:
    """The highest point of a stretch of a step."""

    name: str
    """forward, backward or optimizer."""
    block: int | None
    """Which repeated block begins it; None outside of them."""
    bytes: int
    parts: tuple[int, ...]
    """Bytes by what they are for, as in `PARTS`, when the highest point was reached."""


class MemoryAccount(StorageTracker):  # type: ignore[no-untyped-call]
    """Counts live bytes by what they are for; `mark` ends a section and begins the next one."""

    def __init__(self) -> None:
        super().__init__()
        self.sections: list[MemorySection] = []
        self._by = [0] * len(PARTS)
        self._at_peak = tuple(self._by)
        self._part: dict[int, int] = {}
        self._named: tuple[str, int | None] = ("forward", None)
        self._making = False

    def track(self, tensor: Tensor) -> None:
        """Count a tensor's storage, once."""
        storage = tensor.untyped_storage()
        key = storage_key(storage)
        if key not in self._sizes:
            self._sizes[key] = 0
            self._part[key] = OTHER
            self._making = True
            self._change(key, storage.nbytes())
            self._making = False
            weakref.finalize(storage, self._free, key).atexit = False

    def assign(self, tensors: Iterable[Any], part: str) -> None:
        """Say what tensors are for; those that are not counted yet are from now on."""
        to = PARTS.index(part)
        for tensor in tensors:
            if isinstance(tensor, Tensor):
                self.track(tensor)
                self._assign(storage_key(tensor.untyped_storage()), to)

    def mark(self, name: str, block: int | None = None) -> None:
        """Begin a section; the first call of a step ends whatever was before it."""
        was, number = self._named
        self.sections.append(MemorySection(was, number, self.peak, self._at_peak))
        self._named = name, block
        self.peak, self._at_peak = self.live, tuple(self._by)

    def restart(self) -> None:
        """Forget the sections so far."""
        self.mark("forward")
        self.sections.clear()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Also tell buffers of collectives from other tensors, by the operations that use them."""
        if func.namespace == "_c10d_functional" and func.name().startswith("_c10d_functional::wait_tensor"):
            # The tensor that was waited for, where torch's rule for fake tensors makes another one.
            return torch.ops.aten.alias.default(args[0])
        result = super().__torch_dispatch__(func, types, args, kwargs)
        if result is not NotImplemented and func.namespace in NAMESPACES:
            for leaf in tree_leaves((args, kwargs, result)):
                if isinstance(leaf, Tensor):
                    key = storage_key(leaf.untyped_storage())
                    if self._part.get(key) == OTHER:
                        self._assign(key, COLLECTIVES)
        return result

    def _assign(self, key: int, to: int) -> None:
        was = self._part.get(key)
        if was is not None and was != to:
            self._by[was] -= self._sizes[key]
            self._by[to] += self._sizes[key]
            self._part[key] = to

    def _change(self, key: int, size: int) -> None:
        if not self._making and self._sizes[key] == 0 and self._part[key] == OTHER:
            self._part[key] = COLLECTIVES  # FSDP gives a storage that it emptied its bytes back: gathered weights
        self._by[self._part[key]] += size - self._sizes[key]
        self.live += size - self._sizes[key]
        self._sizes[key] = size
        if self.live > self.peak:
            self.peak, self._at_peak = self.live, tuple(self._by)

    def _free(self, key: int) -> None:
        size = self._sizes.pop(key)
        self._by[self._part.pop(key)] -= size
        self.live -= size
