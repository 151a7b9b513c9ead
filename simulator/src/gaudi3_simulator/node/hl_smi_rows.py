"""``hl-smi --query-row-replacement``: replaced rows of the cards' memory, one line for each.

The vendor's page names the fields and both causes; the lines' form is that of ``-Q``.
"""

from __future__ import annotations

from . import conditions, node
from .hl_smi_usage import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .releases import Release

FIELDS = ("uuid", "replaced_rows.address", "replaced_rows.cause")


def view(fields: str, header: bool) -> Callable[[node.Node, list[node.Card], Release], str]:
    """The named fields of every replaced row."""
    names = [name.strip() for name in fields.split(",")]
    for name in names:
        if name not in FIELDS:
            raise UsageError(f"unknown field '{name}': the fields of a replaced row are {', '.join(FIELDS)}")

    def text(simulated: node.Node, cards: list[node.Card], info: Release) -> str:
        lines = [", ".join(names)] if header else []
        for card in cards:
            for address, cause in conditions.replaced_rows(simulated, card):
                values = dict(zip(FIELDS, (card.uuid, f"0x{address:016x}", cause)))  # noqa: B905 (Python 3.9)
                lines.append(", ".join(values[name] for name in names))
        return "".join(line + "\n" for line in lines)

    return text
