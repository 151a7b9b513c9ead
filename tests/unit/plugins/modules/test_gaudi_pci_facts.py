"""gaudi_pci_facts on a made-up sysfs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.modules import gaudi_pci_facts

EMPTY = {
    "card_count": 0,
    "generation": None,
    "cards": [],
    "iommu_problem": None,
    "holders": [],
    "driver_loaded": False,
    "driver_version": None,
    "modules": [],
}


def device(sysfs: Path, bus_id: str, vendor: str, device_id: str, numa: str = "0") -> None:
    folder = sysfs / "bus/pci/devices" / bus_id
    folder.mkdir(parents=True)
    (folder / "vendor").write_text(f"{vendor}\n")
    (folder / "device").write_text(f"{device_id}\n")
    (folder / "numa_node").write_text(f"{numa}\n")


def gather(run_module: Any, sysfs: Path) -> dict[str, Any]:
    result = run_module(gaudi_pci_facts, sysfs_root=str(sysfs), proc_root=str(sysfs / "proc"))
    assert list(result["ansible_facts"]) == ["gaudi_pci"]
    facts: dict[str, Any] = result["ansible_facts"]["gaudi_pci"]
    return facts


def test_cards_without_a_driver(tmp_path: Path, run_module: Any) -> None:
    device(tmp_path, "0000:b3:00.0", "0x1da3", "0x1060", numa="-1")
    device(tmp_path, "0000:19:00.0", "0x1da3", "0x1060", numa="1")
    device(tmp_path, "0000:1a:00.0", "0x8086", "0x1060")
    assert gather(run_module, tmp_path) == {
        **EMPTY,
        "card_count": 2,
        "generation": "gaudi3",
        "cards": [
            {
                "bus_id": "0000:19:00.0",
                "device_id": "1060",
                "product": "HL-325",
                "generation": "gaudi3",
                "numa_node": 1,
                "iommu": None,
            },
            {
                "bus_id": "0000:b3:00.0",
                "device_id": "1060",
                "product": "HL-325",
                "generation": "gaudi3",
                "numa_node": None,
                "iommu": None,
            },
        ],
    }


def test_loaded_driver(tmp_path: Path, run_module: Any) -> None:
    for name in ("habanalabs_ib", "habanalabs", "ib_uverbs", "habanalabs_cn"):
        (tmp_path / "module" / name).mkdir(parents=True)
    (tmp_path / "module/habanalabs/version").write_text("1.23.0-2eae87a\n")
    assert gather(run_module, tmp_path) == {
        **EMPTY,
        "driver_loaded": True,
        "driver_version": "1.23.0-2eae87a",
        "modules": ["habanalabs", "habanalabs_cn", "habanalabs_ib"],
    }


def test_a_network_module_alone_is_no_driver(tmp_path: Path, run_module: Any) -> None:
    (tmp_path / "module/habanalabs_cn").mkdir(parents=True)
    facts = gather(run_module, tmp_path)
    assert (facts["driver_loaded"], facts["modules"]) == (False, ["habanalabs_cn"])


def test_host_without_any_sysfs(tmp_path: Path, run_module: Any) -> None:
    assert gather(run_module, tmp_path / "absent") == EMPTY


@pytest.mark.parametrize(
    ("device_id", "product", "generation"),
    [
        ("1000", "HL-205", "gaudi"),
        ("1010", "HL-205", "gaudi"),
        ("1001", "HL-2000M", "gaudi"),
        ("1011", "HL-2000M", "gaudi"),
        ("1020", "HL-225", "gaudi2"),
        ("1021", "HL-288", "gaudi2"),
        ("1060", "HL-325", "gaudi3"),
        ("1063", "HL-338", "gaudi3"),
        ("1030", None, None),
        ("1061", None, None),
        ("1062", None, None),
        ("ffff", None, None),
    ],
)
def test_products(tmp_path: Path, run_module: Any, device_id: str, product: str | None, generation: str | None) -> None:
    device(tmp_path, "0000:19:00.0", "0x1da3", f"0x{device_id.upper()}")
    facts = gather(run_module, tmp_path)
    card = facts["cards"][0]
    assert (card["device_id"], card["product"], card["generation"]) == (device_id, product, generation)
    assert facts["generation"] == generation


def test_cards_which_differ_have_no_common_generation(tmp_path: Path, run_module: Any) -> None:
    device(tmp_path, "0000:19:00.0", "0x1da3", "0x1060")
    device(tmp_path, "0000:1a:00.0", "0x1da3", "0x1020")
    assert gather(run_module, tmp_path)["generation"] is None


@pytest.mark.parametrize("kind", ["DMA", "DMA-FQ", "unmanaged"])
@pytest.mark.parametrize("bad", [(0,), (2,), (0, 1, 2)])
def test_cards_behind_an_iommu_that_translates(
    tmp_path: Path, run_module: Any, kind: str, bad: tuple[int, ...]
) -> None:
    for number in range(3):
        device(tmp_path, f"0000:{number}9:00.0", "0x1da3", "0x1060")
        group = tmp_path / f"kernel/iommu_groups/{number}"
        group.mkdir(parents=True)
        (group / "type").write_text(f"{kind if number in bad else 'identity'}\n")
        (tmp_path / f"bus/pci/devices/0000:{number}9:00.0/iommu_group").symlink_to(group)
    facts = gather(run_module, tmp_path)
    assert [card["iommu"] == kind for card in facts["cards"]] == [number in bad for number in range(3)]
    more = f" and {len(bad) - 1} more are" if len(bad) > 1 else " is"
    assert facts["iommu_problem"] == (
        f"card 0000:{bad[0]}9:00.0{more} behind an IOMMU that translates addresses (iommu_group/type is {kind}), which "
        "may make results wrong or stop the kernel"
    )


def test_no_problem_with_passthrough_or_without_a_group(tmp_path: Path, run_module: Any) -> None:
    device(tmp_path, "0000:19:00.0", "0x1da3", "0x1060")
    device(tmp_path, "0000:1a:00.0", "0x1da3", "0x1060")
    (tmp_path / "bus/pci/devices/0000:1a:00.0/iommu_group").mkdir()
    (tmp_path / "bus/pci/devices/0000:1a:00.0/iommu_group/type").write_text("identity\n")
    facts = gather(run_module, tmp_path)
    assert (facts["iommu_problem"], [card["iommu"] for card in facts["cards"]]) == (None, [None, "identity"])


def test_processes_that_hold_a_card_are_named(tmp_path: Path, run_module: Any) -> None:
    device(tmp_path, "0000:19:00.0", "0x1da3", "0x1060")
    (tmp_path / "proc/812/fd").mkdir(parents=True)
    (tmp_path / "proc/812/comm").write_text("python3\n")
    (tmp_path / "proc/812/fd/7").symlink_to("/dev/accel/accel0")
    assert gather(run_module, tmp_path)["holders"] == ["812 (python3)"]
