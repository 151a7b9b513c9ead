"""Peak memory of a training step, predicted on fake tensors: nothing is allocated and nothing computed.

Every storage that the step's operations make is counted from its first tensor to its last. Not seen, and therefore to
be left as a margin: an allocator's rounding and fragmentation, kernels' and graph compilers' workspaces, buffers of
collectives.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from gaudi3_scale.internals import (
    GROUPED_PRODUCT,
    FakeTensor,
    FakeTensorMode,
    TorchDispatchMode,
    storage_key,
    tree_leaves,
)
from gaudi3_scale.models.one_sequence import one_sequence_per_row

Loss = Callable[..., Tensor]
"""Called as loss(model, *inputs); gives a scalar."""


@dataclass(frozen=True)
class StepMemory:
    """Bytes of one training step that is not the first."""

    peak: int
    forward: int
    """Most bytes alive at an instant of the forward passes; likewise the next two."""
    backward: int
    optimizer: int
    parameters: int
    buffers: int
    gradients: int
    optimizer_state: int
    activations: int
    """What the forward pass left for backward: alive at its end, less parameters, buffers, state and gradients."""

    @property
    def static(self) -> int:
        """Bytes that do not depend on the batch."""
        return self.parameters + self.buffers + self.gradients + self.optimizer_state


class StorageTracker(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of all storages that are made, resized and freed while it is entered, on any device."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.live = 0
        self.peak = 0
        self._sizes: dict[int, int] = {}
        self._restore = ExitStack()
        self._grouped = GROUPED_PRODUCT.get().default

    def track(self, tensor: Tensor) -> None:
        """Count a tensor's storage, once."""
        storage = tensor.untyped_storage()
        key = storage_key(storage)
        if key not in self._sizes:
            self._sizes[key] = 0
            self._change(key, storage.nbytes())
            weakref.finalize(storage, self._free, key).atexit = False

    def reset_peak(self) -> int:
        """The peak since the last call; counting starts again from what is alive."""
        peak, self.peak = self.peak, self.live
        return peak

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operation and count what it made."""
        if any(issubclass(kind, DTensor) for kind in types):
            return NotImplemented  # it comes back as operations on the local shards
        if func is self._grouped and isinstance(args[0], FakeTensor):
            result: Any = _grouped_product(*args[:3])
        else:
            result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor):
                self.track(leaf)
        return result

    def __enter__(self) -> StorageTracker:
        """Also watch resizes, by which FSDP frees what it gathered without any operation."""
        original = torch.UntypedStorage.resize_

        def resize(storage: torch.UntypedStorage, size: int) -> Any:
            result = original(storage, size)
            if (key := storage_key(storage)) in self._sizes:
                self._change(key, storage.nbytes())
            return result

        torch.UntypedStorage.resize_ = resize  # type: ignore[method-assign,assignment]
        self._restore.callback(setattr, torch.UntypedStorage, "resize_", original)
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        self._restore.close()
        super().__exit__(*error)  # type: ignore[no-untyped-call]

    def _change(self, key: int, size: int) -> None:
        self.live += size - self._sizes[key]
        self._sizes[key] = size
        self.peak = max(self.peak, self.live)

    def _free(self, key: int) -> None:
        self.live -= self._sizes.pop(key)


def _grouped_product(a: Tensor, b: Tensor, ends: Tensor) -> Tensor:
    """Shape of a grouped product, as experts use it; torch's own rule for fake tensors knows bfloat16 only.

    (S, K) x (G, K, N) = (S, N), and in backward, where the rows of both are grouped, (M, S) x (S, N) = (G, M, N); the
    G groups end at `ends`.
    """
    return a.new_empty((len(ends), a.shape[0], b.shape[1]) if b.ndim == 2 else (a.shape[0], b.shape[2]))


def adamw(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """The optimizer assumed unless another is given: two states per parameter, updated in place."""
    return torch.optim.AdamW(parameters, fused=True)


def predict_step(
    model: nn.Module,
    loss: Loss,
    inputs: Sequence[Tensor],
    *,
    optimizer: Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer] | None = adamw,
    precision: Callable[[], AbstractContextManager[Any]] = nullcontext,
    accumulation: int = 1,
    gradient_buckets: bool = False,
) -> StepMemory:
    """Predict a step of `model` as it is configured now (its checkpointing, attention, dtypes); it is not touched.

    Args:
        model: on any device, `meta` included.
        loss: its loss on `inputs`.
        inputs: shapes and dtypes of a micro-batch; values do not matter, so `meta` tensors will do.
        optimizer: makes it from the parameters; None = no optimizer step.
        precision: context of the forward pass, such as autocast for `cpu`.
        accumulation: forward passes per step; from two on, gradients are alive during all of them.
        gradient_buckets: gradients live in buckets that are never freed, as under DDP with views.

    As in Lightning's loop, the gradients of the step before are freed after the first forward pass, not before it. As
    with `GaudiMixedPrecision`, weights cast by autocast are kept until the step's end if there is more than one pass.
    """
    tracker = StorageTracker()
    with fake_mode() as mode:
        twin = fake_twin(model, mode)
        batch = [torch.empty(each.shape, dtype=each.dtype) for each in inputs]
        parameters = [p for p in twin.parameters() if p.requires_grad]
        stepper = optimizer(parameters) if optimizer else None
        with tracker:
            for tensor in (*twin.parameters(), *twin.buffers(), *batch):
                tracker.track(tensor)
            for parameter in parameters:  # what the step before left
                parameter.grad = torch.zeros_like(parameter)
            if stepper is not None:
                stepper.step()
            with _kept_casts() if accumulation > 1 else nullcontext():
                peaks, activations = _step(
                    tracker, twin, loss, batch, stepper, precision, min(accumulation, 2), not gradient_buckets
                )
            sizes = {
                "parameters": _bytes(twin.parameters()),
                "buffers": _bytes(twin.buffers()),
                "gradients": _bytes(p.grad for p in parameters if p.grad is not None),
                "optimizer_state": _bytes(tree_leaves(list(stepper.state.values()))) if stepper else 0,
            }
    return StepMemory(peak=max(peaks.values()), **peaks, **sizes, activations=activations - sum(sizes.values()))


def _step(
    tracker: StorageTracker,
    model: nn.Module,
    loss: Loss,
    batch: list[Tensor],
    optimizer: torch.optim.Optimizer | None,
    precision: Callable[[], AbstractContextManager[Any]],
    accumulation: int,
    set_to_none: bool,
) -> tuple[dict[str, int], int]:
    """Peaks of the phases, and what was alive at the end of the last forward pass."""
    peaks = {"forward": 0, "backward": 0, "optimizer": 0}
    alive = 0
    tracker.reset_peak()
    for number in range(accumulation):
        with precision():
            value = loss(model, *batch)
        alive = tracker.live
        peaks["forward"] = max(peaks["forward"], tracker.reset_peak())
        if number == 0:
            model.zero_grad(set_to_none=set_to_none)
        value.backward()  # type: ignore[no-untyped-call]
        del value
        peaks["backward"] = max(peaks["backward"], tracker.reset_peak())
    if optimizer is not None:
        optimizer.step()
    peaks["optimizer"] = tracker.reset_peak()
    return peaks, alive


@contextmanager
def _kept_casts() -> Iterator[None]:
    """Autocast forgets the weights it cast when its depth is back at zero."""
    torch.autocast_increment_nesting()
    try:
        yield
    finally:
        torch.autocast_decrement_nesting()
        torch.clear_autocast_cache()


@contextmanager
def fake_mode(again: FakeTensorMode | None = None) -> Iterator[FakeTensorMode]:
    """Tensors made within have shapes and no data; plain ones that a module holds as attributes may be mixed in.

    `again` is a mode that was left, and goes on with the tensors made in it.
    """
    with one_sequence_per_row(), again or FakeTensorMode(allow_non_fake_inputs=True) as mode:
        yield mode


def fake_twin(model: nn.Module, mode: FakeTensorMode) -> nn.Module:
    """A copy of the model with fake parameters and buffers on `cpu`, its configuration and hooks copied for real."""
    memo: dict[int, Any] = {}
    for parameter in model.parameters():
        data = torch.empty_strided(parameter.shape, parameter.stride(), dtype=parameter.dtype, device="cpu")
        memo[id(parameter)] = nn.Parameter(data, requires_grad=parameter.requires_grad)
    for buffer in model.buffers():
        memo[id(buffer)] = torch.empty_strided(buffer.shape, buffer.stride(), dtype=buffer.dtype, device="cpu")
    twin: nn.Module = copy.deepcopy(model, memo)
    return twin


def _bytes(tensors: Iterable[Any]) -> int:
    """Bytes of the distinct storages."""
    storages = [t.untyped_storage() for t in tensors if isinstance(t, Tensor)]
    return sum({storage_key(each): each.nbytes() for each in storages}.values())
