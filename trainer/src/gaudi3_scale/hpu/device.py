"""The one place that knows devices: which one to use, its process-group backend, and what it needs at a step's end.

Nothing else in this package asks whether it runs on an HPU.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import importlib.util
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.hpu.acquire import PATIENCE, acquire
from gaudi3_scale.hpu.iommu import check_iommu
from gaudi3_scale.hpu.kernels import locks_memory
from gaudi3_scale.hpu.pci import gaudi_cards

if TYPE_CHECKING:
    import torch

BACKENDS = {"hpu": "hccl", "cuda": "nccl", "cpu": "gloo"}
"""Process-group backend of each kind of device; the kinds in the order in which `auto` takes them."""


@dataclass(frozen=True)
class Device:
    """The device of one process."""

    type: str
    index: int
    """As `index_of` gives it."""
    backend: str
    """Process-group backend, always named: torch's own default for `hpu` may be `fake`, which reduces nothing."""
    mark_step: Callable[[], None] | None = None
    """Ends the graph that lazy HPU mode collects; None wherever operations run as they are issued."""

    @property
    def heeds_timeouts(self) -> bool:
        """Whether its collectives end when a process does not answer; those of HCCL take no timeout."""
        return self.backend != "hccl"

    @property
    def keeps_memory_history(self) -> bool:
        """Whether torch can record what is allocated on it, and by whom."""
        return self.type == "cuda"

    def step_boundary(self) -> None:
        """To be called after backward and after the optimizer's step."""
        if self.mark_step is not None:
            self.mark_step()

    def torch_device(self) -> Any:
        """As a `torch.device`."""
        import torch

        return torch.device("cpu") if self.type == "cpu" else torch.device(self.type, self.index)

    def pin(self, tensor: Any) -> Any:
        """The tensor in memory that this device copies from without waiting, where it has such."""
        return tensor.pin_memory() if locks_memory(self.type) else tensor

    def memory_limit(self) -> int | None:
        """Bytes of the device's own memory; None on CPU, whose memory others use too."""
        return None if self.type == "cpu" else int(self._module().mem_get_info(self.index)[1])

    def peak_memory(self) -> int | None:
        """Bytes that tensors of this process took at most since it started or `reset_peak_memory`; None on CPU."""
        return None if self.type == "cpu" else int(self._module().max_memory_allocated(self.index))

    def free_memory(self) -> int | None:
        """Bytes of the device's own memory that neither this process nor another has taken; None on CPU."""
        return None if self.type == "cpu" else int(self._module().mem_get_info(self.index)[0])

    def allocated(self) -> int:
        """Bytes that this process's tensors take on the device; 0 on CPU, where nobody counts them."""
        return 0 if self.type == "cpu" else int(self._module().memory_allocated(self.index))

    def reset_peak_memory(self) -> None:
        """Have `peak_memory` count from now on."""
        if self.type != "cpu":
            self._module().reset_peak_memory_stats(self.index)

    def release_memory(self) -> None:
        """Give back what the allocator keeps for later and nobody uses."""
        if self.type != "cpu" and hasattr(self._module(), "empty_cache"):
            self._module().empty_cache()

    def compile_backend(self, mode: str) -> str | None:
        """Backend of torch.compile for `train.mode`; None where nothing is compiled. ConfigError for lazy off HPU.

        `auto` compiles on an HPU, where eager mode with torch.compile is the vendor's default (docs.habana.ai, "PyTorch
        Gaudi Theory of Operations"), unless its lazy mode is on.
        """
        if mode == "lazy" and self.type != "hpu":
            raise ConfigError(
                f"train.mode is lazy, which only an HPU has, and the device is {self.type}: set it to eager or compile."
            )
        if mode == "auto" and self.type == "hpu" and self.mark_step is None:
            mode = "compile"
        if mode != "compile":
            return None
        return "hpu_backend" if self.type == "hpu" else "inductor"

    def random_state(self) -> Any:
        """State of the device's own generator as a CPU tensor; None on CPU, whose generator is torch's."""
        return None if self.type == "cpu" else self._module().get_rng_state(self.index).cpu()

    def set_random_state(self, state: Any) -> None:
        """Undo whatever was drawn since `random_state`."""
        if self.type != "cpu" and state is not None:
            self._module().set_rng_state(state, self.index)

    def _module(self) -> Any:
        import torch

        return getattr(torch, self.type)


def resolve(wanted: str, local_rank: int, local_world_size: int, patience: float = PATIENCE) -> Device:
    """The device for this process: `auto` is HPU, else CUDA, else CPU; a named one is that one or an error.

    A Gaudi card is taken into use; one that is not available is tried again for this many seconds.
    """
    kind = first_available() if wanted == "auto" else wanted
    count = local_world_size if kind == "cpu" else available(kind)
    if not count:
        raise ConfigError(
            f"device is {wanted!r}, but {missing(wanted)}: install what is missing, or set device to auto or cpu."
        )
    if local_world_size > count:
        raise ConfigError(
            f"{local_world_size} processes were started on this node, which has {count} {kind} device(s): "
            "start one process per device, or set device to cpu."
        )
    return take(kind, index_of(kind, local_rank), patience)


def take(kind: str, index: int, patience: float = PATIENCE) -> Device:
    """The device of this process, taken into use; a card that is not available is tried again for this many seconds."""
    if kind == "hpu":
        check_iommu()  # before the card is acquired, which has brought kernels down
    device = prepare(kind, index)
    if kind == "hpu":
        acquire(importlib.import_module("habana_frameworks.torch.hpu").init, patience)
    return device


def index_of(kind: str, local_rank: int) -> int:
    """Index of this process's device among those that the process can use.

    A process owns one Gaudi card, and its index is 0 for whoever owns it: HPUGuardImpl.h of
    HabanaAI/gaudi-pytorch-bridge refuses any other. Which card it is follows from HLS_MODULE_ID, which the import of
    `habana_frameworks.torch.distributed.hccl` sets from LOCAL_RANK and HABANA_VISIBLE_MODULES.
    """
    return 0 if kind == "hpu" else local_rank


def prepare(kind: str, index: int) -> Device:
    """The device of this process, which is known to be there: loaded, current, its backend registered."""
    mark_step = None
    if kind == "hpu":
        mark_step = _prepare_hpu()
    elif kind == "cuda":
        import torch

        torch.cuda.set_device(index)
    return Device(kind, index, BACKENDS[kind], mark_step)


def available(kind: str) -> int:
    """How many devices of a kind this node has; of `cpu` there are as many as are asked for, so 1."""
    return {"hpu": _hpu_count, "cuda": _cuda_count}[kind]() if kind != "cpu" else 1


def first_available() -> str:
    """HPU, else CUDA, else CPU; ConfigError where that would leave this node's Gaudi cards idle."""
    kind = next(kind for kind in BACKENDS if available(kind))
    cards = gaudi_cards() if kind == "cpu" else []
    if cards:
        raise ConfigError(
            f"device is 'auto', and this node has {len(cards)} Gaudi card(s) (the first at {cards[0]}), but "
            f"{missing('hpu')}: repair the installation, or set device to cpu to train on the node's processors."
        )
    return kind


def hardware_name(device: torch.device) -> str | None:
    """What the accelerator calls itself, such as `GAUDI3` or `NVIDIA H200`; None for a CPU.

    None too for an `hpu` that does not come from Intel's own package: whatever stands in for a card there, under
    whichever name, must never be taken for one.
    """
    if device.type == "cpu":
        return None
    if device.type == "hpu" and not _is_intels_plugin():
        return None
    import torch

    return str(torch.get_device_module(device).get_device_name(device))


def identity(device: torch.device) -> dict[str, Any]:
    """What a job says of itself: the device, its name, whether it is simulated, and the versions of what it runs on."""
    name = hardware_name(device)
    packages = {"torch": "torch", "lightning": "lightning"}
    if device.type == "hpu":
        packages["plugin"] = "habana-torch-plugin"
    software = {"python": platform.python_version()}
    for key, package in packages.items():
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            software[key] = importlib.metadata.version(package)
    simulated = device.type == "hpu" and name is None
    return {"device": device.type, "hardware_name": name, "simulated": simulated, "software": software}


def driver_version(kind: str) -> str | None:
    """The kernel driver's own version; None on CPU and where no such driver is loaded."""
    path = {"hpu": "/sys/module/habanalabs/version", "cuda": "/sys/module/nvidia/version"}.get(kind)
    try:
        return Path(path).read_text(encoding="utf-8").strip() if path else None
    except OSError:
        return None


def memory_in_use(device: torch.device) -> int:
    """Bytes of tensors on the device, which its allocator knows without asking it; on CPU the process's own memory.

    Of a process that is without what it maps from files or shares, whose pages come and go as they are read.
    """
    if device.type != "cpu":
        import torch

        return int(torch.get_device_module(device).memory_allocated(device))
    try:
        _, resident, shared, *_ = Path("/proc/self/statm").read_text().split()
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


def memory_size(device: torch.device) -> int | None:
    """Bytes of the device's own memory; None on CPU, whose memory others use too."""
    import torch

    return None if device.type == "cpu" else int(torch.get_device_module(device).mem_get_info(device)[1])


def empty_cache(device: torch.device) -> None:
    """Give back what the device's allocator holds and nobody uses."""
    if device.type != "cpu":
        import torch

        torch.get_device_module(device).empty_cache()


def timer(device: torch.device) -> Any:
    """A mark in the device's work that knows its time, without waiting for it; None where no such is documented.

    `record()` sets it; `begin.elapsed_time(end)` gives milliseconds once both are reached.
    """
    if device.type != "cuda":
        return None
    import torch

    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def compiles_shapes(device: torch.device) -> bool:
    """Whether each new shape of inputs is taken to cost a compilation.

    The bridge does not refine dynamic shapes by default (`PT_HPU_ENABLE_REFINE_DYNAMIC_SHAPES`).
    """
    return device.type == "hpu"


def threads(wanted: int, local_world_size: int) -> int:
    """CPU threads for each of a node's processes: what was asked for, or an equal share of the usable cores."""
    return wanted or max(1, len(os.sched_getaffinity(0)) // local_world_size)


def check_all_reduce(device: Device) -> None:
    """Refuse to train unless an all-reduce over the default process group really sums."""
    import torch
    import torch.distributed as dist

    backend = dist.get_backend()
    if "fake" in str(backend):
        raise TrainerError(
            "The process group's backend is 'fake', which exchanges nothing: import the real one "
            f"({device.backend}) before torch.distributed is initialised."
        )
    rank, size = dist.get_rank(), dist.get_world_size()
    total = torch.full((8,), float(rank + 1), device=device.torch_device())
    dist.all_reduce(total)
    device.step_boundary()
    expected = size * (size + 1) / 2
    if total.tolist() != [expected] * 8:
        raise TrainerError(
            f"An all-reduce over {size} processes gave {total[0].item():g} instead of {expected:g} with backend "
            f"{backend!r}, so gradients would not be shared: check the installation of {device.backend}."
        )


def _cuda_count() -> int:
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


_import_failure: str | None = None
"""Why Intel's plugin could not be imported in this process; a second try may fail with something that explains less."""


def _hpu() -> ModuleType | None:
    """`habana_frameworks.torch.hpu`, where Intel's plugin is installed and loads."""
    global _import_failure
    if importlib.util.find_spec("habana_frameworks") is None or _import_failure is not None:
        return None
    # The default has changed between releases, and readers of the variable disagree about it; see PT_HPU_LAZY_MODE.
    os.environ.setdefault("PT_HPU_LAZY_MODE", "0")
    try:
        return importlib.import_module("habana_frameworks.torch.hpu")
    except Exception as error:  # whatever a plugin that was built for another torch raises
        _import_failure = f"{type(error).__name__}: {(str(error).strip() or 'no message').splitlines()[0]}"
        return None


def _is_intels_plugin() -> bool:
    """Does the loaded `habana_frameworks.torch` stand in the distribution habana-torch-plugin's own list of files?"""
    module = sys.modules.get("habana_frameworks.torch")
    try:
        listed = importlib.metadata.distribution("habana-torch-plugin").files or []
    except importlib.metadata.PackageNotFoundError:
        return False
    loaded = Path(getattr(module, "__file__", None) or "/").resolve()
    return any(file.name == loaded.name and Path(str(file.locate())).resolve() == loaded for file in listed)


def _hpu_count() -> int:
    hpu = _hpu()
    return int(hpu.device_count()) if hpu is not None and hpu.is_available() else 0


def _prepare_hpu() -> Callable[[], None] | None:
    importlib.import_module("habana_frameworks.torch.distributed.hccl")  # registers the backend
    core = importlib.import_module("habana_frameworks.torch.core")
    lazy = os.environ["PT_HPU_LAZY_MODE"] == "1"
    mark_step: Callable[[], None] = core.mark_step
    return mark_step if lazy else None


def missing(wanted: str) -> str:
    """Why there is no such device here, after `available` has looked."""
    if wanted == "cuda":
        return "torch sees no CUDA device"
    if importlib.util.find_spec("habana_frameworks") is None:
        return "habana_frameworks (package habana-torch-plugin) is not installed"
    if _import_failure is not None:
        return f"habana_frameworks cannot be imported ({_import_failure})"
    return "habana_frameworks finds no available Gaudi card"


OUT_OF_MEMORY = "ran out of memory"
"""What the sentence of a job says that ended of it."""


def is_out_of_memory(error: BaseException) -> bool:
    """Is it that the device's, or the host's, memory does not suffice?

    The texts are those of CUDA's and torch's CPU allocator, and Gaudi's, which is a plain RuntimeError (seen in public
    traces: mila-iqia/milabench issue 301, huggingface/optimum-habana pull request 2214).
    """
    import torch

    text = str(error)
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or (
        isinstance(error, RuntimeError) and _of_memory(text)
    )


def tells_out_of_memory(log: str) -> bool:
    """Does the output of a process that failed say that memory did not suffice?"""
    return any(each in log for each in (OUT_OF_MEMORY, "OutOfMemoryError", "MemoryError")) or _of_memory(log)


def _of_memory(text: str) -> bool:
    return (
        ("MODULE:PT_DEVMEM" in text and "Allocation failed for size" in text)
        or "DefaultCPUAllocator: can't allocate memory" in text
        or "CUBLAS_STATUS_ALLOC_FAILED" in text
    )
