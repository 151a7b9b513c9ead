"""Notes torch's collectives in the ring of this process, whatever the backend is.

HCCL has no hook for torch's own flight recorder, so the calls are noted where Python makes them: the functions of
`torch.distributed`, those that DTensor makes (`internals.functional_collectives`), and one note for the reductions that
DDP launches from C++ while the gradients of a step are computed. Collectives that C++ makes elsewhere, or that are
compiled into a graph, are not seen.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gaudi3_scale.hangs.ring import DTYPES, GRADIENTS, LAUNCHED, OPEN, OPERATIONS, RETURNED, Ring, current
from gaudi3_scale.internals import GROUP_NAME, GROUP_OF_NAME, functional_collectives


@dataclass(frozen=True)
class Function:
    """A function of torch's that calls a collective."""

    names: tuple[str, ...]
    """The first of them that torch has: an older name calls the newer one."""
    operation: str
    tensor: tuple[int, str] | None
    """The place and the name of the argument whose shape all ranks have alike; None where there is none."""


PUBLIC = (
    Function(("all_reduce",), "all_reduce", (0, "tensor")),
    Function(("broadcast",), "broadcast", (0, "tensor")),
    Function(("reduce",), "reduce", (0, "tensor")),
    Function(("all_gather",), "all_gather", (1, "tensor")),
    Function(("all_gather_single", "all_gather_into_tensor"), "all_gather", (1, "input_tensor")),
    Function(("gather",), "gather", (0, "tensor")),
    Function(("scatter",), "scatter", (0, "tensor")),
    Function(("reduce_scatter",), "reduce_scatter", (0, "output")),
    Function(("reduce_scatter_single", "reduce_scatter_tensor"), "reduce_scatter", (0, "output")),
    Function(("all_to_all",), "all_to_all", None),
    Function(("all_to_all_single",), "all_to_all", None),
    Function(("barrier",), "barrier", None),
)
"""Of torch.distributed."""
OF_DTENSOR = (
    Function(("all_reduce",), "all_reduce", (0, "self")),
    Function(("broadcast",), "broadcast", (0, "self")),
    Function(("all_gather_single", "all_gather_tensor"), "all_gather", (0, "self")),
    Function(("reduce_scatter_single", "reduce_scatter_tensor"), "reduce_scatter", (0, "self")),
    Function(("all_to_all_single",), "all_to_all", None),
)
"""They launch a collective and wait for it elsewhere."""
NOTED = "noted_for_hangs"
"""An attribute of a function that notes its calls."""
_WORLD = 0
"""The key of the group of all processes, which callers name by None as well."""


def install(ring: Ring) -> None:
    """Have the collectives of this process noted; once."""
    import torch.distributed as dist
    from torch.distributed import distributed_c10d

    if hasattr(dist.all_reduce, NOTED):
        return
    ring.group(_WORLD, "all", "all", range(dist.get_world_size()))
    for modules, functions, launched in (
        ((distributed_c10d, dist), PUBLIC, False),
        ((functional_collectives(),), OF_DTENSOR, True),
    ):
        for function in functions:
            name = next((each for each in function.names if hasattr(modules[0], each)), None)
            if name is None:
                continue
            noted = _noted(ring, getattr(modules[0], name), function, launched)
            for module in modules:
                setattr(module, name, noted)


def _noted(ring: Ring, original: Callable[..., Any], function: Function, launched: bool) -> Callable[..., Any]:
    import torch

    place, argument = function.tensor or (-1, "")
    operation = OPERATIONS.index(function.operation)
    group_at = list(inspect.signature(original).parameters).index("group")
    codes = {getattr(torch, name): code for code, name in enumerate(DTYPES) if hasattr(torch, name)}
    enter, leave, known = ring.enter, ring.leave, ring.known
    compiling = torch.compiler.is_compiling
    state = LAUNCHED if launched else OPEN

    @functools.wraps(original)
    def noted(*args: Any, **named: Any) -> Any:
        if compiling():
            return original(*args, **named)
        try:
            group = args[group_at] if len(args) > group_at else named.get("group")
            index = _WORLD if group is None else known(id(group))
            if index is None:
                index = _seen(ring, group)
            if place < 0:
                at = enter(operation, index, 0, (), state)
            else:
                given = args[place] if len(args) > place else named[argument]
                at = enter(operation, index, codes.get(given.dtype, 0), given.shape, state)
        except Exception:  # the call itself says what is wrong with it
            return original(*args, **named)
        result = original(*args, **named)
        if not launched:
            leave(at, RETURNED if result is None else LAUNCHED)
        return result

    setattr(noted, NOTED, True)
    return noted


def _seen(ring: Ring, group: Any) -> int:
    """The index of a group that is used for the first time, or that is named in another way than as an object."""
    import torch.distributed as dist

    found = group
    if not isinstance(group, dist.ProcessGroup):
        found = GROUP_OF_NAME.get()(GROUP_NAME.get()(group))
    key = _WORLD if found is dist.group.WORLD else id(found)
    index = ring.known(key)
    if index is None:
        name = getattr(found, "group_desc", None) or "group"
        index = ring.group(key, name, found.group_name, dist.get_process_group_ranks(found))
        weakref.finalize(found, ring.forget, key)
    return index


def watch_gradients(model: Any) -> None:
    """Note when this process has computed all gradients of a step, which DDP then reduces from C++."""
    ring = current()
    if ring is None or not hasattr(model, "require_backward_grad_sync") or model.find_unused_parameters:
        return
    trained = [each for each in model.parameters() if each.requires_grad]
    if not trained:
        return
    elements = sum(each.numel() for each in trained)
    dtype = str(trained[0].dtype).removeprefix("torch.")
    code = DTYPES.index(dtype) if dtype in DTYPES else 0

    def computed(_: Any) -> None:
        if model.require_backward_grad_sync:
            ring.enter(GRADIENTS, _WORLD, code, (elements,), LAUNCHED)

    # The backward pass ends where the forward pass began.
    trained[0].register_post_accumulate_grad_hook(computed)
