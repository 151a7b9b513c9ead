"""The simulated board: an eight-card HL-325L tray. One place for every constant of the hardware.

Sizes, PCI ids and the idle memory follow public sources; the rest is a simulator value of the right shape.
Which ports are external depends on the board on hardware too, so nothing outside this file may assume a
number.
"""

from __future__ import annotations

PRODUCT = "HL-325L"
MODEL_NUMBER = "F08GL0DIG017A"
PCI_VENDOR = "1da3"
PCI_DEVICE = "1060"
PCI_CLASS = "0x120000"
PCI_REVISION = "01"
PCB_ASSEMBLY = "V0P"
PCB_VERSION = "R01"
HL_REVISION = 1
CPLD_VERSION = 4
CPLD_TIMESTAMP = 0x65A1B2C3

# Bus addresses of the tray's eight places; those above 0x80 hang on the second socket.
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

PORTS = 24
EXTERNAL_PORTS = (4, 13, 21)
INTERNAL_PORTS = tuple(port for port in range(PORTS) if port not in EXTERNAL_PORTS)
PORT_RATE = "200 Gb/sec (2X NDR)"

PCIE_GENERATION = 5
PCIE_SPEED = "32GT/s"
PCIE_WIDTH = 16
PCIE_DEGRADED_WIDTH = 8

MEMORY_TOTAL_MIB = 131072
MEMORY_IDLE_MIB = 672
MEMORY_BUSY_MIB = 88000
POWER_IDLE_W = 226
POWER_BUSY_W = 690
POWER_CAP_RANGE_W = (450, 850)
TEMPERATURE_IDLE_C = 36
TEMPERATURE_BUSY_C = 61
UTILIZATION_BUSY = 95
CLOCK_SOC_MHZ = 1600
CLOCK_TPC_MHZ = 1750


def power_cap_w(release: tuple[int, ...]) -> int:
    """Default power limit as a driver of this release reports it: 900 W seen up to 1.21, 850 W from 1.22."""
    return 900 if release < (1, 22) else 850


def is_external(port: int) -> bool:
    """Whether the port leaves the box."""
    return port in EXTERNAL_PORTS
