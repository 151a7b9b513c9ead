"""``hl-smi -n``: ports of one card, their links and counters."""

from __future__ import annotations

from . import board, node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .releases import Release

VIEWS = ("ports", "link", "stats")


def view(name: str, ports: str | None) -> Callable[[node.Node, list[node.Card], Release], str]:
    """A view of the named ports (link without ports shows the internal ones, as the tool does)."""
    from .hl_smi import UsageError

    if name not in VIEWS:
        raise UsageError(f"unknown network view '{name}': the views are {', '.join(VIEWS)}")
    if ports is None:
        numbers = list(board.INTERNAL_PORTS if name == "link" else range(board.PORTS))
    else:
        words = [word.strip() for word in ports.split(",")]
        for word in words:
            if not word.isdigit() or int(word) >= board.PORTS:
                raise UsageError(f"no port '{word}': the ports are 0 to {board.PORTS - 1}")
        numbers = [int(word) for word in words]

    def text(simulated: node.Node, cards: list[node.Card], info: Release) -> str:
        return "".join(_line(name, simulated, card, port) for card in cards for port in numbers)

    return text


def _line(name: str, simulated: node.Node, card: node.Card, port: int) -> str:
    if name == "ports":
        return f"port {port}: {'external' if board.is_external(port) else 'internal'}\n"
    up = simulated.port_up(card, port)
    if name == "link":
        return f"port {port:2d}:\t{'UP' if up else 'DOWN'}\n"
    # The full list of counters is UNCONFIRMED: these are the ones seen. A port without a link counts a fault.
    return (
        f"port {port}:\n"
        f"\tpcs_local_faults: {0 if up else 1}\n"
        f"\tpcs_remote_faults: 0\n"
        f"\tpre_fec_symbol_error_rate: {'0.000000e+00' if up else 'N/A'}\n"
    )
