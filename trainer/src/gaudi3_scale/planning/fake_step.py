"""A step of the job on fake tensors: nothing is allocated, nothing computed, and nobody exchanges anything.

What makes the step is the job's own: the model and its loss, attention, recomputation, sharding by `integration`,
clipping, the optimizer, and the order in which Lightning's loop does these. Only what needs a device is rewritten:

* autocast on an HPU (`lowered.py`), and experts one after the other (`experts.py`);
* Habana's fused AdamW, counted with the temporaries of its formula written out for one weight at a time;
* DDP's buckets: gradients live in them, and with accumulation those of the passes that are not reduced live beside
  them;
* the optimizer of a script with split matrices, which is taken to be AdamW, one weight at a time and without clipping.

`train.mode` compile and lazy are predicted as eager: a compiler of graphs plans memory of its own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from gaudi3_scale.config import Config
from gaudi3_scale.config.auto_precision import with_precision
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.finite import gradient_norm
from gaudi3_scale.hpu.kernels import Kernel
from gaudi3_scale.integration.mesh import mesh_sizes, replicated_mesh
from gaudi3_scale.integration.sharding import shard, sharded_parts
from gaudi3_scale.integration.tensor_parallel import split_matrices
from gaudi3_scale.memory.apply import apply_recomputation
from gaudi3_scale.memory.attention import use_attention
from gaudi3_scale.memory.tracker import fake_mode, fake_twin
from gaudi3_scale.models.activation_checkpoint import around_recomputation
from gaudi3_scale.models.adamw import GaudiOptimizer, build_optimizer
from gaudi3_scale.models.blocks import repeated_blocks
from gaudi3_scale.models.build import build, frozen_dtype
from gaudi3_scale.models.objectives import batch_shape, loss_of
from gaudi3_scale.planning.account import COLLECTIVES, MemoryAccount, MemorySection
from gaudi3_scale.planning.experts import use_even_experts
from gaudi3_scale.planning.lowered import HpuAutocast
from gaudi3_scale.planning.unfused import CudaAttention
from gaudi3_scale.planning.world import fake_world

SCALARS = 64
"""Bytes that the job's module keeps on the device for the loss, the norm and whether they are finite, rounded up."""
FUSED_TEMPORARIES = 4
"""Tensors of a weight's size that AdamW's formula needs at once beside weight, gradient and moments."""


def sections(
    config: Config, micro_batch: int, world_size: int, device: str, tensor_parallel: int = 1
) -> list[MemorySection]:
    """The sections of a step that is not the first, of the first process of this many on devices of this type."""
    sharded = config.train.strategy == "habana_fsdp" and world_size > 1
    with fake_world(world_size) if sharded else nullcontext():
        return _Step(config, micro_batch, world_size, device, tensor_parallel).run()


class _Step:
    def __init__(self, config: Config, micro_batch: int, world_size: int, device: str, tensor_parallel: int) -> None:
        config = with_precision(config, device)
        self.config, self.device, self.tensor_parallel = config, device, tensor_parallel
        self.sharded = config.train.strategy == "habana_fsdp" and world_size > 1
        self.copies = world_size > 1 and not self.sharded
        self.passes = min(config.train.accumulation_steps, 2)
        model = build(config.model, device="meta", frozen=frozen_dtype(config)).train()
        own = device == "hpu" and config.memory.attention == "auto"
        use_attention(
            model, "flash" if own else config.memory.attention, "cpu", _ATTENTION if device == "hpu" else None
        )
        if device == "hpu":
            use_even_experts(model)
        self.loss = loss_of(config)
        apply_recomputation(model, self.loss, config, None, gradient_buckets=self.copies)
        self.model = model
        self.shape = batch_shape(config, micro_batch)
        self.mesh = self._mesh(world_size) if self.sharded else None
        self.account = MemoryAccount()

    def run(self) -> list[MemorySection]:
        """Two steps, of which the second is reported."""
        with ExitStack() as stack:
            holder = nn.Module()
            with fake_mode() as mode:
                holder.model = fake_twin(self.model, mode)
            if self.sharded:
                self._shard(holder)  # outside of the mode, in which a mesh of two dimensions does not know its ranks
            stack.enter_context(fake_mode(mode))
            stack.enter_context(self._kept_casts())
            self.parts = sharded_parts(holder)
            self.twin = holder.model
            self._watch(holder.model)
            self.trained = [p for p in self.twin.parameters() if p.requires_grad]
            batch = torch.empty(self.shape, dtype=torch.int64)
            stack.enter_context(self.account)
            account = self.account
            account.assign(map(_local, self.twin.parameters()), "parameters")
            account.assign(self.twin.buffers(), "buffers")
            account.track(batch)
            scalars = torch.empty(SCALARS, dtype=torch.uint8)
            account.track(scalars)
            optimizer = self._optimizer()
            self._one(batch, optimizer)
            account.restart()
            self._one(batch, optimizer)
            account.mark("end")
            gradients = sum(_bytes(_local(p.grad)) for p in self.trained if p.grad is not None)
        return [self._with_buckets(each, gradients) for each in account.sections]

    def _one(self, batch: Tensor, step: Callable[[], None]) -> None:
        buckets = self.copies and self.passes == 1
        for number in range(self.passes):
            self.account.mark("forward")
            self._reduce(number == self.passes - 1)
            with self._forward():
                value = self.loss(self.twin, batch)
            if number == 0:
                self.twin.zero_grad(set_to_none=not buckets)
            self._mark_backward(None)
            torch.autograd.backward(value)
            del value
        self._mark_gradients()
        self.account.mark("optimizer")
        if self.tensor_parallel == 1:
            gradient_norm(self.trained, self.config.train.gradient_clip)
        step()

    def _watch(self, model: nn.Module) -> None:
        """Begin a section wherever a repeated block begins, forward and backward."""
        blocks = repeated_blocks(model)
        for number, (_, block) in enumerate(blocks):
            block.register_forward_pre_hook(partial(self._before, number), with_kwargs=True)
            block.register_forward_hook(partial(self._after, number, number == len(blocks) - 1))

    def _before(self, number: int, block: nn.Module, args: Any, kwargs: Any) -> None:
        self.account.mark("forward", number)
        found = next((each for each in (*args, *kwargs.values()) if isinstance(each, Tensor)), None)
        if number == 0 and found is not None and found.requires_grad:
            found.register_hook(lambda gradient: self._mark_backward(None))  # type: ignore[no-untyped-call]

    def _after(self, number: int, last: bool, block: nn.Module, args: Any, output: Any) -> None:
        found = output if isinstance(output, Tensor) else output[0]
        if found.requires_grad:
            found.register_hook(lambda gradient: self._mark_backward(number))
        if last:
            self.account.mark("forward")

    def _mark_backward(self, number: int | None) -> None:
        self._mark_gradients()
        self.account.mark("backward", number)

    def _mark_gradients(self) -> None:
        self.account.assign((_local(p.grad) for p in self.trained if p.grad is not None), "gradients")

    def _shard(self, holder: nn.Module) -> None:
        """As the strategy does."""
        mesh: Any = self.mesh
        half = torch.bfloat16 if self._mixed else None
        if self.tensor_parallel > 1:
            split_matrices(holder, mesh["tensor_parallel"])
            mesh = mesh["data_parallel"]
        shard(holder, mesh, half, self.config.train.reshard_after_forward)

    def _mesh(self, world_size: int) -> Any:
        from torch.distributed.device_mesh import init_device_mesh

        if self.tensor_parallel > 1:
            sizes = mesh_sizes("auto", self.tensor_parallel, world_size)
            return init_device_mesh("cpu", sizes, mesh_dim_names=("data_parallel", "tensor_parallel"))
        if self.config.train.replicas > 1:
            return replicated_mesh("cpu", self.config.train.replicas, world_size)
        return init_device_mesh("cpu", (world_size,))

    def _reduce(self, last: bool) -> None:
        """As the strategy, which leaves out what is not needed before the last pass."""
        for part in self.parts if self.passes > 1 else ():
            if not self.config.train.reduce_each_micro_batch:
                part.set_requires_gradient_sync(last, recurse=False)
            else:
                part.set_requires_all_reduce(last, recurse=False)

    @property
    def _mixed(self) -> bool:
        return self.config.train.precision == "bf16-mixed"

    @contextmanager
    def _forward(self) -> Iterator[None]:
        mode: type[CudaAttention] | type[HpuAutocast] | None = None
        if self.device == "cuda":
            mode = CudaAttention
        elif self.device == "hpu" and self._mixed:
            mode = HpuAutocast
        with ExitStack() as stack:
            if mode is not None:
                stack.enter_context(around_recomputation(mode))
                stack.enter_context(mode())
            if self._mixed and self.device != "hpu":
                stack.enter_context(torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=not self.sharded))
            yield

    @contextmanager
    def _kept_casts(self) -> Iterator[None]:
        """Of weights, over all passes of a step."""
        kept = self._mixed and self.device != "hpu" and not self.sharded and self.passes > 1
        if not kept:
            yield
            return
        torch.autocast_increment_nesting()
        try:
            yield
        finally:
            torch.autocast_decrement_nesting()
            torch.clear_autocast_cache()

    def _optimizer(self) -> Callable[[], None]:
        """A function that makes the step; the state is made, and counted, in the first one."""
        train = self.config.train
        if self.device == "hpu" and not self.sharded:
            return self._fused_step
        if self.device == "hpu" or self.tensor_parallel > 1:
            groups = [[p for p in self.trained if p.ndim >= 2], [p for p in self.trained if p.ndim < 2]]
            named = [{"params": group} for group in groups]
            made = GaudiOptimizer.FusedAdamW(named, lr=train.learning_rate, use_habana=False, fused=False)
        else:
            made = build_optimizer(self.twin, train)

        def step() -> None:
            made.step()
            state = (value for each in made.state.values() for value in each.values())
            self.account.assign(map(_local, state), "optimizer_state")

        return step

    def _fused_step(self) -> None:
        if not hasattr(self, "moments"):
            self.moments = [torch.zeros_like(p) for p in self.trained for _ in range(2)]
            self.account.assign(self.moments, "optimizer_state")
        for parameter in self.trained:
            temporaries = [torch.empty_like(parameter) for _ in range(FUSED_TEMPORARIES)]
            del temporaries

    def _with_buckets(self, section: MemorySection, gradients: int) -> MemorySection:
        """With the bytes of DDP's buckets that are not those of the gradients."""
        if not self.copies or self.passes == 1:
            return section
        parts = list(section.parts)
        parts[COLLECTIVES] += gradients
        return dataclasses.replace(section, bytes=section.bytes + gradients, parts=tuple(parts))


def _attend(q: Any, k: Any, v: Any, mask: Any, dropout: float, causal: bool, scale: float | None) -> Any:
    return nn.functional.scaled_dot_product_attention(
        q, k, v, mask, dropout, causal, scale=scale, enable_gqa=q.shape[1] != k.shape[1]
    )


_ATTENTION = Kernel(_attend, "what Habana's fused kernel keeps: query, key and value as they are, and the result")


def extrapolate(fewer: list[MemorySection], more: list[MemorySection], blocks: int, wanted: int) -> list[MemorySection]:
    """The sections of a model of `wanted` equal blocks, from those of `blocks` and `blocks` + 1 of them.

    The bytes of the first block's sections, of the last two blocks', and of all outside are affine in the number of
    blocks, as each adds the same weights, gradients and kept tensors. What is between the first and the last ones is
    affine in the block, and so is never above both ends.
    """
    small, large = _keyed(fewer, blocks), _keyed(more, blocks + 1)
    if small.keys() != large.keys():
        raise ConfigError("The model's blocks are not alike, so that its memory is not predicted from a few of them.")
    found = []
    for key, section in small.items():
        other = large[key]
        parts = tuple(a + (wanted - blocks) * (b - a) for a, b in zip(section.parts, other.parts, strict=True))
        found.append(dataclasses.replace(section, bytes=sum(parts), parts=parts))
    return found


def _keyed(found: list[MemorySection], blocks: int) -> dict[tuple[Any, ...], MemorySection]:
    keyed: dict[tuple[Any, ...], MemorySection] = {}
    seen: dict[tuple[Any, ...], int] = {}
    for section in found:
        number = section.block
        if number is None:
            where: tuple[Any, ...] = (section.name, "outside")
        elif number == 0:
            where = (section.name, "first")
        elif number >= blocks - 2:
            where = (section.name, "last", blocks - number)
        else:
            continue
        seen[where] = seen.get(where, -1) + 1
        keyed[*where, seen[where]] = section
    return keyed


def _local(tensor: Any) -> Any:
    """A DTensor's own part."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def _bytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()
