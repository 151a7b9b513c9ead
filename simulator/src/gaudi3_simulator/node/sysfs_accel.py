"""What the driver shows of a card: attributes, sensors, device files.

Names and forms of the attributes follow the public driver source (``drivers/accel/habanalabs/common/sysfs.c``), which
gives ``soft_reset`` and ``soft_reset_cnt`` only to cards for inference. Versions without a public value are ``0x00``.
"""

from __future__ import annotations

from . import cards, faults, node, readings, strictness
from .sysfs_pci import DEVICES
from .tree import CardFile, Device, Link, Text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .tree import Entry

ACCEL = "/sys/class/accel"
HWMON = "/sys/class/hwmon"
DEV = "/dev/accel"

_MAJOR = 261  # ACCEL_MAJOR of the kernel
_EEPROM_BYTES = 4096


def entries(simulated: node.Node, card: node.Card) -> dict[str, Entry]:
    """Every file of one card that the loaded driver makes, its ports left out."""
    pci = f"{DEVICES}/{card.bus_id}"
    files: dict[str, Entry] = {f"{pci}/{name}": Text(text + "\n") for name, text in _texts(simulated, card).items()}
    files[f"{pci}/hard_reset"] = Text("", 0o200)
    accel = f"{ACCEL}/accel{card.index}"
    files[f"{accel}/device"] = Link(f"../../../bus/pci/devices/{card.bus_id}")
    files[f"{accel}/dev"] = Text(f"{_MAJOR}:{card.index}\n")
    names = f"DEVNAME=accel/accel{card.index}\nDEVTYPE=accel_minor\n"
    files[f"{accel}/uevent"] = Text(f"MAJOR={_MAJOR}\nMINOR={card.index}\n{names}", 0o644)
    files.update(_readings(simulated, card, pci))
    owner = ("render", 0o660) if strictness.is_on("device-files-render") else ("root", 0o666)
    files[f"{DEV}/accel{card.index}"] = Device(*owner)
    files[f"{DEV}/accel_controlD{card.index}"] = Device(*owner)
    files[f"{cards.FOLDER}/accel{card.index}"] = CardFile(*owner)
    return files


def _texts(simulated: node.Node, card: node.Card) -> dict[str, str]:
    firmware = simulated.firmware_of(card)
    kind = simulated.board
    kernel = f"Linux {kind.generation} 5.10.18-{firmware}"
    return {
        "status": simulated.status(card),
        "device_type": kind.device_type,
        "module_id": str(card.module_id),
        "pci_addr": card.bus_id,
        "driver_ver": simulated.driver_version,
        "fw_os_ver": f"Zephyr 2.7.2-{firmware}",
        "preboot_btl_ver": f"Preboot version {card.spi}",
        "uboot_ver": f"U-Boot 2021.04-{firmware}",
        "armcp_ver": firmware,
        "cpucp_ver": firmware,
        "armcp_kernel_ver": kernel,
        "cpucp_kernel_ver": kernel,
        "cpld_ver": f"0x{kind.cpld_timestamp:08x}{kind.cpld_version:08x}",
        "fuse_ver": "0x00",
        "thermal_ver": "0x00",
        "vrm_ver": "0x00",
        "hard_reset_cnt": str(simulated.runtime["resets"].get(str(card.index), 0)),
        "security_enabled": "1",
        "parent_device": card.bus_id,
    }


def _readings(simulated: node.Node, card: node.Card, pci: str) -> dict[str, Entry]:
    """What the driver asks the card for: of one that is not operational it answers ENODEV, here the file is missing."""
    if simulated.status(card) != "Operational":
        return {}
    kind = simulated.board
    files: dict[str, Entry] = {
        f"{pci}/max_power": Text(f"{simulated.power_limit(card) * 1000}\n", 0o644),  # mW
        f"{pci}/clk_cur_freq_mhz": Text(f"{kind.clock_soc_mhz}\n"),
        f"{pci}/clk_max_freq_mhz": Text(f"{kind.clock_soc_mhz}\n", 0o644),
        f"{pci}/eeprom": Text(bytes(_EEPROM_BYTES)),
    }
    # Which sensors a Gaudi 3 has is UNCONFIRMED. The values are those of an idle card: a file cannot follow a job.
    number = card.index + 1
    hwmon = f"{pci}/hwmon/hwmon{number}"
    celsius = kind.temperature_idle_c
    if simulated.has_fault(faults.TEMPERATURE_ZERO, card.index):
        celsius = 0
    elif simulated.has_fault(faults.TEMPERATURE_ABSURD, card.index):
        celsius = readings.ABSURD_TEMPERATURE_C
    for name, text in {
        "name": kind.product,
        "temp1_input": str(celsius * 1000),
        "temp1_highest": str(celsius * 1000),
        "power1_input": str(kind.power_idle_w * 1_000_000),
        "power1_input_highest": str(kind.power_idle_w * 1_000_000),
    }.items():
        files[f"{hwmon}/{name}"] = Text(text + "\n")
    files[f"{hwmon}/device"] = Link(f"../../../{card.bus_id}")
    files[f"{HWMON}/hwmon{number}"] = Link(f"../../bus/pci/devices/{card.bus_id}/hwmon/hwmon{number}")
    return files
