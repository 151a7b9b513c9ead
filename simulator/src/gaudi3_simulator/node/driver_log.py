"""What the driver writes to the kernel log, by release.

Each text is in a public transcript or in the driver's source, which ``simulator/printed.yml`` names. The driver's name
for a card in these lines was ``accel accelN`` in 1.18 and ``habanalabs BDF`` in 1.23: where it changed is UNCONFIRMED.
"""

from __future__ import annotations

from . import board, releases

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .node import Card

FIRST_NAMED_BY_ADDRESS = (1, 21)
NO_SUCH_FILE = -2
REJECTED = "Loading of module with unavailable key is rejected"
# Modules whose source says that it was removed.
_REMOVED = ("habanalabs_cn", "habanalabs_en")


def device(card: Card, version: str) -> str:
    """What the driver of this version calls the card."""
    if releases.version_key(version) < FIRST_NAMED_BY_ADDRESS:
        return f"accel accel{card.index}:"
    return f"habanalabs {card.bus_id}:"


def loading(module: str, version: str) -> list[str]:
    """When the module is loaded; nobody has published a line of habanalabs_compat."""
    return [] if module == releases.COMPAT else [f"{module}: loading driver, version: {version}"]


def removed(module: str) -> list[str]:
    """When the module is unloaded."""
    return [f"{module}: driver removed"] if module in _REMOVED else []


def found(card: Card, pci_device: str) -> str:
    """When the driver finds the card on the bus."""
    ids = f"[{board.PCI_VENDOR}:{pci_device}] (rev {board.HL_REVISION})"
    return f"habanalabs {card.bus_id}: habanalabs device found {ids}"


def added(card: Card, version: str, firmware: str, device_type: str, memory_mib: int) -> list[str]:
    """When the card comes up. The lines before the last were seen in 1.15.1, of later releases they are UNCONFIRMED."""
    name = device(card, version)
    boot = firmware.partition("-fw-")[2]
    return [
        f"{name} Loading secured firmware to device, may take some time...",
        f"{name} preboot full version: 'Preboot version {card.spi} ({releases.firmware_date(card.spi, 'SPI')})'",
        f"{name} boot-fit version {boot}",
        f"{name} Successfully loaded firmware to device",
        f"{name} Linux version {boot}",
        f"{name} Found {device_type} device with {memory_mib // 1024}GB DRAM",
        f"{name} hwmon{card.index + 1}: add sensors information",
        f"{name} Successfully added device {card.bus_id} to habanalabs driver",
    ]


def rdma(card: Card, version: str) -> list[str]:
    """When the card's RDMA device is registered, as far as it was seen."""
    if releases.version_key(version) >= FIRST_NAMED_BY_ADDRESS:
        return []
    return [f"habanalabs {card.bus_id} hbl_{card.index}: IB device registered"]


def no_firmware(card: Card, version: str, generation: str) -> list[str]:
    """When the firmware's file is not there."""
    name = device(card, version)
    image = f"habanalabs/{generation}/{generation}-boot-fit.itb"
    return [
        f"{name} Direct firmware load for {image} failed with error {NO_SUCH_FILE}",
        f"{name} Firmware file {image} is not found! (error {NO_SUCH_FILE})",
        f"habanalabs: Failed to initialize accel{card.index}. Device {card.bus_id} is NOT usable!",
    ]


def resetting(card: Card, version: str) -> str:
    """When the card's reset begins."""
    return f"{device(card, version)} Going to reset device"


def reset(card: Card, version: str, failed: bool = False) -> str:
    """When the card's reset is over."""
    if failed:
        return f"{device(card, version)} {card.bus_id} Failed to reset! Device is NOT usable"
    return f"{device(card, version)} Successfully finished resetting the {card.bus_id} device"


def heartbeat(card: Card, version: str) -> str:
    """When the card's firmware does not answer any more."""
    return f"{device(card, version)} Device heartbeat failed! PCI link is healthy"


def processor(card: Card, version: str) -> list[str]:
    """When the card's processor does not answer while the driver is loaded."""
    name = device(card, version)
    return [
        f"{name} Failed to communicate with Device CPU (CPU-CP timeout)",
        f"{name} failed to initialize CPU H/W queues -5",
        f"{name} failed to initialize the H/W",
        f"habanalabs: Failed to initialize accel{card.index}. Device {card.bus_id} is NOT usable!",
    ]


def mac(card: Card, version: str) -> str:
    """When a port's MAC does not reset; what the NIC driver of a release calls the card here is UNCONFIRMED."""
    return f"{device(card, version)} Timeout while MAC channel 0 reset"


def event(card: Card, version: str, name: str) -> str:
    """When the card reports an event by its name; the words around the name on a Gaudi 2 or 3 are UNCONFIRMED."""
    return f'{device(card, version)} Received H/W interrupt 0 ["{name}"]'


# Of the kernel. Process, address and the words after the number of the oops vary.
PAGE_TABLE = ("python3: Corrupted page table at address 7f0000000000", "Bad pagetable: 000d [#1] PREEMPT SMP NOPTI")
