"""What the NIC modules show: network devices of the external ports, RDMA devices of all of them, and their counters."""

from __future__ import annotations

import zlib

from . import board, faults, node, paths, strictness
from .sysfs_pci import DEVICES
from .tree import Device, Link, Text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .tree import Entry

RDMA = "/sys/class/infiniband"
NET = "/sys/class/net"
DEV = "/dev/infiniband"

_UP, _DOWN = "0x1003", "0x1002"  # IFF_BROADCAST | IFF_MULTICAST, with and without IFF_UP
_MTU, _OTHER_MTU = 1500, 9000  # simulator values
_TORN_SHARE = 0.12
_TORN_MAX = 13


def entries(simulated: node.Node, card: node.Card) -> dict[str, Entry]:
    """Every file of one card's ports, as far as the modules for them are loaded."""
    files: dict[str, Entry] = {}
    if simulated.has_port_devices:
        up = simulated.ports_up(card)
        for port in simulated.board.external_ports:
            name = card.netdev(port)
            folder = f"{DEVICES}/{card.bus_id}/net/{name}"
            texts = _port(simulated, card, port, port in up)
            files.update({f"{folder}/{attribute}": Text(text + "\n") for attribute, text in texts.items()})
            files[f"{folder}/device"] = Link(f"../../../{card.bus_id}")
            files[f"{NET}/{name}"] = Link(f"../../bus/pci/devices/{card.bus_id}/net/{name}")
    if simulated.loaded(node.RDMA) and simulated.loaded(node.NIC):
        folder = f"{RDMA}/hbl_{card.index}"
        files.update({f"{folder}/{name}": Text(text + "\n") for name, text in _rdma(simulated, card).items()})
        files[f"{folder}/device"] = Link(f"../../../bus/pci/devices/{card.bus_id}")
        if not simulated.has_fault(faults.NO_UVERBS):
            files[f"{DEV}/uverbs{card.index}"] = Device()  # open to all: the kernel's own mode for them
    return files


def note_carriers(simulated: node.Node) -> bool:
    """Count the carriers that came and went since the last call; whether there were any."""
    counts: dict[str, list[int]] = simulated.runtime.setdefault("carriers", {})
    seen: dict[str, list[int]] = {}
    if simulated.driver_up and simulated.has_port_devices:
        for card in simulated.cards:
            up = simulated.ports_up(card)
            for port in simulated.board.external_ports:
                was, came, went = counts.get(f"{card.index}:{port}", [0, 0, 0])
                now = int(port in up)
                seen[f"{card.index}:{port}"] = [now, came + (now > was), went + (now < was)]
    simulated.runtime["carriers"] = seen
    return seen != counts


def _port(simulated: node.Node, card: node.Card, port: int, up: bool) -> dict[str, str]:
    admin = simulated.port_enabled(card, port)
    _, came, went = simulated.runtime["carriers"].get(f"{card.index}:{port}", (0, 0, 0))
    texts = {
        "dev_port": str(port),
        "address": card.mac(port),
        "addr_len": "6",
        "type": "1",
        "flags": _UP if admin else _DOWN,
        "operstate": "up" if up else "down",
        "carrier_changes": str(came + went),
        "carrier_up_count": str(came),
        "carrier_down_count": str(went),
        "mtu": str(_OTHER_MTU if simulated.port_fault(faults.PORT_MTU, card, port) else _MTU),
    }
    if admin:  # of a device that is down the kernel gives neither
        texts["carrier"] = str(int(up))
        texts["speed"] = str(simulated.board.port_gbit * 1000) if up else "-1"
        texts["duplex"] = "full" if up else "unknown"
    return texts


def _rdma(simulated: node.Node, card: node.Card) -> dict[str, str]:
    """The RDMA device. Its ports count from 1 and are all 24, as seen on one Gaudi 2 machine."""
    mac = card.mac(simulated.board.external_ports[0]).replace(":", "")
    guid = f"{mac[:6]}fffe{mac[6:]}"
    texts = {
        "node_type": "1: CA",
        "node_guid": ":".join(guid[start : start + 4] for start in range(0, 16, 4)),
    }
    with_counters = strictness.is_on("nic-counters")
    ports_up = simulated.ports_up(card)
    for port in range(board.PORTS):
        up = port in ports_up
        folder = f"ports/{port + 1}"
        texts[f"{folder}/state"] = "4: ACTIVE" if up else "1: DOWN"
        texts[f"{folder}/phys_state"] = "5: LinkUp" if up else "3: Disabled"
        texts[f"{folder}/link_layer"] = "Ethernet"
        texts[f"{folder}/rate"] = simulated.board.port_rate
        if with_counters:
            for name, value in _counters(simulated, card, port).items():
                texts[f"{folder}/hw_counters/{name}"] = str(value)
    return texts


def _counters(simulated: node.Node, card: node.Card, port: int) -> dict[str, int]:
    """Octets and packets of an idle port. One read in eight or so is torn: off by a multiple of 2**32.

    Seen on one Gaudi 2 machine (10 to 15 % of the reads, up to 13 times 2**32). There each read is a query of the
    firmware that takes about 100 ms, which a file cannot imitate; here the values are drawn again whenever the
    kernel's view changes.
    """
    values: dict[str, int] = {}
    for name in ("rx_Octets", "tx_Octets", "rx_Pkts", "tx_Pkts"):
        key = f"{simulated.state['seed']} {card.index} {port} {name}"
        values[name] = zlib.crc32(key.encode())
        if name.endswith("Octets"):
            chance = zlib.crc32(f"{key} {paths.now():.3f}".encode())
            if chance % 1000 < _TORN_SHARE * 1000:
                values[name] += (1 + chance // 1000 % _TORN_MAX) << 32
    return values
