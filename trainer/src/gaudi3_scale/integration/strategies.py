"""Strategies with nothing left for Lightning to guess: device, process-group backend, precision, signals.

What is ours is in mixins, because Lightning exists twice: the classes of `lightning.pytorch` are not those of
`pytorch_lightning`, and `lightning_variants` puts the mixins over both.
"""

from __future__ import annotations

import atexit
import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from lightning.pytorch.strategies import DDPStrategy, ModelParallelStrategy, SingleDeviceStrategy

from gaudi3_scale import own_script
from gaudi3_scale.distributed.exchange import broadcast
from gaudi3_scale.distributed.process_group import fresh_store
from gaudi3_scale.distributed.replicas import check_replicas
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.hangs import ring
from gaudi3_scale.hangs.counter import watch_gradients
from gaudi3_scale.hangs.start import begin, end_of
from gaudi3_scale.hpu.device import Device, check_all_reduce, take
from gaudi3_scale.hpu.selfcheck import check_numbers_once
from gaudi3_scale.integration.mesh import mesh_sizes, replicated_mesh
from gaudi3_scale.integration.sharding import shard, sharded_parts
from gaudi3_scale.integration.tensor_parallel import split_matrices
from gaudi3_scale.internals import group_of, name_backend, set_sizes, without_signals
from gaudi3_scale.precision import PRECISIONS, GaudiMixedPrecision, lightnings, refusal
from gaudi3_scale.secret import prove
from gaudi3_scale.throughput import step_clock

T = TypeVar("T")
TIMEOUT = timedelta(minutes=30)
"""Of a group where none is given: gloo's, as torch documents it."""


def _then_boundary(name: str, phase: int | None = None, over: Callable[[], None] | None = None) -> Any:
    """The strategy's own method, after which a lazy device runs what was collected, and a phase of the step begins.

    `over` is called at once when it returns.
    """

    def method(self: GaudiStrategy, *arguments: Any, **named: Any) -> Any:
        result = getattr(super(GaudiStrategy, self), name)(*arguments, **named)
        if over is not None:
            over()
        self._step_boundary()
        if phase is not None:
            ring.mark(phase)
        return result

    return method


def _phase(name: str, phase: int) -> Any:
    """The strategy's own method, with which a phase of the step begins."""

    def method(self: GaudiStrategy, *arguments: Any, **named: Any) -> Any:
        ring.mark(phase)
        return getattr(super(GaudiStrategy, self), name)(*arguments, **named)

    return method


class GaudiStrategy:
    """What all strategies here share; comes before Lightning's class."""

    strategy_name: str
    gaudi_device: Device | None = None
    """Of this process, once the strategy is set up."""
    plain_batches: bool = False
    """Are batches tensors, moved as they are? Else the module is asked, whose three hooks cost more than the move."""

    def batch_to_device(self, batch: Any, device: torch.device | None = None, dataloader_idx: int = 0) -> Any:
        """The batch on the device of this process, or another; from page-locked memory without waiting for it."""
        if not self.plain_batches:
            return super().batch_to_device(batch, device, dataloader_idx)  # type: ignore[misc]
        target: torch.device = device or self.root_device  # type: ignore[attr-defined]
        return batch.to(target, non_blocking=target.type != "cpu")

    @property
    def precision_plugin(self) -> Any:
        """Ours, or plain 32 bit; Lightning's mixed precision would autocast for CUDA on a device it does not know."""
        return super().precision_plugin  # type: ignore[misc]

    @precision_plugin.setter
    def precision_plugin(self, plugin: Any) -> None:
        if plugin is not None and not isinstance(plugin, GaudiMixedPrecision) and lightnings(plugin) != "Precision":
            known = lightnings(plugin) in ("MixedPrecision", "HalfPrecision", "DoublePrecision")  # of `precision=`
            name = plugin.precision if known else type(plugin).__name__
            if name not in PRECISIONS:
                raise ConfigError(refusal(name))
            # The options of GaudiMixedPrecision are for whoever names it: `precision=` asks for the dtype only.
            plugin = GaudiMixedPrecision(name, use_fused_rope=False, use_flash_attention_v2=False)
        super(GaudiStrategy, type(self)).precision_plugin.fset(self, plugin)  # type: ignore[misc]

    def setup(self, trainer: Any) -> None:
        """Know the device, leave signals alone, and see that it computes and that collectives really reduce."""
        without_signals(trainer)
        root: torch.device = self.root_device  # type: ignore[attr-defined]
        self.gaudi_device = take(root.type, root.index or 0)
        check_numbers_once(self.gaudi_device)
        if dist.is_available() and dist.is_initialized():
            check_all_reduce(self.gaudi_device)
        module = self.lightning_module  # type: ignore[attr-defined]
        if hasattr(module, "materialise"):  # a deferred model, which is sharded by now if it is to be
            module.materialise(root)
        super().setup(trainer)  # type: ignore[misc]

    def _step_boundary(self) -> None:
        if self.gaudi_device is not None:
            self.gaudi_device.step_boundary()

    training_step = _phase("training_step", ring.FORWARD)
    pre_backward = _phase("pre_backward", ring.BACKWARD)
    post_backward = _then_boundary("post_backward", ring.OPTIMIZER, step_clock.met)
    optimizer_step = _then_boundary("optimizer_step", ring.BETWEEN)
    validation_step = _then_boundary("validation_step")
    test_step = _then_boundary("test_step")
    predict_step = _then_boundary("predict_step")


def _leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


class _Distributed(GaudiStrategy):
    def setup_environment(self) -> None:
        """Name the backend of the device; torch's own default for `hpu` may be `fake`, which reduces nothing."""
        root: torch.device = self.root_device  # type: ignore[attr-defined]
        device = take(root.type, root.index or 0)
        backend, timeout = group_of(self)
        backend, timeout = backend or device.backend, timeout or TIMEOUT
        name_backend(self, backend)
        if not dist.is_initialized():
            # Lightning would bind the group to the device, and a mesh then splits it, which hccl and gloo cannot.
            strategy: Any = self
            strategy.set_world_ranks()
            strategy.accelerator.setup_device(root)
            where = strategy.cluster_environment
            os.environ.update(MASTER_ADDR=where.main_address, MASTER_PORT=str(where.main_port))
            # Lightning by itself would meet in a store that has the addresses of processes that torchrun restarted.
            rank, size = where.global_rank(), where.world_size()
            store = fresh_store(rank, size, timeout)
            dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=timeout)
            if backend == "nccl":  # it complains of a group that is there at the end of the process
                atexit.register(_leave)
            # A mesh would set the device by LOCAL_RANK in a process that has not used one yet.
            check_all_reduce(device)
            prove(dist.group.WORLD, device.torch_device())
            local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
            begin(dist.get_rank(), dist.get_world_size(), local, own_script.directory())
        super().setup_environment()  # type: ignore[misc]

    def broadcast(self, obj: T, src: int = 0) -> T:
        """The object of the rank `src`, as data: Lightning would unpickle what a peer sends. Collective.

        Raises TrainerError on all ranks for an object that is more than plain data, tensors and paths.
        """
        if not dist.is_initialized():
            return obj
        root: torch.device = self.root_device  # type: ignore[attr-defined]
        return broadcast(obj, src, device="cpu" if dist.get_backend() == "gloo" else root)

    def reduce(self, tensor: Any, group: Any = None, reduce_op: Any = "mean") -> Any:
        """A tensor of all processes as one, in place: Lightning would ask hccl for a mean, which it has not."""
        name = reduce_op.lower() if isinstance(reduce_op, str) else reduce_op
        if not isinstance(tensor, torch.Tensor) or name not in ("mean", "avg", dist.ReduceOp.AVG):
            return super().reduce(tensor, group, reduce_op)  # type: ignore[misc]
        total = super().reduce(tensor, group, "sum")  # type: ignore[misc]
        size = dist.get_world_size(group) if dist.is_initialized() else 1
        return total.div_(size) if total.is_floating_point() else total.copy_(total / size)

    def on_exception(self, exception: BaseException) -> None:
        """Let the launcher look at all processes, where this one waited for another; a job says more before that."""
        super().on_exception(exception)  # type: ignore[misc]
        if not self.plain_batches:
            ring.ending(end_of(exception))


class HabanaDDP(_Distributed):
    """Data parallelism with a copy of the model in every process."""

    strategy_name: str = "habana_ddp"

    def configure_ddp(self) -> None:
        """DDP reduces gradients from C++, where nothing notes it for whoever asks why a job hangs."""
        super().configure_ddp()  # type: ignore[misc]
        watch_gradients(self.model)  # type: ignore[attr-defined]
        step_clock.watch(self.model)  # type: ignore[attr-defined]

    def determine_ddp_device_ids(self) -> list[int] | None:
        """Only CUDA needs this call; on others Lightning would open a CUDA stream."""
        root: torch.device = self.root_device  # type: ignore[attr-defined]
        return [root.index] if root.type == "cuda" else None


class HabanaFSDP(_Distributed):
    """Data parallelism with parameters, gradients and optimizer state split over all processes (FSDP2).

    Args:
        data_parallel_size: processes with different data; auto = all that tensor_parallel_size leaves.
        tensor_parallel_size: processes that share each matrix; auto = all that data_parallel_size leaves, else 1. A
            module splits its matrices in its configure_model, or its model has a `tp_plan`, as transformers' have.
        replicas: copies of the model, each split over data_parallel_size / replicas processes (HSDP).
        reshard_after_forward: free a block's gathered parameters between its forward and its backward pass.
        reduce_each_micro_batch: reduce gradients after every micro-batch, not only before the optimizer's step.
        **named: process_group_backend, timeout and save_distributed_checkpoint of Lightning's ModelParallelStrategy.

    The last three of our own are for modules without a configure_model, but reduce_each_micro_batch holds for all.
    Raises ConfigError where the sizes do not make up the number of processes.
    """

    strategy_name: str = "habana_fsdp"

    def __init__(
        self,
        data_parallel_size: int | str = "auto",
        tensor_parallel_size: int | str = "auto",
        *,
        replicas: int = 1,
        reshard_after_forward: bool = True,
        reduce_each_micro_batch: bool = True,
        **named: Any,
    ) -> None:
        super().__init__(**named)
        self.wanted_sizes = data_parallel_size, tensor_parallel_size
        self.replicas = replicas
        self.reshard_after_forward = reshard_after_forward
        self.reduce_each_micro_batch = reduce_each_micro_batch
        self.sharding_mesh: Any = None
        """Over which parameters are split: (data_parallel), or (replicate, shard)."""
        self._parts: list[Any] = []

    def setup_environment(self) -> None:
        """Decide on the mesh, once the number of processes is known."""
        processes = self.num_nodes * self.num_processes  # type: ignore[attr-defined]
        data, tensor = mesh_sizes(*self.wanted_sizes, processes)
        check_replicas(self.replicas, data, tensor)
        set_sizes(self, data, tensor)
        super().setup_environment()
        self.sharding_mesh = self.device_mesh["data_parallel"]  # type: ignore[attr-defined]
        if self.replicas > 1:
            self.sharding_mesh = replicated_mesh(self.root_device.type, self.replicas, data)  # type: ignore[attr-defined]

    def setup(self, trainer: Any) -> None:
        """Shard what does not shard itself in `configure_model`, then as Lightning does."""
        module = self.lightning_module  # type: ignore[attr-defined]
        if self.device_mesh["tensor_parallel"].size() > 1 and lightnings(self.precision_plugin) == "Precision":  # type: ignore[attr-defined]
            # Lightning's own cannot clip gradients that are on two meshes.
            self.precision_plugin = GaudiMixedPrecision("32-true", use_fused_rope=False, use_flash_attention_v2=False)
        base: Any = next(kind for kind in type(module).__mro__ if kind.__name__ == "LightningModule")
        if "configure_model" not in vars(module) and type(module).configure_model is base.configure_model:
            half = torch.bfloat16 if str(self.precision_plugin.precision).startswith("bf16") else None
            across = self.device_mesh["tensor_parallel"]  # type: ignore[attr-defined]
            if across.size() > 1:
                split_matrices(module, across)
            shard(module, self.sharding_mesh, half, self.reshard_after_forward)
            module.configure_model = _done
        self._parts = sharded_parts(module)
        super().setup(trainer)

    @contextlib.contextmanager
    def block_backward_sync(self) -> Iterator[None]:
        """Lightning enters this for every micro-batch but the last of an optimizer step."""
        self._reduce(False)
        try:
            yield
        finally:
            self._reduce(True)

    def _reduce(self, on: bool) -> None:
        for part in self._parts:
            if not self.reduce_each_micro_batch:
                part.set_requires_gradient_sync(on, recurse=False)
            else:  # between copies (HSDP) once is enough, and costs no memory
                part.set_requires_all_reduce(on, recurse=False)


def _done(*arguments: Any) -> None:
    """In place of a module's configure_model: it is sharded already."""


class HabanaDDPStrategy(HabanaDDP, DDPStrategy):
    """`strategy="habana_ddp"`; takes what Lightning's DDPStrategy takes."""


class HabanaFSDPStrategy(HabanaFSDP, ModelParallelStrategy):
    """`strategy="habana_fsdp"`; for the arguments see `HabanaFSDP`."""


class GaudiSingle(GaudiStrategy):
    """One process on one device, which is the accelerator's first."""

    strategy_name: str = "gaudi_single"
    _chosen: Sequence[torch.device] = ()

    @property
    def parallel_devices(self) -> Sequence[torch.device] | None:
        """None until Lightning asks the accelerator."""
        return self._chosen or None

    @parallel_devices.setter
    def parallel_devices(self, devices: list[torch.device]) -> None:
        if len(devices) != 1:
            raise ConfigError(
                f"gaudi_single was given {len(devices)} devices: give one, or strategy habana_ddp or habana_fsdp."
            )
        self._chosen = devices

    @property
    def root_device(self) -> torch.device:
        """The accelerator's; until there is one, what Lightning has by default."""
        if self._chosen:
            return self._chosen[0]
        root: torch.device = super().root_device  # type: ignore[misc]
        return root

    def setup(self, trainer: Any) -> None:
        """Have a module of shapes only get its weights, as under habana_fsdp."""
        module = self.lightning_module  # type: ignore[attr-defined]
        if hasattr(module, "materialise"):
            module.materialise(self.root_device)
        super().setup(trainer)


class GaudiSingleStrategy(GaudiSingle, SingleDeviceStrategy):
    """`strategy="gaudi_single"`."""
