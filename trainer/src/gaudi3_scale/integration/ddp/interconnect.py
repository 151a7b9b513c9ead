"""What carries gradients between the nodes of a job, from what the kernel shows of this node.

The order of choice is the documented one of Gaudi's library (docs.habana.ai, "Scale-Out via Host NIC"): the cards' own
ports, then a NIC of the host by EFA or verbs, then TCP. `HCCL_OVER_OFI` switches that choice off and takes the host's
NIC. Two cases are decided as the collection's module `gaudi_fabric_facts` does: an instance with EFA uses EFA, as its
cards' ports do not leave it, and a card without port devices has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gaudi3_scale.hpu.pci import SYSFS, VENDOR, entries, shown

Kind = Literal["single_node", "efa", "infiniband", "roce", "ethernet"]
NAMES: dict[Kind, str] = {
    "single_node": "a single node",
    "efa": "EFA",
    "infiniband": "InfiniBand",
    "roce": "RoCE",
    "ethernet": "Ethernet (TCP)",
}
SLOWEST_FIRST: tuple[Kind, ...] = ("ethernet", "efa", "roce", "infiniband", "single_node")
"""Of nodes that differ, the one that is named for the job."""
ON = ("1", "true", "yes", "on")


@dataclass(frozen=True)
class Interconnect:
    """The link between nodes, and how it was found."""

    kind: Kind
    reason: str
    devices: tuple[str, ...] = ()
    """Names in /sys/class/net or /sys/class/infiniband."""
    gbit_per_second: float | None = None
    """Sum over the devices' ports that are up, one way; None where the kernel gives none."""

    def __str__(self) -> str:
        """As it is said on the console."""
        speed = f", {self.gbit_per_second:g} Gb/s" if self.gbit_per_second else ""
        devices = f" ({', '.join(self.devices[:4])}{', ...' if len(self.devices) > 4 else ''}{speed})"
        return f"{NAMES[self.kind]}{devices if self.devices else ''}: {self.reason}"


def detect(
    backend: str, nodes: int, environment: Mapping[str, str], sysfs: Path = SYSFS, own_ports: bool | None = None
) -> Interconnect:
    """What a process group of this backend uses between nodes, from this node's facts alone; never raises.

    Args:
        backend: hccl, nccl or gloo.
        nodes: of the job.
        environment: of the process; `HCCL_OVER_OFI` counts.
        sysfs: where sysfs is mounted.
        own_ports: whether the cards' own ports count; None = for hccl.

    >>> detect("gloo", 1, {}).kind
    'single_node'
    >>> detect("gloo", 2, {}, Path("/nowhere")).kind
    'ethernet'
    """
    if nodes == 1:
        return Interconnect("single_node", "all processes are on one node")
    if backend == "gloo":
        return _ethernet(sysfs, "gloo exchanges over TCP, whatever else there is")
    rdma = _rdma(sysfs)
    efa = [each for each in rdma if each.driver == "efa"]
    if efa:
        return _of(efa, "efa", "this is an instance with EFA")
    over_host = environment.get("HCCL_OVER_OFI", "").lower() in ON
    if own_ports if own_ports is not None else backend == "hccl":
        ports = _card_ports(sysfs)
        if ports and not over_host:
            return Interconnect("roce", "the cards have network ports of their own", *_netdevs(ports))
    verbs = [each for each in rdma if not each.is_cards and each.driver is not None]
    why = "HCCL_OVER_OFI is set, and the host has a NIC with verbs" if over_host else "the host has a NIC with verbs"
    for kind, layer in (("infiniband", "InfiniBand"), ("roce", "Ethernet")):
        if found := [each for each in verbs if each.layer == layer]:
            return _of(found, "infiniband" if kind == "infiniband" else "roce", why)
    return _ethernet(sysfs, "no RDMA device that this backend uses was found")


def slowest(found: Sequence[Interconnect]) -> Interconnect:
    """Of the nodes' links the one to reckon with."""
    return min(found, key=lambda each: SLOWEST_FIRST.index(each.kind))


@dataclass(frozen=True)
class _Rdma:
    name: str
    driver: str | None
    layer: str
    gbit: float | None

    @property
    def is_cards(self) -> bool:
        """Does it belong to a Gaudi card?"""
        return self.name.startswith(("hbl_", "hlib_")) or (self.driver or "").startswith(("habanalabs", "hbl"))


def _rdma(sysfs: Path) -> list[_Rdma]:
    found = []
    for folder in entries(sysfs / "class" / "infiniband"):
        link = folder / "device" / "driver"
        driver = link.resolve().name if link.is_symlink() else None
        ports = entries(folder / "ports")
        up = [port for port in ports if "ACTIVE" in shown(port / "state")]
        rates = [shown(port / "rate").split(" ")[0] for port in up]
        speeds = [float(rate) for rate in rates if rate.replace(".", "", 1).isdigit()]
        layers = {shown(port / "link_layer") for port in ports}
        layer = "InfiniBand" if "InfiniBand" in layers else "Ethernet"
        found.append(_Rdma(folder.name, driver, layer, sum(speeds) or None))
    return found


def _of(found: Sequence[_Rdma], kind: Kind, reason: str) -> Interconnect:
    speed = sum(each.gbit or 0 for each in found) or None
    return Interconnect(kind, reason, tuple(each.name for each in found), speed)


def _card_ports(sysfs: Path) -> list[Path]:
    """The network devices of the Gaudi cards' external ports."""
    cards = [d for d in entries(sysfs / "bus" / "pci" / "devices") if shown(d / "vendor").removeprefix("0x") == VENDOR]
    return [port for card in cards for port in entries(card / "net")]


def _ethernet(sysfs: Path, reason: str) -> Interconnect:
    cards = {port.name for port in _card_ports(sysfs)}
    real = [each for each in entries(sysfs / "class" / "net") if (each / "device").exists() and each.name not in cards]
    up = [each for each in real if shown(each / "operstate") == "up"]
    return Interconnect("ethernet", reason, *_netdevs(up))


def _netdevs(ports: Sequence[Path]) -> tuple[tuple[str, ...], float | None]:
    """Names, and the speed of those that have one: Mb/s in sysfs, -1 or unreadable for a port that is down."""
    speeds = [int(text) for port in ports if (text := shown(port / "speed")).isdigit()]
    return tuple(port.name for port in ports), sum(speeds) / 1000 or None
