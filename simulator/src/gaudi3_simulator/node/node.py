"""The node as its tools see it: cards, loaded modules, ports and faults, from the two files of ``store``."""

from __future__ import annotations

from . import board, cards, faults, releases, store, strictness

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .board import Board, Profile

DRIVER = "habanalabs"
NIC = "habanalabs_cn"
ETHERNET = "habanalabs_en"
RDMA = "habanalabs_ib"


class Card:
    """Identity of one card."""

    __slots__ = ("bus_id", "index", "mac_base", "module_id", "numa_node", "serial", "spi", "uuid")

    def __init__(self, content: dict[str, Any]) -> None:
        self.index: int = content["index"]
        self.bus_id: str = content["bus_id"]
        self.module_id: int = content["module_id"]
        self.serial: str = content["serial"]
        self.uuid: str = content["uuid"]
        self.mac_base: str = content["mac"]
        self.numa_node: int = content["numa_node"]
        self.spi: str = content["spi"]

    def mac(self, port: int) -> str:
        """Hardware address of one port."""
        return f"{self.mac_base}:{port + 1:02x}"

    def netdev(self, port: int) -> str:
        """Name of an external port's network device, as predictable names go: bus, slot, dev_port."""
        return f"enp{int(self.bus_id[5:7], 16)}s{int(self.bus_id[8:10], 16)}d{port}"


class Node:
    """A node, read at one moment; ``save`` writes back what a caller changed under the lock."""

    def __init__(self, state: dict[str, Any], runtime: dict[str, Any]) -> None:
        self.state = state
        self.runtime = runtime
        self.all_cards = [Card(content) for content in state["cards"]]

    @classmethod
    def load(cls) -> Node:
        """The node of this machine."""
        return cls(store.load_state(), store.load_runtime())

    def save(self) -> None:
        """Keep both files."""
        store.save_state(self.state)
        store.save_runtime(self.runtime)

    # Cards and faults

    def faults(self, kind: str, card: int | None = None) -> Iterator[dict[str, Any]]:
        """Active faults of a kind, of one card when given."""
        for fault in self.state["faults"]:
            if fault["kind"] == kind and (card is None or fault.get("card") == card) and self._lasts(fault):
                yield fault

    def _lasts(self, fault: dict[str, Any]) -> bool:
        """Whether the fault is still there: the one that is a process ends with that process."""
        if fault["kind"] != faults.DEVICE_ACQUIRED:
            return True
        held = cards.holder(fault["card"])
        return held is not None and held.pid == fault["pid"]

    def has_fault(self, kind: str, card: int | None = None) -> bool:
        """Whether such a fault is active."""
        return next(self.faults(kind, card), None) is not None

    def clear_fault(self, kind: str, card: int | None = None) -> None:
        """Drop matching faults."""
        self.state["faults"] = [
            fault
            for fault in self.state["faults"]
            if fault["kind"] != kind or (card is not None and fault.get("card") != card)
        ]

    @property
    def active_faults(self) -> list[dict[str, Any]]:
        """Every fault that is still there."""
        return [fault for fault in self.state["faults"] if self._lasts(fault)]

    @property
    def board(self) -> Board:
        """What kind of cards they are."""
        return board.find_board(self.state.get("board", board.DEFAULT_BOARD))

    @property
    def profile(self) -> Profile:
        """The place that they stand in."""
        return board.find_profile(self.state.get("profile", board.DEFAULT_PROFILE))

    @property
    def boot_options(self) -> list[str]:
        """The words on the kernel's command line when the node started."""
        return str(self.runtime.get("boot_options", "")).split()

    @property
    def cards(self) -> list[Card]:
        """Cards that are on the bus."""
        return [card for card in self.all_cards if not self.has_fault(faults.CARD_MISSING, card.index)]

    def status(self, card: Card) -> str:
        """The driver's word for the card's condition."""
        return "In reset" if self.has_fault(faults.CARD_IN_RESET, card.index) else "Operational"

    def pcie_width(self, card: Card) -> int:
        """Lanes in use."""
        degraded = self.has_fault(faults.PCIE_WIDTH, card.index)
        return board.PCIE_DEGRADED_WIDTH if degraded else board.PCIE_WIDTH

    def uncorrected_errors(self, card: Card) -> int:
        """Uncorrected memory errors counted."""
        return int(self.has_fault(faults.ECC_UNCORRECTED, card.index))

    def power_limit(self, card: Card) -> int:
        """Power cap in watts."""
        default = self.board.power_cap_w(releases.version_key(self.driver_version))
        return int(self.runtime["power_limit"].get(str(card.index), default))

    # Driver

    def loaded(self, module: str) -> bool:
        """Whether the simulated kernel has the module."""
        return module in self.runtime["modules"]

    @property
    def driver_up(self) -> bool:
        """Whether the cards can be reached: driver loaded, firmware found, at least one card."""
        return bool(self.loaded(DRIVER) and self.runtime["devices_up"] and self.cards)

    @property
    def driver_version(self) -> str:
        """Version of the loaded driver (with skew: of the release before)."""
        return self._version(DRIVER, nic=False)

    @property
    def nic_driver_version(self) -> str:
        """Version of the loaded NIC driver."""
        return self._version(NIC, nic=True)

    def module_version(self, module: str) -> str:
        """Version that the loaded module reports."""
        return self._version(module, nic=module != DRIVER and module != releases.COMPAT)

    def _version(self, module: str, nic: bool) -> str:
        if not self.loaded(module):
            return "N/A"
        version = str(self.runtime["modules"][module]["version"])
        if version and self.has_fault(faults.VERSION_SKEW):
            older = releases.release_info(releases.previous(version))
            return older.nic_driver if nic else older.driver
        return version

    @property
    def firmware(self) -> str:
        """Firmware that the driver loaded into the cards."""
        return str(self.runtime["firmware"] or "N/A")

    # Ports

    @property
    def has_port_devices(self) -> bool:
        """Whether the external ports are network devices of this host."""
        return self.profile.port_devices and self.loaded(ETHERNET) and self.loaded(NIC)

    def port_enabled(self, card: Card, port: int) -> bool:
        """Whether somebody brought the external port up, cable or not."""
        return port in self.runtime["ports_up"].get(str(card.index), ())

    def port_up(self, card: Card, port: int) -> bool:
        """Link of one port: internal ones come up with the driver, external ones when asked to and cabled."""
        if not (self.driver_up and self.loaded(NIC)) or self.has_fault(faults.CARD_IN_RESET, card.index):
            return False
        if port not in self.board.external_ports:
            return True
        if any(fault["port"] == port for fault in self.faults(faults.PORT_DOWN, card.index)):
            return False
        if not self.profile.cabled and strictness.is_on("uncabled-ports-stay-down"):
            return False
        return self.port_enabled(card, port)
