"""The faults that can be put on a node: one registry, with what a user then sees.

A fault stays until it is cleared or until the remedy that works on hardware is applied (``remedy`` says
which).
"""

from __future__ import annotations

from . import board

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NODE, CARD, PORT = "node", "card", "port"

DRIVER_NOT_LOADED = "driver-not-loaded"
CARD_IN_RESET = "card-in-reset"
TEMPERATURE_ZERO = "temperature-zero"
PORT_DOWN = "port-down"
DEVICE_ACQUIRED = "device-acquired"
VERSION_SKEW = "version-skew"
CARD_MISSING = "card-missing"
PCIE_WIDTH = "pcie-width"
ECC_UNCORRECTED = "ecc-uncorrected"
HL_SMI_GARBAGE = "hl-smi-garbage"
HL_SMI_HANG = "hl-smi-hang"
NO_FIRMWARE = "no-firmware"
MODULE_REJECTED = "module-rejected"


class Kind:
    """One kind of fault: what it hits, what it looks like, what ends it."""

    __slots__ = ("description", "remedy", "scope")

    def __init__(self, scope: str, description: str, remedy: str = "--clear") -> None:
        self.scope = scope
        self.description = description
        self.remedy = remedy


REGISTRY: dict[str, Kind] = {
    DRIVER_NOT_LOADED: Kind(
        NODE, "the modules are not loaded, neither now nor at boot: hl-smi exits 1", "modprobe habanalabs"
    ),
    CARD_IN_RESET: Kind(CARD, "the card's status is 'In reset' and it has no readings", "hl-smi -r -i BDF"),
    TEMPERATURE_ZERO: Kind(CARD, "the card reports 0 C, as one that did not initialise does"),
    PORT_DOWN: Kind(PORT, "the external port stays DOWN whatever the host does, as with a pulled cable"),
    DEVICE_ACQUIRED: Kind(CARD, "a leftover process holds the card: memory in use, modules cannot be unloaded", "kill"),
    VERSION_SKEW: Kind(
        NODE,
        "the running driver is one release older than the installed packages",
        "modprobe habanalabs, after -r",
    ),
    CARD_MISSING: Kind(CARD, "the card fell off the PCI bus: no device, no row, one card fewer"),
    PCIE_WIDTH: Kind(CARD, f"the PCIe link came up with x{board.PCIE_DEGRADED_WIDTH} of x{board.PCIE_WIDTH} lanes"),
    ECC_UNCORRECTED: Kind(CARD, "one uncorrected memory error is counted"),
    HL_SMI_GARBAGE: Kind(NODE, "hl-smi prints a half-written line and exits 0"),
    HL_SMI_HANG: Kind(NODE, "hl-smi never returns"),
    NO_FIRMWARE: Kind(NODE, "the driver finds no firmware image, so no card comes up"),
    MODULE_REJECTED: Kind(NODE, "the kernel rejects unsigned modules, as with Secure Boot: modprobe fails"),
}


def listing() -> str:
    """Every kind of fault: its name, what it hits, what a user then sees, what ends it."""
    return "".join(
        f"{kind:<18} {what.scope:<5} {what.description} (ends with {what.remedy})\n" for kind, what in REGISTRY.items()
    )


class FaultError(Exception):
    """The fault cannot be set as asked; the message says why."""


def make(
    kind: str,
    card: int | None,
    port: int | None,
    cards: int,
    external_ports: tuple[int, ...] = board.BOARDS[board.DEFAULT_BOARD].external_ports,
) -> dict[str, Any]:
    """The fault as the state keeps it, checked; card 0 and the first external port when none is named."""
    if kind not in REGISTRY:
        raise FaultError(f"{kind} is no fault of this simulator: choose one of {', '.join(REGISTRY)}")
    scope = REGISTRY[kind].scope
    if scope == NODE:
        if card is not None or port is not None:
            raise FaultError(f"{kind} concerns the whole node: leave out --card and --port")
        return {"kind": kind}
    if card is not None and not 0 <= card < cards:
        raise FaultError(f"card {card} does not exist: this node has cards 0 to {cards - 1}")
    fault: dict[str, Any] = {"kind": kind, "card": card or 0}
    if scope == CARD:
        if port is not None:
            raise FaultError(f"{kind} concerns a whole card: leave out --port")
        return fault
    fault["port"] = external_ports[0] if port is None else port
    if fault["port"] not in external_ports:
        external = ", ".join(str(number) for number in external_ports)
        raise FaultError(f"port {port} is not external: the external ports of this board are {external}")
    return fault
