"""A job on cards that may compute wrong numbers is refused before it trains."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.hpu import iommu, pci, selfcheck
from gaudi3_scale.hpu.device import Device


def machine(root: Path, types: dict[str, str | None], bus: bool = True, vendor: str = "0x1da3") -> Path:
    """A /sys with cards and the types of their IOMMU domains; without ``bus`` only the driver's class is to be seen."""
    for index, (address, kind) in enumerate(types.items()):
        device = root / ("bus/pci/devices/" + address if bus else f"class/accel/accel{index}/device")
        device.mkdir(parents=True)
        (device / "vendor").write_text(vendor + "\n")
        (device / "device").write_text("0x1060\n")
        if kind is not None:
            (device / "iommu_group").mkdir()
            (device / "iommu_group/type").write_text(kind + "\n")
    return root


@pytest.mark.parametrize("bus", [True, False])
@pytest.mark.parametrize("kind", ["DMA", "DMA-FQ", "blocked"])
@pytest.mark.parametrize("which", [0, 7])
def test_a_card_behind_a_translating_iommu_is_refused(
    bus: bool, kind: str, which: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses = [f"0000:{number:02x}:00.0" for number in range(0x19, 0x21)]
    types: dict[str, str | None] = dict.fromkeys(addresses, "identity")
    types[addresses[which]] = kind
    monkeypatch.setattr(pci, "SYSFS", machine(tmp_path, types, bus))
    with pytest.raises(ConfigError) as refused:
        iommu.check_iommu()
    at = addresses[which] if bus else f"accel{which}"
    assert str(refused.value) == (
        f"1 Gaudi card(s), the first at {at}, are in an IOMMU domain of type {kind!r}, in which they may compute wrong "
        "numbers or bring the kernel down: start the kernel with iommu=pt (and intel_iommu=on on Intel's processors), "
        "or set GAUDI3_ACCEPT_TRANSLATED_IOMMU=1 to train anyway."
    )
    monkeypatch.setenv("GAUDI3_ACCEPT_TRANSLATED_IOMMU", "1")
    iommu.check_iommu()


@pytest.mark.parametrize("kind", ["identity", None])
def test_passthrough_and_no_group_are_well(kind: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pci, "SYSFS", machine(tmp_path, {"0000:19:00.0": kind, "0000:1a:00.0": kind}))
    iommu.check_iommu()


def test_other_devices_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pci, "SYSFS", machine(tmp_path, {"0000:19:00.0": "DMA-FQ"}, vendor="0x8086"))
    iommu.check_iommu()


class Card(SimpleNamespace):
    """A card whose numbers the processor computes."""

    type = "hpu"

    def torch_device(self) -> torch.device:
        return torch.device("cpu")

    def step_boundary(self) -> None:
        """Nothing is collected."""


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selfcheck, "INNER", 4096)
    module = SimpleNamespace(reset_peak_memory_stats=lambda: None)
    monkeypatch.setattr(torch, "get_device_module", lambda device: module)


def test_right_numbers_pass_and_processors_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    selfcheck.check_numbers(Card())  # type: ignore[arg-type]
    monkeypatch.setattr(selfcheck, "_product", lambda *_: pytest.fail("a CPU was checked"))
    selfcheck.check_numbers(Device("cpu", 0, "gloo"))


@pytest.mark.parametrize("call", [1, 2])
@pytest.mark.parametrize(("what", "name"), [("_product", "matrix product"), ("_gather", "gather")])
def test_one_wrong_number_in_either_run_is_noticed(
    call: int, what: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, calls = getattr(selfcheck, what), []

    def wrong(*operands: Any) -> Any:
        calls.append(1)
        result = right(*operands).clone()
        if len(calls) == call:
            result.view(-1)[7] += 1
        return result

    monkeypatch.setattr(selfcheck, what, wrong)
    with pytest.raises(TrainerError) as failed:
        selfcheck.check_numbers(Card())  # type: ignore[arg-type]
    said = str(failed.value)
    assert f"the {['first', 'second'][call - 1]} {name} of" in said and "differs from the processor's in 1 of" in said
    assert not isinstance(failed.value, ConfigError)
