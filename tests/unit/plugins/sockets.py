"""A folder in the place of /proc, in which processes listen."""

from __future__ import annotations

import ipaddress
import sys
from pathlib import Path


def cell(address: str, port: int) -> str:
    """An address and a port as the kernel's table of sockets has them."""
    raw = ipaddress.ip_address(address).packed
    words = (int.from_bytes(raw[at : at + 4], sys.byteorder) for at in range(0, len(raw), 4))
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"


class Sockets:
    """The kernel's tables of processes and sockets."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "net").mkdir(parents=True)
        for table in ("tcp", "tcp6"):
            (folder / "net" / table).write_text("  sl  local_address rem_address   st tx_queue rx_queue ...\n")

    def listen(self, address: str, port: int, name: str = "", unit: str = "", pid: int = 0, state: str = "0A") -> None:
        """Have a process listen; without a name, one that cannot be seen."""
        inode = str(10_000 + port + len(list(self.folder.iterdir())))
        row = f"   0: {cell(address, port)} 00000000:0000 {state} 0:0 00:0 0 0 0 {inode} 1\n"
        with (self.folder / "net" / ("tcp6" if ":" in address else "tcp")).open("a") as table:
            table.write(row)
        if name:
            process = self.folder / str(pid or inode)
            (process / "fd").mkdir(parents=True)
            (process / "comm").write_text(f"{name}\n")
            (process / "cgroup").write_text(f"0::{unit}\n")
            (process / "fd/7").symlink_to(f"socket:[{inode}]")
