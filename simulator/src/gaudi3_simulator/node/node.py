"""The node as its tools see it: cards, loaded modules, ports and faults, from the two files of ``store``."""

from __future__ import annotations

from . import board, cards, faults, paths, releases, schedule, store, strictness

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
        for fault in state["faults"]:
            if fault["kind"] == faults.SPI_RELEASE and self._is_present(fault):
                card = self.all_cards[fault["card"]]
                card.spi = releases.preboot(releases.previous(card.spi.split("-")[2]), self.board.generation)

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
            matches = fault["kind"] == kind and (card is None or fault.get("card") == card)
            if matches and self._lasts(fault) and self._is_present(fault):
                yield fault

    def _is_present(self, fault: dict[str, Any]) -> bool:
        """Whether the fault's schedule, if it has one, lets it be there now."""
        if not schedule.is_scheduled(fault):
            return True
        held = cards.holders() if fault.get("under_load") else None
        return schedule.is_present(fault, paths.now(), self.runtime["booted_at"], held)

    @property
    def present_faults(self) -> list[dict[str, Any]]:
        """Every fault that shows at this moment."""
        return [fault for fault in self.active_faults if self._is_present(fault)]

    def _lasts(self, fault: dict[str, Any]) -> bool:
        """Whether the fault is still there: some end when somebody does what ends them on hardware."""
        kind = fault["kind"]
        if kind == faults.DEVICE_ACQUIRED:  # it is a process, and ends with it
            held = cards.holder(fault["card"])
            return held is not None and held.pid == fault["pid"]
        if kind in faults.MODULE_FILES:  # somebody builds the modules
            return not any(paths.read_text(path) for path in fault["files"])
        if kind in faults.NETWORK_FILES:  # somebody writes the file anew
            return bool(paths.read_text(paths.GAUDINET) == fault["text"])
        if kind == faults.BAD_PAGETABLE:
            return not self.passthrough
        return True

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
        return board.find_board(self.state["board"])

    @property
    def profile(self) -> Profile:
        """The place that they stand in."""
        return board.find_profile(self.state["profile"])

    @property
    def boot_options(self) -> list[str]:
        """The words on the kernel's command line when the node started."""
        return str(self.runtime.get("boot_options", "")).split()

    @property
    def passthrough(self) -> bool:
        """Whether the kernel was started not to translate what devices read and write."""
        return "iommu=pt" in self.boot_options or "iommu.passthrough=1" in self.boot_options

    @property
    def cards(self) -> list[Card]:
        """Cards that are on the bus."""
        return [card for card in self.all_cards if not self.has_fault(faults.CARD_MISSING, card.index)]

    def status(self, card: Card) -> str:
        """The driver's word for the card's condition."""
        for kind, word in faults.STATUS.items():
            if self.has_fault(kind, card.index):
                return word
        return "Operational"

    def is_disabled(self, card: Card) -> bool:
        """Whether the driver has given the card up."""
        return any(self.has_fault(kind, card.index) for kind in faults.DISABLED)

    def pcie_width(self, card: Card) -> int:
        """Lanes in use."""
        degraded = self.has_fault(faults.PCIE_WIDTH, card.index)
        return board.PCIE_DEGRADED_WIDTH if degraded else board.PCIE_WIDTH

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

    def firmware_of(self, card: Card) -> str:
        """Firmware that one card runs."""
        if self.runtime["firmware"] and self.has_fault(faults.FIRMWARE_SKEW, card.index):
            release = self.runtime["modules"][DRIVER]["version"]
            return releases.preboot(releases.previous(release), self.board.generation)
        return self.firmware

    # Ports

    @property
    def has_port_devices(self) -> bool:
        """Whether the external ports are network devices of this host."""
        return self.profile.port_devices and self.loaded(ETHERNET) and self.loaded(NIC)

    def port_fault(self, kind: str, card: Card, port: int) -> dict[str, Any] | None:
        """The fault of a kind at one port."""
        return next((fault for fault in self.faults(kind, card.index) if fault["port"] == port), None)

    def port_enabled(self, card: Card, port: int) -> bool:
        """Whether somebody brought the external port up, cable or not."""
        return port in self.runtime["ports_up"].get(str(card.index), ())

    def ports_up(self, card: Card) -> set[int]:
        """Ports with a link: internal ones come up with the driver, external ones when asked to and cabled."""
        if not (self.driver_up and self.loaded(NIC)) or self.status(card) != "Operational":
            return set()
        cabled = self.profile.cabled or not strictness.is_on("uncabled-ports-stay-down")
        asked_for = self.runtime["ports_up"].get(str(card.index), ()) if cabled else ()
        down = set(self.board.external_ports).difference(asked_for)
        for kind in (faults.PORT_DOWN, faults.MAC_TIMEOUT):
            down.update(fault["port"] for fault in self.faults(kind, card.index))
        flapping = (fault["port"] for fault in self.faults(faults.PORT_FLAPPING, card.index))
        down.update(port for port in flapping if not _flapped_up(paths.now(), port))
        return set(range(board.PORTS)) - down


def _flapped_up(now: float, port: int) -> bool:
    """Whether a flapping link is up: drawn every two seconds, up for two thirds of the time (simulator values)."""
    mixed = (int(now) // 2 * 2654435761 + port * 40503) & 0xFFFFFFFF
    return (mixed ^ mixed >> 15) * 2246822519 >> 13 & 0xFF < 0xAA
