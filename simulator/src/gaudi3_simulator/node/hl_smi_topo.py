"""``hl-smi topo``: processors and memory nearest to each card, by module id.

Columns follow a public sample (HabanaAI/vllm-fork, README of its start scripts) and the expressions of its readers,
which need white space after the last column.
"""

from __future__ import annotations

from . import node, paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .releases import Release

_PCI = "/sys/bus/pci/devices"


def view(flags: Sequence[str]) -> Callable[[node.Node, list[node.Card], Release], str]:
    """The columns that the flags ask for."""
    columns = [name for flag, name in (("-c", "CPU Affinity"), ("-N", "NUMA Affinity")) if flag in flags]

    def text(simulated: node.Node, cards: list[node.Card], info: Release) -> str:
        rows = [["modID", *columns], ["-----", *("-" * len(name) for name in columns)]]
        for card in sorted(cards, key=lambda card: card.module_id):
            cells = {"CPU Affinity": _processors(card), "NUMA Affinity": str(card.numa_node)}
            rows.append([str(card.module_id), *(cells[name] for name in columns)])
        return "".join("\t".join([first, *(f"{cell}  " for cell in rest)]) + "\n" for first, *rest in rows)

    return text


def _processors(card: node.Card) -> str:
    listed = paths.read_text(f"{_PCI}/{card.bus_id}/local_cpulist") or ""
    return ", ".join(listed.strip().split(",")) or "N/A"
