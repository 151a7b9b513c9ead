"""A stand-in for hl-smi: two cards, in the shapes of the vendor's documentation.

It lists its calls, notices calls that overlap, and misbehaves as the words in the file ``mode`` beside it say.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

here = Path(__file__).parent
arguments = sys.argv[1:]
mode = (here / "mode").read_text().split()
with (here / "calls").open("a") as calls:
    calls.write(" ".join(arguments) + "\n")
try:
    (here / "running").mkdir()
except FileExistsError:
    (here / "overlap").touch()
if "slow" in mode:
    time.sleep(0.1)
if "hang" in mode:
    time.sleep(60)
(here / "running").rmdir()
if "endless" in mode:
    while True:
        sys.stdout.write("0, " * 10000)
if "digits" in mode:
    sys.set_int_max_str_digits(0)
if "down" in mode:
    sys.stderr.write("driver is not up\n")
    sys.exit(1)
if "broken" in mode:
    sys.stderr.write("Segmentation fault\n")
    sys.exit(139)
CARDS = [
    {
        "index": "0",
        "module_id": "3",
        "bus_id": "0000:E9:00.0",
        "serial": "AO00000001",
        "uuid": "01P4-A",
        "power.draw": "228",
        "temperature.aip": "36",
        "utilization.aip": "7",
    },
    {
        "index": "1",
        "module_id": "1",
        "bus_id": "0000:ea:00.0",
        "serial": "AO00000002",
        "uuid": "01P4-B",
        "power.draw": "N/A",
        "temperature.aip": "N/A",
        "utilization.aip": "N/A",
    },
]
COMMON = {
    "name": "HL-325L",
    "driver_version": "1.23.0-2eae87a",
    "memory.total": "131072",
    "memory.used": "672",
    "memory.free": "130400",
    "power.max": "850",
    "utilization.memory": "0",
    "clocks.current.soc": "1600",
    "clocks.max.soc": "1650",
    "ecc.mode.current": "Enabled",
    "pcie.link.speed.current": "32GT/s",
    "pcie.link.speed.max": "32GT/s",
    "pcie.link.width.current": "x8",
    "pcie.link.width.max": "x16",
    "stats.violation.power": "Not Active",
}
POWER = ({54: "700 W", 12: "35 W"}, {54: "N/A"})
if "upgraded" in mode:
    COMMON["driver_version"] = "1.24.0-abcdef0"
if "zero" in mode:
    CARDS[0]["temperature.aip"] = "0"
if "lost" in mode:
    del CARDS[1]
if "digits" in mode:
    CARDS[0].update({"temperature.aip": "9" * 400, "memory.used": "9" * 5000 + " MiB"})
if "word" in mode:
    CARDS[0].update({"temperature.aip": "hot", "pcie.link.width.current": "N/A", "memory.used": "N/A MiB"})
for identity in ("index", "module_id", "bus_id"):
    if f"no-{identity}" in mode:
        CARDS[1][identity] = "N/A"
firmware = "hl-gaudi3-1.24.0-fw-64.1.1-sec-9" if "upgraded" in mode else "hl-gaudi3-1.23.0-fw-62.2.1-sec-9"
if arguments[0] == "-Q":
    fields = arguments[1].split(",")
    if "old" in mode and "power.max" in fields:
        sys.stderr.write("unknown field\n")
        sys.exit(2)
    if "garbage" in mode:
        print("+-----------\n| HL-SM")
    else:
        for card in CARDS:
            print(", ".join(card.get(name, COMMON.get(name, "0")) for name in fields))
elif arguments[0] == "-L":
    print("================ HL-SMI LOG ================\n")
    print("Driver Version                          : 1.23.0-2eae87a\n")
    print(f"Attached AIPs                           : {len(CARDS)}\n")
    for card in CARDS:
        print(f"[{card['index']}] AIP (accel{card['index']}) {card['bus_id'].lower()}")
        print(f"        Firmware [SPI] Version          : Preboot version {firmware} (Nov 01 2025)")
        print(f"        Firmware [UBOOT] Version        : U-Boot 2021.04-{firmware} build#: 1")
        for volts, watts in POWER[int(card["index"])].items():
            print(f"\tPower Readings ({volts}V PSU)\n\t\tPower Draw              : {watts}")
elif arguments[:2] == ["-n", "ports"]:
    print("port 0: internal\nport 8: external")
elif arguments[:2] == ["-n", "link"]:
    if "nolink" in mode and arguments[3] == "0000:ea:00.0":
        sys.exit(3)
    for port in arguments[5].split(","):
        print(f"port {port:>2}:\t{'DOWN' if port == '8' and 'cut' in mode else 'UP'}")
else:
    sys.exit(2)
