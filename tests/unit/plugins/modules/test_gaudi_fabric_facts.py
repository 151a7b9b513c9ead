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
    ("device_id", "devices", "ports", "driver", "kind", "candidates"),
    [
        (None, {}, 0, True, "none", []),
        (None, {"mlx5_0": "mlx5_core"}, 0, True, "none", []),
        ("1060", {}, 3, True, "gaudi", ["gaudi"]),
        ("1060", {}, 0, False, "gaudi", ["gaudi"]),
        ("1060", {"hbl_0": "habanalabs"}, 1, True, "gaudi", ["gaudi"]),
        ("1060", {"mlx5_0": "mlx5_core"}, 3, True, "gaudi", ["gaudi", "host_nic"]),
        ("1060", {"mlx5_0": "mlx5_core"}, 0, False, "gaudi", ["gaudi", "host_nic"]),
        ("1020", {"hlib_0": None, "rxe0": None}, 3, True, "gaudi", ["gaudi"]),
        ("1000", {"rdmap16s27": "efa"}, 0, True, "efa", ["efa"]),
        ("1000", {"rdmap16s27": "efa"}, 0, False, "efa", ["gaudi", "efa"]),
        ("1063", {"mlx5_0": "mlx5_core"}, 0, True, "host_nic", ["host_nic"]),
        ("1063", {"mlx5_0": "mlx5_core"}, 3, True, "host_nic", ["gaudi", "host_nic"]),
        ("1063", {}, 0, False, "gaudi", ["gaudi"]),
        # The driver runs and no card has a port: nothing leaves the host through them.
        ("1060", {}, 0, True, "host_tcp", ["host_tcp"]),
        ("1063", {}, 0, True, "host_tcp", ["host_tcp"]),
        ("1020", {"rxe0": None}, 0, True, "host_tcp", ["host_tcp"]),
        ("1060", {"mlx5_0": "mlx5_core"}, 0, True, "host_nic", ["host_nic"]),
    ],
)
def test_kind(
    tmp_path: Path,
    run_module: Any,
    device_id: str | None,
    devices: dict[str, str | None],
    ports: int,
    driver: bool,
    kind: str,
    candidates: list[str],
) -> None:
    if device_id:
        folder = card(tmp_path, device_id)
        for port in range(ports):
            (folder / f"net/ens1d{port}").mkdir(parents=True)
    if driver:
        (tmp_path / "module/habanalabs").mkdir(parents=True)
    for name, module in devices.items():
        rdma(tmp_path, name, module)
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
