"""What HPU graphs do, without a card: the operations of a capture are noted, and a replay runs them again.

Results land in the tensors that the capture returned, as a replay on a card leaves them at their addresses. Python code
around the operations runs at capture only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from gaudi3_hpu_simulator.strictness import is_on

_Call = tuple[Any, tuple[Any, ...], dict[str, Any], list[torch.Tensor | None]]
_DYNAMIC = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)


class Recording(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the operations that run inside it."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._calls: list[_Call] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        options = kwargs or {}
        given = list(_tensors((args, options)))
        result = func(*args, **options)
        made = list(_tensors(result))
        _check(func, given, made)
        storages = {tensor.untyped_storage()._cdata for tensor in given}
        fresh = [None if tensor.untyped_storage()._cdata in storages else tensor for tensor in made]
        if func._schema.is_mutable or any(tensor is not None for tensor in fresh):  # else a view, which stays one
            self._calls.append((func, args, options, fresh))
        return result

    def replay(self) -> None:
        """Run the operations again, into the same tensors."""
        with torch._C._AutoDispatchBelowADInplaceOrView():
            for func, args, options, fresh in self._calls:
                result = func(*args, **options)
                for old, new in zip(fresh, _tensors(result), strict=True):
                    if old is not None:
                        old.copy_(new)
                if hasattr(result, "wait"):  # a collective's
                    result.wait()

    def clear(self) -> None:
        """Forget the operations, and let go of their tensors."""
        self._calls.clear()


def _tensors(tree: Any) -> Iterator[torch.Tensor]:
    return (leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor))


def _check(func: Any, given: list[torch.Tensor], made: list[torch.Tensor]) -> None:
    """Refuse what reads a card's values while they are recorded.

    docs.habana.ai, "Run Inference Using HPU Graphs", excludes operations on the CPU and flow and shapes that depend on
    data, and gives the end of the sentence.
    """
    if not any(tensor.device.type == "hpu" for tensor in given) or not is_on("graphs-read-nothing"):
        return
    if any(tag in func.tags for tag in _DYNAMIC) or any(tensor.device.type == "cpu" for tensor in made):
        raise RuntimeError(f"{func.name()} is not supported during HPU Graph capturing")
