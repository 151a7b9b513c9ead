"""What carries gradients, told from trees of sysfs."""

from __future__ import annotations

from pathlib import Path

import pytest

from gaudi3_scale.integration.ddp.interconnect import Interconnect, detect, slowest


def card(sysfs: Path, speed: str = "200000", ports: int = 3) -> None:
    """A Gaudi 3 card, its RDMA device and external ports."""
    folder = sysfs / "bus" / "pci" / "devices" / "0000:19:00.0"
    folder.mkdir(parents=True)
    (folder / "vendor").write_text("0x1da3\n")
    for port in range(ports):
        netdev(sysfs, f"ens1d{port}", speed, folder / "net" / f"ens1d{port}")
    if ports:
        rdma(sysfs, "hbl_0", "habanalabs", "Ethernet", "200 Gb/sec (4X HDR)")


def netdev(sysfs: Path, name: str, speed: str, folder: Path | None = None, state: str = "up") -> None:
    """A network device of hardware."""
    folder = folder or sysfs / "class" / "net" / name
    folder.mkdir(parents=True)
    (folder / "device").mkdir()
    (folder / "speed").write_text(speed + "\n")
    (folder / "operstate").write_text(state + "\n")


def rdma(sysfs: Path, name: str, driver: str | None, layer: str, rate: str) -> None:
    """An RDMA device with one port that is up and one that is down."""
    folder = sysfs / "class" / "infiniband" / name
    for number, state in ((1, "4: ACTIVE"), (2, "1: DOWN")):
        port = folder / "ports" / str(number)
        port.mkdir(parents=True)
        for attribute, value in (("state", state), ("link_layer", layer), ("rate", rate)):
            (port / attribute).write_text(value + "\n")
    (folder / "device").mkdir()
    if driver is not None:
        (sysfs / "drivers" / driver).mkdir(parents=True, exist_ok=True)
        (folder / "device" / "driver").symlink_to(sysfs / "drivers" / driver)


def test_gaudi_cards_go_by_their_own_ports(tmp_path: Path) -> None:
    card(tmp_path)
    rdma(tmp_path, "mlx5_0", "mlx5_core", "InfiniBand", "400 Gb/sec (4X NDR)")
    found = detect("hccl", 2, {}, tmp_path)
    assert (found.kind, found.devices, found.gbit_per_second) == ("roce", ("ens1d0", "ens1d1", "ens1d2"), 600.0)
    assert str(found) == "RoCE (ens1d0, ens1d1, ens1d2, 600 Gb/s): the cards have network ports of their own"
    over_host = detect("hccl", 2, {"HCCL_OVER_OFI": "1"}, tmp_path)
    assert (over_host.kind, over_host.devices, over_host.gbit_per_second) == ("infiniband", ("mlx5_0",), 400.0)
    assert "HCCL_OVER_OFI is set" in over_host.reason
    assert detect("nccl", 2, {}, tmp_path).kind == "infiniband"  # which knows nothing of the cards' ports
    assert detect("hccl", 1, {}, tmp_path) == Interconnect("single_node", "all processes are on one node")


def test_an_instance_with_efa_uses_it_though_it_has_cards(tmp_path: Path) -> None:
    card(tmp_path, ports=0)
    rdma(tmp_path, "rdmap0s26", "efa", "Unspecified", "100 Gb/sec (4X EDR)")
    found = detect("hccl", 2, {}, tmp_path)
    assert (found.kind, found.devices, found.gbit_per_second) == ("efa", ("rdmap0s26",), 100.0)


@pytest.mark.parametrize(
    ("driver", "layer", "kind"),
    [("mlx5_core", "Ethernet", "roce"), ("mlx5_core", "InfiniBand", "infiniband"), (None, "Ethernet", "ethernet")],
)
def test_a_nic_of_the_host_is_named_by_its_link_layer(tmp_path: Path, driver: str, layer: str, kind: str) -> None:
    rdma(tmp_path, "mlx5_0", driver, layer, "100 Gb/sec (4X EDR)")  # without a driver it is made by software
    assert detect("nccl", 2, {}, tmp_path).kind == kind


def test_tcp_goes_by_the_ports_of_the_host(tmp_path: Path) -> None:
    card(tmp_path)
    for name in ("ens1d0", "ens1d1", "ens1d2"):
        (tmp_path / "class" / "net").mkdir(parents=True, exist_ok=True)
        (tmp_path / "class" / "net" / name).symlink_to(tmp_path / "bus/pci/devices/0000:19:00.0/net" / name)
    netdev(tmp_path, "eth0", "25000")
    netdev(tmp_path, "eth1", "-1", state="down")
    (tmp_path / "class" / "net" / "lo").mkdir()
    found = detect("gloo", 2, {}, tmp_path)
    assert (found.kind, found.devices, found.gbit_per_second) == ("ethernet", ("eth0",), 25.0)


def test_of_nodes_that_differ_the_slowest_counts() -> None:
    links = [Interconnect("roce", ""), Interconnect("ethernet", ""), Interconnect("efa", "")]
    assert slowest(links).kind == "ethernet"
