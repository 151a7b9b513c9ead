"""``hl-smi -n``: ports of one card, their links and counters."""

from __future__ import annotations

from . import board, faults, node, paths
from .hl_smi_usage import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .releases import Release

VIEWS = ("ports", "link", "stats")

# Names in the public source of the Gaudi 2 NIC driver; [monitor] marks those that a public monitor knows of this view.
# That a Gaudi 3 counts the same, and their order, is UNCONFIRMED. Every value is a whole number.
COUNTERS = (
    "pcs_local_faults",  # [monitor]
    "pcs_remote_faults",  # [monitor]
    "pcs_remote_fault_reconfig",
    "pcs_link_restores",
    "etherStatsOctets",  # [monitor]
    "OctetsReceivedOK",  # [monitor]
    "OctetsTransmittedOK",  # [monitor]
    "aFramesReceivedOK",  # [monitor]
    "aFramesTransmittedOK",  # [monitor]
    "etherStatsPkts",  # [monitor]
    "Congestion Q err",  # [monitor]
    "Eth DB fifo overrun",
    "cw_corrected_accum",
    "cw_uncorrect_accum",
    "cw_corrected",
    "cw_uncorrect",
    "symbol_err_corrected_lane_0",
    "symbol_err_corrected_lane_1",
    "symbol_err_corrected_lane_2",
    "symbol_err_corrected_lane_3",
    "pre_FEC_SER_int",
    "pre_FEC_SER_exp (negative)",  # [monitor]
    "post_FEC_SER_int",
    "post_FEC_SER_exp (negative)",
    "bandwidth_gbps_int",
    "bandwidth_gbps_frac",
    "last_data_latency_usec_int",
    "last_data_latency_usec_frac",
)
# A sound link's rate of symbol errors before correction: 1e-9, a simulator value.
_SOUND = {"pre_FEC_SER_int": 1, "pre_FEC_SER_exp (negative)": 9}
# A bad one's: 5e-4, all of them corrected. Simulator values too: no public log of such a port is known.
_NOISY = {"pre_FEC_SER_int": 5, "pre_FEC_SER_exp (negative)": 4, "cw_corrected": 73412, "cw_corrected_accum": 73412}
_SECONDS_PER_FLAP = 6


def view(name: str, ports: str | None) -> Callable[[node.Node, list[node.Card], Release], str]:
    """A view of the named ports; links and counters of the internal ports where none is named, as the tool does."""
    if name not in VIEWS:
        raise UsageError(f"unknown network view '{name}': the views are {', '.join(VIEWS)}")
    numbers: list[int] = []
    if ports is not None:
        words = [word.strip() for word in ports.split(",")]
        for word in words:
            if not word.isdigit() or int(word) >= board.PORTS:
                raise UsageError(f"no port '{word}': the ports are 0 to {board.PORTS - 1}")
        numbers = [int(word) for word in words]

    def text(simulated: node.Node, cards: list[node.Card], info: Release) -> str:
        shown = numbers or (range(board.PORTS) if name == "ports" else simulated.board.internal_ports)
        lines = []
        for card in cards:
            up = simulated.ports_up(card)
            lines += [_line(name, simulated, card, port, port in up) for port in shown]
        return "".join(lines)

    return text


def counters(simulated: node.Node, card: node.Card, port: int, up: bool) -> dict[str, int]:
    """Every counter of one port. A port without a link counts a fault."""
    values = dict.fromkeys(COUNTERS, 0)
    values.update(_SOUND if up else {"pcs_local_faults": 1})
    if up and simulated.port_fault(faults.PORT_SYMBOL_ERRORS, card, port):
        values.update(_NOISY)
    flapping = simulated.port_fault(faults.PORT_FLAPPING, card, port)
    if flapping:
        times = 1 + int(max(0.0, paths.now() - flapping["since"])) // _SECONDS_PER_FLAP
        values.update({"pcs_local_faults": times, "pcs_link_restores": times})
    return values


def _line(name: str, simulated: node.Node, card: node.Card, port: int, up: bool) -> str:
    if name == "ports":
        return f"port {port}: {'external' if port in simulated.board.external_ports else 'internal'}\n"
    if name == "link":
        return f"port {port:2d}:\t{'UP' if up else 'DOWN'}\n"
    values = counters(simulated, card, port, up)
    return f"port {port}:\n" + "".join(f"\t{label}: {value}\n" for label, value in values.items())
