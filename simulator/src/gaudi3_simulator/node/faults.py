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
MODULE_NOT_BUILT = "module-not-built"
MODULE_EMPTY = "module-empty"
BAD_PAGETABLE = "bad-pagetable"
RELEASE_MISMATCH = "release-mismatch"
NO_UVERBS = "no-uverbs"
NEEDS_RESET = "needs-reset"
IN_CREATION = "in-device-creation"
RESET_FAILED = "reset-failed"
CPU_TIMEOUT = "cpu-timeout"
TEMPERATURE_ABSURD = "temperature-absurd"
PCIE_GENERATION = "pcie-generation"
THROTTLED_POWER = "throttled-power"
THROTTLED_THERMAL = "throttled-thermal"
ECC_CORRECTED = "ecc-corrected"
ROW_PENDING = "row-pending"
MEMORY_KEPT = "memory-kept"
SPI_RELEASE = "spi-release"
PORT_FLAPPING = "port-flapping"
PORT_SYMBOL_ERRORS = "port-symbol-errors"
MAC_TIMEOUT = "mac-timeout"
FIRMWARE_SKEW = "firmware-skew"
KERNEL_EVENT = "kernel-event"
PORT_MTU = "port-mtu"
PORT_PFC = "port-pfc"
GAUDINET_EMPTY = "gaudinet-empty"
GAUDINET_WRONG = "gaudinet-wrong"
SLOW_CARD = "slow-card"
SLOW_LINK = "slow-link"
QUAL_FAILED = "qual-failed"

# The driver's words for a card that is not in order (driver source, sysfs.c and habanalabs_drv.c), worst first.
STATUS = {
    RESET_FAILED: "Disabled",
    CPU_TIMEOUT: "Disabled",
    IN_CREATION: "In device creation",
    CARD_IN_RESET: "In reset",
    NEEDS_RESET: "Needs reset",
}
DISABLED = (RESET_FAILED, CPU_TIMEOUT)

# What ends with a reset of the card, and what ends when the driver is loaded.
ENDS_WITH_RESET = (CARD_IN_RESET, NEEDS_RESET, MEMORY_KEPT, ROW_PENDING)
ENDS_WITH_LOAD = (
    DRIVER_NOT_LOADED,
    VERSION_SKEW,
    NEEDS_RESET,
    IN_CREATION,
    RESET_FAILED,
    MEMORY_KEPT,
    ROW_PENDING,
    FIRMWARE_SKEW,
)  # fmt: skip
# Faults that are as bad as their count.
COUNTED = (ECC_UNCORRECTED, ECC_CORRECTED, THROTTLED_POWER, THROTTLED_THERMAL)
# Faults of the modules' files, and of the file with the ports' addresses.
MODULE_FILES = (MODULE_NOT_BUILT, MODULE_EMPTY)
NETWORK_FILES = (GAUDINET_EMPTY, GAUDINET_WRONG)

# Faults with a name of their own: an event of the driver, a mode of hl_qual.
NAMED = (KERNEL_EVENT, QUAL_FAILED)
DEFAULT_EVENT = "MME0_DIE0_HD0_DERR"

_RESET = "hl-smi -r -i BDF"
_LOAD = "modprobe habanalabs, after -r"
_RESET_OR_LOAD = f"{_RESET}, or {_LOAD}"
_BUILD = "installing the packages again"

# Known on hardware, and not to be had here.
REFUSED = {
    "hccl-hang": "it takes two nodes and the vendor's own collectives",
    "memlock-small": "a limit belongs to a process and not to the node: start the job under 'ulimit -l'",
    "huge-pages-few": "they are this machine's own: set vm.nr_hugepages with sysctl",
    "governor": "it is this machine's own: set scaling_governor under /sys/devices/system/cpu",
    "clock-skew": "nodes share this machine's clock: run chronyd on machines of their own",
}


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
    CARD_IN_RESET: Kind(CARD, "the card's status is 'In reset' and its total memory is what is in use", _RESET),
    TEMPERATURE_ZERO: Kind(CARD, "the card reports 0 C, as one that did not initialise does"),
    PORT_DOWN: Kind(PORT, "the port stays DOWN whatever the host does, as with a pulled cable or a dead SerDes"),
    DEVICE_ACQUIRED: Kind(CARD, "a leftover process holds the card: memory in use, modules cannot be unloaded", "kill"),
    VERSION_SKEW: Kind(
        NODE,
        "the running driver is one release older than the installed packages",
        _LOAD,
    ),
    CARD_MISSING: Kind(CARD, "the card fell off the PCI bus: no device, no row, one card fewer"),
    PCIE_WIDTH: Kind(CARD, f"the PCIe link came up with x{board.PCIE_DEGRADED_WIDTH} of x{board.PCIE_WIDTH} lanes"),
    ECC_UNCORRECTED: Kind(CARD, "uncorrected memory errors are counted, one or --count, and rows wait to be replaced"),
    HL_SMI_GARBAGE: Kind(NODE, "hl-smi prints a half-written line and exits 0"),
    HL_SMI_HANG: Kind(NODE, "hl-smi never returns"),
    NO_FIRMWARE: Kind(NODE, "the driver finds no firmware image, so no card comes up"),
    MODULE_REJECTED: Kind(NODE, "the kernel rejects unsigned modules, as with Secure Boot: modprobe fails"),
    MODULE_NOT_BUILT: Kind(NODE, "the node runs a kernel that the modules were not built for: no driver", _BUILD),
    MODULE_EMPTY: Kind(NODE, "the modules' files are empty, as DKMS can leave them: no driver", _BUILD),
    BAD_PAGETABLE: Kind(NODE, "'Bad pagetable' in the kernel log, as on kernel 6.8", "a boot with iommu=pt"),
    RELEASE_MISMATCH: Kind(NODE, "container and driver are of different releases: no card is acquired (synStatus 26)"),
    NO_UVERBS: Kind(NODE, "/dev/infiniband is empty, as in a container without the RDMA devices"),
    NEEDS_RESET: Kind(CARD, "the card's status is 'Needs reset'", _RESET_OR_LOAD),
    IN_CREATION: Kind(CARD, "the card's status stays 'In device creation'", _LOAD),
    RESET_FAILED: Kind(CARD, "the heartbeat and the reset after it failed: 'Disabled', hl-smi -r is of no use", _LOAD),
    CPU_TIMEOUT: Kind(CARD, "the card's processor does not answer, at no load of the driver: 'Disabled'"),
    TEMPERATURE_ABSURD: Kind(CARD, "the card reports 505712272 C"),
    PCIE_GENERATION: Kind(CARD, "the PCIe link came up at a lower generation"),
    THROTTLED_POWER: Kind(CARD, "the card was slowed down to save power, once or --count times"),
    THROTTLED_THERMAL: Kind(CARD, "the card was slowed down for heat, once or --count times"),
    ECC_CORRECTED: Kind(CARD, "corrected memory errors are counted, one or --count"),
    ROW_PENDING: Kind(CARD, "rows of the card's memory wait to be replaced", _RESET_OR_LOAD),
    MEMORY_KEPT: Kind(CARD, "40 GiB stay in use after a process was killed, and no process is shown", _RESET_OR_LOAD),
    SPI_RELEASE: Kind(CARD, "the preboot (SPI) firmware is one release older than the other cards'", "hl-fw-loader"),
    PORT_FLAPPING: Kind(PORT, "the port's link goes down and comes back every few seconds"),
    PORT_SYMBOL_ERRORS: Kind(PORT, "the port stays UP with a high rate of symbol errors before their correction"),
    MAC_TIMEOUT: Kind(PORT, "the port's MAC does not reset when the NIC driver is loaded, and stays DOWN"),
    FIRMWARE_SKEW: Kind(CARD, "the card runs the firmware of one release before the other cards'", _LOAD),
    KERNEL_EVENT: Kind(CARD, "the kernel log has an event of the card: --event, or a double memory error"),
    PORT_MTU: Kind(PORT, "the port's MTU is not that of the other ports"),
    PORT_PFC: Kind(CARD, "flow control stays disabled on the card's ports whatever --set-pfc does"),
    GAUDINET_EMPTY: Kind(NODE, "gaudinet.json is empty", "writing the file"),
    SLOW_CARD: Kind(CARD, "hl_qual finds the card below its floors; no reading shows it"),
    SLOW_LINK: Kind(PORT, "hl_qual finds the internal port below its floor; the port is UP and counts no error"),
    QUAL_FAILED: Kind(CARD, "hl_qual fails on the card, in the mode --event or in every one"),
    GAUDINET_WRONG: Kind(NODE, "gaudinet.json has hardware addresses of other cards", "writing the file"),
}


def listing() -> str:
    """Every kind of fault: its name, what it hits, what a user then sees, what ends it."""
    return "".join(
        f"{kind:<19} {what.scope:<5} {what.description} (ends with {what.remedy})\n" for kind, what in REGISTRY.items()
    )


class FaultError(Exception):
    """The fault cannot be set as asked; the message says why."""


def make(
    kind: str,
    card: int | None,
    port: int | None,
    cards: int,
    external_ports: tuple[int, ...] = board.BOARDS[board.DEFAULT_BOARD].external_ports,
    count: int | None = None,
    event: str | None = None,
) -> dict[str, Any]:
    """The fault as the state keeps it, checked; card 0 and the first external port when none is named."""
    if kind in REFUSED:
        raise FaultError(f"{kind} cannot be simulated: {REFUSED[kind]}")
    if kind not in REGISTRY:
        raise FaultError(f"{kind} is no fault of this simulator: choose one of {', '.join(REGISTRY)}")
    if count is not None and (kind not in COUNTED or count < 1):
        raise FaultError(f"{count} is no count of {kind}: --count is 1 or more, of {', '.join(COUNTED)}")
    if event is not None and (kind not in NAMED or not event.replace("_", "").replace("-", "").isalnum()):
        raise FaultError(
            f"{event} is no event of {kind}: --event is a name like {DEFAULT_EVENT}, of {' and '.join(NAMED)}"
        )
    scope = REGISTRY[kind].scope
    if scope == NODE:
        if card is not None or port is not None:
            raise FaultError(f"{kind} concerns the whole node: leave out --card and --port")
        return {"kind": kind}
    if card is not None and not 0 <= card < cards:
        raise FaultError(f"card {card} does not exist: this node has cards 0 to {cards - 1}")
    fault: dict[str, Any] = {"kind": kind, "card": card or 0}
    if count is not None:
        fault["count"] = count
    if kind == KERNEL_EVENT:
        fault["event"] = event or DEFAULT_EVENT
    elif event is not None:
        fault["event"] = event
    if scope == CARD:
        if port is not None:
            raise FaultError(f"{kind} concerns a whole card: leave out --port")
        return fault
    if kind == SLOW_LINK:
        external_ports = tuple(number for number in range(board.PORTS) if number not in external_ports)
        if port is not None and port not in external_ports:
            raise FaultError(f"port {port} is external, which hl_qual does not measure: give one of {external_ports}")
    fault["port"] = external_ports[0] if port is None else port
    if not 0 <= fault["port"] < board.PORTS:
        raise FaultError(f"port {port} does not exist: a card has ports 0 to {board.PORTS - 1}")
    return fault


def is_same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether both are of one kind at one place, however bad each is."""
    return all(one.get(key) == other.get(key) for key in ("kind", "card", "port", "event"))
