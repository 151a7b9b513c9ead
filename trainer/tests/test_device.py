"""Which device is used, and that collectives which exchange nothing are refused."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
import torch.distributed as dist

from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.hpu import device as devices
from gaudi3_scale.hpu.device import Device, check_all_reduce, resolve


@pytest.fixture
def habana(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A stand-in for Intel's plugin on a node with eight cards; the list collects its calls."""
    calls: list[str] = []
    package = ModuleType("habana_frameworks")
    package.__path__ = []
    package.__spec__ = ModuleSpec("habana_frameworks", None)
    parts = {name: ModuleType(f"habana_frameworks.{name}") for name in MODULES}
    parts["torch.hpu"].is_available = lambda: True  # type: ignore[attr-defined]
    parts["torch.hpu"].device_count = lambda: 8  # type: ignore[attr-defined]
    parts["torch.hpu"].init = lambda: None  # type: ignore[attr-defined]
    parts["torch.core"].mark_step = lambda: calls.append("mark_step")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "habana_frameworks", package)
    for name, module in parts.items():
        module.__path__ = []
        monkeypatch.setitem(sys.modules, f"habana_frameworks.{name}", module)
    monkeypatch.delenv("PT_HPU_LAZY_MODE", raising=False)
    yield calls
    monkeypatch.delenv("PT_HPU_LAZY_MODE", raising=False)


MODULES = ("torch", "torch.hpu", "torch.core", "torch.distributed", "torch.distributed.hccl")


@pytest.fixture
def no_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without CUDA, wherever the tests run."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.mark.usefixtures("no_cuda")
def test_auto_is_the_cpu_where_there_is_nothing_else() -> None:
    assert resolve("auto", 3, 4) == Device("cpu", 3, "gloo")


def test_auto_prefers_cuda_to_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[int] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    assert resolve("auto", 1, 2) == Device("cuda", 1, "nccl")
    assert chosen == [1]


@pytest.mark.usefixtures("no_cuda")
@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        (
            "hpu",
            "device is 'hpu', but habana_frameworks (package habana-torch-plugin) is not installed: install what is "
            "missing, or set device to auto or cpu.",
        ),
        (
            "cuda",
            "device is 'cuda', but torch sees no CUDA device: install what is missing, or set device to auto or cpu.",
        ),
    ],
)
def test_a_named_device_that_is_missing_is_never_replaced(wanted: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as error:
        resolve(wanted, 0, 1)
    assert str(error.value) == sentence


def test_an_hpu_goes_first_with_hccl_and_needs_no_mark_step_in_eager_mode(habana: list[str]) -> None:
    device = resolve("auto", 1, 2)
    assert (device.type, device.index, device.backend) == ("hpu", 0, "hccl")
    assert device.torch_device() == torch.device("hpu", 0)
    device.step_boundary()
    assert habana == []


def only_index_0(given: Any = None) -> int:
    """As Intel's bridge has it: a process has one card, and any other index is an error."""
    if given not in (0, None, torch.device("hpu", 0)):
        raise RuntimeError(f"habana active device: {given} != 0")
    return 0


@pytest.mark.parametrize("local_rank", [0, 1, 3, 7])
def test_a_process_has_index_0_on_a_gaudi_whatever_its_local_rank(
    local_rank: int, habana: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The card that it is follows from HLS_MODULE_ID, which Intel's plugin sets from the local rank."""
    from gaudi3_scale.integration.accelerator import GaudiAccelerator

    states: list[Any] = []
    stand_in = SimpleNamespace(
        mem_get_info=lambda device: (only_index_0(device), 2**30),
        max_memory_allocated=lambda device: (only_index_0(device), 2**20)[1],
        get_rng_state=lambda device: torch.full((1,), only_index_0(device)),
        set_rng_state=lambda state, device: states.append((state, only_index_0(device))),
        # It would set HLS_MODULE_ID, and with it choose a card, where the launcher left that to the driver.
        set_device=lambda device: pytest.fail("set_device was called"),
    )
    monkeypatch.setattr(torch, "hpu", stand_in, raising=False)
    monkeypatch.setattr(torch, "get_device_module", lambda device: stand_in)
    device = resolve("hpu", local_rank, 8)
    assert device.memory_limit() == 2**30 and device.peak_memory() == 2**20
    device.set_random_state(device.random_state())
    accelerator = GaudiAccelerator("hpu")
    root = accelerator.get_parallel_devices(accelerator.parse_devices(8))[local_rank]
    accelerator.setup_device(root)
    assert [root, device.torch_device()] == [torch.device("hpu", 0)] * 2
    assert states == [(torch.tensor([0]), 0)]


@pytest.mark.usefixtures("habana")
@pytest.mark.parametrize("given", [[1], [2, 3], "4,5", [0, 1, 3]])
def test_cards_are_not_named_by_an_index(given: Any) -> None:
    """A job would run on other cards than those."""
    from gaudi3_scale.integration.accelerator import GaudiAccelerator

    with pytest.raises(ConfigError) as refused:
        GaudiAccelerator("hpu").parse_devices(given)
    listed = [int(part) for part in given.split(",")] if isinstance(given, str) else given
    assert str(refused.value) == (
        f"devices is {listed}, but a process cannot choose its Gaudi card by an index: give the number of cards "
        f"({len(listed)}), and name their modules in HABANA_VISIBLE_MODULES."
    )


@pytest.mark.usefixtures("habana")
def test_cards_are_given_by_their_number() -> None:
    from gaudi3_scale.integration.accelerator import GaudiAccelerator

    accelerator = GaudiAccelerator("hpu")
    counts = [len(accelerator.parse_devices(given)) for given in (1, 4, "8", -1, [0], "0,1,2,3")]
    assert counts == [1, 4, 8, 8, 1, 4]
    with pytest.raises(ConfigError, match=r"^devices is \[0, 1, 2, 3, 4, 5, 6, 7, 8\], but this node has 8 hpu device"):
        accelerator.parse_devices(9)


def test_lazy_mode_marks_every_step_boundary(habana: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PT_HPU_LAZY_MODE", "1")
    device = resolve("hpu", 0, 1)
    device.step_boundary()
    device.step_boundary()
    assert habana == ["mark_step", "mark_step"]


def test_an_hpu_is_not_used_when_the_cpu_was_asked_for(habana: list[str]) -> None:
    assert resolve("cpu", 0, 1) == Device("cpu", 0, "gloo")


def test_a_node_with_more_processes_than_cards_is_refused(habana: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"^9 processes were started on this node, which has 8 hpu device\(s\): "):
        resolve("hpu", 0, 9)


@pytest.mark.usefixtures("no_cuda")
def test_a_plugin_without_a_card_is_no_hpu(habana: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["habana_frameworks.torch.hpu"], "is_available", lambda: False)
    assert resolve("auto", 0, 1).type == "cpu"
    with pytest.raises(ConfigError, match="habana_frameworks finds no available Gaudi card"):
        resolve("hpu", 0, 1)


def card_on_the_bus(sysfs: Path, vendor: str = "0x1da3", device: str = "0x1060") -> str:
    """A PCI device of this vendor in a folder that stands for /sys; its address."""
    folder = sysfs / "bus" / "pci" / "devices" / "0000:21:00.0"
    folder.mkdir(parents=True)
    (folder / "vendor").write_text(f"{vendor}\n")
    (folder / "device").write_text(f"{device}\n")
    return folder.name


@pytest.fixture
def sysfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in the place of /sys."""
    monkeypatch.setattr("gaudi3_scale.hpu.pci.SYSFS", tmp_path / "sys")
    return tmp_path / "sys"


@pytest.fixture
def broken_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An installed plugin that cannot be imported, as with another torch than it was built for; the reason."""
    package = tmp_path / "site" / "habana_frameworks" / "torch"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    reason = "libSynapse.so: cannot open shared object file: No such file or directory"
    (package / "__init__.py").write_text(f"raise ImportError({reason!r})\n")
    for name in [name for name in sys.modules if name.partition(".")[0] == "habana_frameworks"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setenv("PT_HPU_LAZY_MODE", "0")
    monkeypatch.setattr(devices, "_import_failure", None)
    yield reason
    sys.modules.pop("habana_frameworks", None)


@pytest.mark.usefixtures("no_cuda")
def test_auto_does_not_take_the_processors_of_a_node_with_cards(sysfs: Path, broken_plugin: str) -> None:
    address = card_on_the_bus(sysfs)
    with pytest.raises(ConfigError) as error:
        resolve("auto", 0, 1)
    assert str(error.value) == (
        f"device is 'auto', and this node has 1 Gaudi card(s) (the first at {address}), but habana_frameworks cannot "
        f"be imported (ImportError: {broken_plugin}): repair the installation, or set device to cpu to train on the "
        "node's processors."
    )
    assert resolve("cpu", 0, 1).type == "cpu"


@pytest.mark.usefixtures("no_cuda", "sysfs")
def test_a_named_hpu_says_why_its_plugin_cannot_be_imported(broken_plugin: str) -> None:
    with pytest.raises(ConfigError) as error:
        resolve("hpu", 0, 1)
    assert f"habana_frameworks cannot be imported (ImportError: {broken_plugin})" in str(error.value)


@pytest.mark.usefixtures("no_cuda")
def test_auto_refuses_where_the_plugin_is_not_installed_beside_a_card(sysfs: Path) -> None:
    card_on_the_bus(sysfs)
    with pytest.raises(ConfigError, match=r"but habana_frameworks \(package habana-torch-plugin\) is not installed: "):
        resolve("auto", 0, 1)


@pytest.mark.usefixtures("no_cuda", "habana")
def test_auto_refuses_where_the_plugin_finds_no_card_that_the_bus_has(
    sysfs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card_on_the_bus(sysfs)
    monkeypatch.setattr(sys.modules["habana_frameworks.torch.hpu"], "is_available", lambda: False)
    with pytest.raises(ConfigError, match="but habana_frameworks finds no available Gaudi card: "):
        resolve("auto", 0, 1)


@pytest.mark.usefixtures("no_cuda")
@pytest.mark.parametrize(("vendor", "device"), [("0x8086", "0x7d1d"), ("0x1da3", "0x0001"), ("0x10de", "0x1060")])
def test_auto_is_the_cpu_beside_what_is_no_gaudi(sysfs: Path, vendor: str, device: str) -> None:
    """Such as an NPU, the vendor's older inference card, or another vendor's device with the number of a Gaudi."""
    card_on_the_bus(sysfs, vendor, device)
    assert resolve("auto", 0, 1).type == "cpu"


@pytest.mark.usefixtures("no_cuda")
def test_a_card_of_the_kernels_accelerator_class_counts_without_its_bus(sysfs: Path) -> None:
    device = sysfs / "class" / "accel" / "accel0" / "device"
    device.mkdir(parents=True)
    (device / "vendor").write_text("0x1da3\n")
    with pytest.raises(ConfigError, match=r"this node has 1 Gaudi card\(s\) \(the first at accel0\)"):
        resolve("auto", 0, 1)


@pytest.mark.usefixtures("no_cuda")
def test_lightnings_accelerator_does_not_take_the_processors_either(sysfs: Path, broken_plugin: str) -> None:
    from gaudi3_scale.integration.accelerator import GaudiAccelerator

    card_on_the_bus(sysfs)
    with pytest.raises(ConfigError, match=f"ImportError: {re.escape(broken_plugin)}"):
        GaudiAccelerator("auto")


def test_processes_share_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(8))
    assert [devices.threads(0, n) for n in (1, 2, 3, 16)] == [8, 4, 2, 1]
    assert devices.threads(5, 2) == 5


@pytest.fixture
def process_group() -> Iterator[None]:
    """Leave no process group behind."""
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


@pytest.mark.usefixtures("process_group")
def test_the_backend_that_exchanges_nothing_is_refused_by_name() -> None:
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
    with pytest.raises(TrainerError, match=r"^The process group's backend is 'fake', which exchanges nothing: "):
        check_all_reduce(Device("cpu", 0, "gloo"))


@pytest.mark.usefixtures("process_group")
def test_an_all_reduce_that_does_not_sum_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())  # type: ignore[attr-defined]
    check_all_reduce(Device("cpu", 0, "gloo"))
    monkeypatch.setattr(dist, "get_world_size", lambda: 2)
    monkeypatch.setattr(dist, "all_reduce", lambda tensor: None)
    with pytest.raises(TrainerError, match=r"^An all-reduce over 2 processes gave 1 instead of 3 with backend 'gloo'"):
        check_all_reduce(Device("cpu", 0, "gloo"))
