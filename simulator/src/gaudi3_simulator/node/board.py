"""The simulated boards and the places that they stand in. One table for every constant of the hardware.

Sizes, PCI ids, link speeds and the idle memory follow public sources; what is marked UNCONFIRMED has the right
shape and no source. Which ports are external depends on the board, so nothing outside this file may assume a number.
"""

from __future__ import annotations

PCI_VENDOR = "1da3"
PCI_CLASS = "0x120000"
PCI_REVISION = "01"
HL_REVISION = 1
PORTS = 24

# Bus addresses of a tray's eight places; those above 0x80 hang on the second socket.
BUS_IDS = (
    "0000:19:00.0",
    "0000:1a:00.0",
    "0000:43:00.0",
    "0000:44:00.0",
    "0000:b3:00.0",
    "0000:b4:00.0",
    "0000:cc:00.0",
    "0000:cd:00.0",
)
MAX_CARDS = len(BUS_IDS)

PCIE_WIDTH = 16
PCIE_DEGRADED_WIDTH = 8


class UnknownBoard(ValueError):
    """A board or a profile that is not simulated; the message names those that are."""


class Board:
    """One kind of card."""

    __slots__ = (
        "clock_soc_mhz",
        "clock_tpc_mhz",
        "cpld_timestamp",
        "cpld_version",
        "device_type",
        "external_ports",
        "generation",
        "memory_busy_mib",
        "memory_idle_mib",
        "memory_total_mib",
        "model_number",
        "pcb_assembly",
        "pcb_version",
        "pci_device",
        "pcie_generation",
        "port_gbit",
        "port_rate",
        "power_busy_w",
        "power_cap_range_w",
        "power_caps",
        "power_idle_w",
        "product",
        "serial_prefix",
        "temperature_busy_c",
        "temperature_idle_c",
        "utilization_busy",
        "uuid_prefix",
    )

    def __init__(self, **values: object) -> None:
        for name in self.__slots__:
            setattr(self, name, values.pop(name))
        if values:
            raise TypeError(f"a board has no {', '.join(values)}")

    generation: str
    product: str
    model_number: str
    device_type: str
    pci_device: str
    pcie_generation: int
    pcb_assembly: str
    pcb_version: str
    cpld_version: int
    cpld_timestamp: int
    serial_prefix: str
    uuid_prefix: str
    external_ports: tuple[int, ...]
    port_gbit: int
    port_rate: str
    memory_total_mib: int
    memory_idle_mib: int
    memory_busy_mib: int
    power_idle_w: int
    power_busy_w: int
    power_cap_range_w: tuple[int, int]
    power_caps: tuple[tuple[tuple[int, ...], int], ...]
    temperature_idle_c: int
    temperature_busy_c: int
    utilization_busy: int
    clock_soc_mhz: int
    clock_tpc_mhz: int

    @property
    def internal_ports(self) -> tuple[int, ...]:
        """Ports that stay inside the box."""
        return tuple(port for port in range(PORTS) if port not in self.external_ports)

    def power_cap_w(self, release: tuple[int, ...]) -> int:
        """Default power limit as a driver of this release reports it."""
        return next(watts for before, watts in self.power_caps if release < before)


_ANY_RELEASE = (9999,)

BOARDS = {
    # Product, model, revisions, CPLD version and the beginnings of serial number and UUID as seen in the field; clocks
    # and the CPLD's time stamp are UNCONFIRMED. Which three ports are external is the simulator's choice: the vendor's
    # library asks each Gaudi 3 for them.
    "HL-325L": Board(
        product="HL-325L",
        generation="gaudi3",
        device_type="GAUDI3",
        model_number="F08GL0DIG017A",
        pci_device="1060",
        pcie_generation=5,
        pcb_assembly="V0P",
        pcb_version="R01",
        cpld_version=4,
        cpld_timestamp=0x65A1B2C3,
        serial_prefix="AO",
        uuid_prefix="01P4-HL3090A0-18",
        external_ports=(4, 13, 21),
        port_gbit=200,
        port_rate="200 Gb/sec (2X NDR)",
        memory_total_mib=131072,
        memory_idle_mib=672,
        memory_busy_mib=88000,
        power_idle_w=226,
        power_busy_w=690,
        power_cap_range_w=(450, 850),  # the vendor's hl-smi page
        power_caps=(((1, 22), 900), (_ANY_RELEASE, 850)),  # 900 W was seen up to 1.21, 850 W from 1.22 on
        temperature_idle_c=36,
        temperature_busy_c=61,
        utilization_busy=95,
        clock_soc_mhz=1600,
        clock_tpc_mhz=1750,
    ),
    # A public hl-smi log of 1.12.1; external ports 8, 22 and 23 are the vendor library's default mask 0xc00100. The
    # lower end of the power range is UNCONFIRMED.
    "HL-225": Board(
        product="HL-225",
        generation="gaudi2",
        device_type="GAUDI2",
        model_number="F08GL0AIG032A",
        pci_device="1020",
        pcie_generation=4,
        pcb_assembly="V2A",
        pcb_version="R0F",
        cpld_version=13,
        cpld_timestamp=0x65A1B2C3,
        serial_prefix="AM",
        uuid_prefix="01P0-HL2080A0-15",
        external_ports=(8, 22, 23),
        port_gbit=100,
        port_rate="100 Gb/sec (4X EDR)",
        memory_total_mib=98304,
        memory_idle_mib=768,
        memory_busy_mib=66000,
        power_idle_w=90,
        power_busy_w=480,
        power_cap_range_w=(400, 600),
        power_caps=((_ANY_RELEASE, 600),),
        temperature_idle_c=29,
        temperature_busy_c=55,
        utilization_busy=95,
        clock_soc_mhz=1650,
        clock_tpc_mhz=1800,
    ),
}
DEFAULT_BOARD = "HL-325L"


class Profile:
    """The place that the cards stand in: what is plugged into their ports, and what the host shows of them."""

    __slots__ = ("cabled", "description", "iommu", "port_devices")

    def __init__(self, description: str, cabled: bool, port_devices: bool, iommu: bool) -> None:
        self.description = description
        self.cabled = cabled
        self.port_devices = port_devices
        self.iommu = iommu


PROFILES = {
    "cluster": Profile("a server with every external port cabled to a switch", True, True, True),
    "single": Profile("a server whose external ports have no cable", False, True, True),
    # Software 1.24.1 on one carrier board and eight HL-338 showed no port device; nobody has published a VM's.
    "vm": Profile("a virtual machine without port devices and without an IOMMU", False, False, False),
}
DEFAULT_PROFILE = "cluster"


def find_board(name: str) -> Board:
    """The board of this product name."""
    if name not in BOARDS:
        raise UnknownBoard(f"board {name} is not simulated: choose one of {', '.join(BOARDS)}")
    return BOARDS[name]


def find_profile(name: str) -> Profile:
    """The profile of this name."""
    if name not in PROFILES:
        raise UnknownBoard(f"profile {name} is not simulated: choose one of {', '.join(PROFILES)}")
    return PROFILES[name]
