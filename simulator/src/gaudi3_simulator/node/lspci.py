"""``lspci`` for the simulated cards; questions about other devices go to the real tool, if there is one."""

from __future__ import annotations

import os
import sys

from . import board, kernel, node, paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_CLASS = "Processing accelerators"
_VENDOR = "Habana Labs Ltd."


class _Unsupported(Exception):
    """Something that only the real tool knows."""


def main(arguments: Sequence[str]) -> int:
    """List cards as ``lspci`` does: -d, -s, -n, -nn, -D, -v, -vv, -k."""
    try:
        flags, chosen, slot = _parse(arguments)
    except _Unsupported as unsupported:
        if not paths.root() and os.access("/usr/bin/lspci", os.X_OK):
            os.execv("/usr/bin/lspci", ["lspci", *arguments])
        sys.stderr.write(
            f"lspci: '{unsupported}' is not simulated: use -d {board.PCI_VENDOR}: with -n, -nn, -D, -v, -k\n"
        )
        return 1
    simulated = node.Node.load()
    for card in sorted(simulated.cards, key=lambda card: card.bus_id):
        if chosen in ("", board.PCI_DEVICE) and slot in ("", card.bus_id, card.bus_id[5:]):
            print("\n".join(_lines(simulated, card, flags)))
    return 0


def _parse(arguments: Sequence[str]) -> tuple[str, str, str]:
    """Flags, device id (or nothing) and slot (or nothing)."""
    flags, vendor, device, slot = "", "", "", ""
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word[:2] in ("-d", "-s"):
            value = word[2:] or (rest.pop(0) if rest else "")
            if word[1] == "d":
                vendor, _, device = value.lower().partition(":")
                device = device.partition(":")[0].strip("*")
            else:
                slot = value.lower()
        elif word.startswith("-") and word[1:] and set(word[1:]) <= set("nDvk"):
            flags += word[1:]
        else:
            raise _Unsupported(word)
    if vendor not in ("", board.PCI_VENDOR) or (not vendor and not slot and not paths.root()):
        raise _Unsupported(f"-d {vendor}:" if vendor else "a list of every device")
    return flags, device, slot


def _lines(simulated: node.Node, card: node.Card, flags: str) -> list[str]:
    address = card.bus_id if "D" in flags else card.bus_id[5:]
    revision = f"(rev {board.PCI_REVISION})"
    if "nn" in flags:
        line = f"{address} {_CLASS} [1200]: {_VENDOR} Device [{board.PCI_VENDOR}:{board.PCI_DEVICE}] {revision}"
    elif "n" in flags:
        line = f"{address} 1200: {board.PCI_VENDOR}:{board.PCI_DEVICE} {revision}"
    else:
        line = f"{address} {_CLASS}: {_VENDOR} Device {board.PCI_DEVICE} {revision}"
    lines = [line]
    if "v" in flags:
        lines += [
            f"\tSubsystem: {_VENDOR} Device {board.PCI_DEVICE}",
            f"\tNUMA node: {card.numa_node}",
        ]
    if "vv" in flags:
        width = simulated.pcie_width(card)
        downgraded = " (downgraded)" if width < board.PCIE_WIDTH else ""
        lines += [
            f"\t\tLnkCap:\tPort #0, Speed {board.PCIE_SPEED}, Width x{board.PCIE_WIDTH}",
            f"\t\tLnkSta:\tSpeed {board.PCIE_SPEED}, Width x{width}{downgraded}",
        ]
    if "k" in flags or "v" in flags:
        if simulated.driver_up:
            lines.append("\tKernel driver in use: habanalabs")
        if paths.read_text(kernel.module_path(node.DRIVER)) is not None:
            lines.append("\tKernel modules: habanalabs")
    if "v" in flags:
        lines.append("")
    return lines
