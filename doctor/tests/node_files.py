"""A folder that stands for a node with two cards."""

from __future__ import annotations

from pathlib import Path

from gaudi3_doctor import cards
from gaudi3_doctor.host import Host

CARDS = ("0000:19:00.0", "0000:b3:00.0")
HL_SMI = """\
#!/bin/sh
case "$*" in
  "") echo "|   0  HL-325L 247W |" ;;
  -v) echo "hl-smi version hl-1.24.1-fw-62.6.2.0" ;;
  *hbm.sram*) echo "unknown field" >&2; exit 1 ;;
  -Q*csv,nounits) echo "247" ;;
  -Q*) echo "247 W" ;;
  -L) echo "Serial Number : AO99887766"; echo "AIP UUID : 01P4-XYZ" ;;
  "-n ports"*) echo "port 1: external" ;;
  *) echo "$*" ;;
esac
"""


class Machine:
    """A folder that is a node with two cards."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.bin = folder / "bin"
        self.bin.mkdir(parents=True)
        for number, address in enumerate(CARDS):
            card = f"{cards.PCI}/{address}"
            values = {"vendor": "0x1da3", "device": "0x1060", "status": "Operational", "module_id": str(1 - number)}
            values.update(current_link_width="16", max_link_width="16", preboot_btl_ver="Preboot hl-1.24.1")
            values.update({"net/ens1/operstate": "down", "net/ens1/address": "b0:fd:0b:01:02:03"})
            for name, value in values.items():
                self.write(f"{card}/{name}", f"{value}\n")
            self.link(f"{card}/iommu_group", f"/sys/kernel/iommu_groups/{number}")
            self.write(f"/sys/kernel/iommu_groups/{number}/type", "identity\n")
            self.link(f"{cards.ACCEL}/accel{number}/device", card)
            self.write(f"/dev/accel/accel{number}", "")
        self.write("/etc/hostname", "node17.lab.example.org\n")
        self.write("/etc/hosts", "127.0.0.1 localhost\n192.168.7.9 head.lab.example.org head\n")
        self.program("hl-smi", HL_SMI)
        self.host = Host(str(self.root), f"{self.bin}:/bin:/usr/bin")

    def write(self, path: str, text: str) -> Path:
        place = Path(str(self.root) + path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        return place

    def link(self, path: str, target: str) -> None:
        place = Path(str(self.root) + path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(str(self.root) + target)

    def program(self, name: str, text: str) -> Path:
        place = self.bin / name
        place.write_text(text)
        place.chmod(0o755)
        return place
