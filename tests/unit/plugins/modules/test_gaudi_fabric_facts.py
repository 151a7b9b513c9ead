"""gaudi_fabric_facts on a made-up sysfs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.modules import gaudi_fabric_facts


def card(sysfs: Path, device_id: str = "1060") -> Path:
    folder = sysfs / "bus/pci/devices/0000:19:00.0"
    folder.mkdir(parents=True)
    (folder / "vendor").write_text("0x1da3\n")
    (folder / "device").write_text(f"0x{device_id}\n")
    return folder


def rdma(sysfs: Path, name: str, driver: str | None) -> None:
    folder = sysfs / "class/infiniband" / name
    folder.mkdir(parents=True)
    if driver:
        (sysfs / "drivers" / driver).mkdir(parents=True, exist_ok=True)
        (folder / "device").mkdir()
        (folder / "device/driver").symlink_to(sysfs / "drivers" / driver)


def gather(run_module: Any, sysfs: Path) -> dict[str, Any]:
    result = run_module(gaudi_fabric_facts, sysfs_root=str(sysfs))
    assert list(result["ansible_facts"]) == ["gaudi_fabric"]
    facts: dict[str, Any] = result["ansible_facts"]["gaudi_fabric"]
    return facts


@pytest.mark.parametrize(
    ("device_id", "devices", "kind", "candidates"),
    [
        (None, {}, "none", []),
        (None, {"mlx5_0": "mlx5_core"}, "none", []),
        ("1060", {}, "gaudi", ["gaudi"]),
        ("1060", {"hbl_0": "habanalabs"}, "gaudi", ["gaudi"]),
        ("1060", {"mlx5_0": "mlx5_core"}, "gaudi", ["gaudi", "host_nic"]),
        ("1020", {"hlib_0": None, "rxe0": None}, "gaudi", ["gaudi"]),
        ("1000", {"rdmap16s27": "efa"}, "efa", ["gaudi", "efa"]),
        ("1063", {"mlx5_0": "mlx5_core"}, "host_nic", ["gaudi", "host_nic"]),
        ("1063", {}, "gaudi", ["gaudi"]),
    ],
)
def test_kind(
    tmp_path: Path,
    run_module: Any,
    device_id: str | None,
    devices: dict[str, str | None],
    kind: str,
    candidates: list[str],
) -> None:
    if device_id:
        card(tmp_path, device_id)
    for name, driver in devices.items():
        rdma(tmp_path, name, driver)
    facts = gather(run_module, tmp_path)
    assert (facts["kind"], facts["candidates"]) == (kind, candidates)
    assert [device["name"] for device in facts["rdma_devices"]] == sorted(devices)


def test_external_ports_and_rdma_devices(tmp_path: Path, run_module: Any) -> None:
    folder = card(tmp_path)
    for name, attributes in {
        "ens1d8": {"dev_port": "8", "address": "02:00:00:00:00:0A", "operstate": "up"},
        "ens1d9": {},
    }.items():
        (folder / "net" / name).mkdir(parents=True)
        for attribute, value in attributes.items():
            (folder / "net" / name / attribute).write_text(value + "\n")
    rdma(tmp_path, "hbl_0", "habanalabs")
    rdma(tmp_path, "rxe0", None)
    facts = gather(run_module, tmp_path)
    assert facts["ports"] == [
        {"name": "ens1d8", "bus_id": "0000:19:00.0", "port": 8, "mac": "02:00:00:00:00:0a", "state": "up"},
        {"name": "ens1d9", "bus_id": "0000:19:00.0", "port": None, "mac": None, "state": None},
    ]
    assert facts["rdma_devices"] == [
        {"name": "hbl_0", "driver": "habanalabs", "kind": "gaudi"},
        {"name": "rxe0", "driver": None, "kind": "other"},
    ]
