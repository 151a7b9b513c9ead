"""``hl-smi --fw-versions``: the firmware's parts of each card.

Only what public readers look for is known (intel/PerfSpect; aliases of a maker of servers): a line with the part's
name, and below it the part as ``component``. The columns, and further parts, are UNCONFIRMED.
"""

from __future__ import annotations

from . import hl_smi_log, node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .releases import Release


def firmware(simulated: node.Node, cards: list[node.Card], info: Release) -> str:
    """Each card's parts."""
    kind = simulated.board
    lines = []
    for card in cards:
        lines.append(hl_smi_log.title(card))
        cpld = f"0x{kind.cpld_version:x}.{kind.cpld_timestamp:x}"
        for part, component in (("erom", card.spi), ("cpld", cpld), ("preboot", card.spi)):
            lines += [f"\t{part}", hl_smi_log.entry("component", component, 2)]
    return "\n".join(lines) + "\n"
