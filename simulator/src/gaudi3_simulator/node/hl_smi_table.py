"""``hl-smi`` without options: the table, in the two forms that releases print."""

from __future__ import annotations

from . import board, node, readings, releases

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .releases import Release

# The newer form was seen from 1.21 and the older one up to 1.18; where each part changed is UNCONFIRMED.
FIRST_OF_NEW_FORM = (1, 21)

_DOUBLE = "|-------------------------------+----------------------+----------------------+"


def table(simulated: node.Node, cards: list[node.Card], info: Release) -> str:
    """The whole table. The driver's version stands in the third line, where readers look for it."""
    new = releases.version_key(info.release) >= FIRST_OF_NEW_FORM
    measured = readings.read_all(simulated)
    lines = [
        f"+{'-' * 77}+",
        _header("HL-SMI Version:", info.tool),
        _header("Driver Version:", simulated.driver_version),
    ]
    if new:
        lines.append(_header("Nic Driver Version:", simulated.nic_driver_version))
    errors = "Volatile Uncor-Events" if new else "Volatile Uncorr. ECC "
    lines += [
        _DOUBLE,
        f"| AIP  Name        Persistence-M| Bus-Id        Disp.A | {errors}|",
        "| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | AIP-Util  Compute M. |",
        "|===============================+======================+======================|",
    ]
    for card in cards:
        lines += [*_card(simulated, card, measured[card.index], new), _DOUBLE]
    lines += [
        "| Compute Processes:                                               AIP Memory |",
        "|  AIP       PID   Type   Process name                             Usage      |",
        "|=============================================================================|",
    ]
    for card in cards:
        lines += _processes(card, measured[card.index])
    lines.append(f"+{'=' * 77}+")
    return "\n".join(lines) + "\n"


def _header(label: str, value: str) -> str:
    return f"| {label}{value:>{66 - len(label)}}{'':10}|"


def _card(simulated: node.Node, card: node.Card, reading: readings.Reading, new: bool) -> list[str]:
    perf = "P0" if new else "N/A"
    busy = _text(reading.memory_utilization, "%") if new else "N/A"
    used = _text(reading.memory_used_mib, "MiB")
    errors = simulated.uncorrected_errors(card)
    return [
        f"|{card.index:4d}  {board.PRODUCT:<20}N/A  | {card.bus_id}     N/A |{errors:20d}  |",
        f"| N/A{_text(reading.temperature_c, 'C'):>6}{perf:>5}{_text(reading.power_w, 'W'):>6} /"
        f"{simulated.power_limit(card):5d}W  |{used:>9} /{board.MEMORY_TOTAL_MIB:>7}MiB |"
        f"{_text(reading.utilization, '%'):>7}{busy:>14} |",
    ]


def _text(value: int | None, unit: str) -> str:
    return "N/A" if value is None else f"{value}{unit}"


def _processes(card: node.Card, reading: readings.Reading) -> list[str]:
    if not reading.processes:
        return [f"|{card.index:4d}{'N/A':>11}{'N/A':>6}    {'N/A':<41}{'N/A':<11}|"]
    return [
        f"|{card.index:4d}{process.pid:11d}{'C':>6}    {process.name:<41.40}{f'{process.memory_mib}MiB':<11}|"
        for process in reading.processes
    ]
