"""``hl-smi`` without options: the table, in the two forms that releases print."""

from __future__ import annotations

from . import conditions, node, readings, releases

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .releases import Release

# Transcripts of 1.15.1, 1.17.1 and 1.18.0 show the older form, those from 1.20.0 on the newer one.
FIRST_OF_NEW_FORM = (1, 20)

_DOUBLE = "|-------------------------------+----------------------+----------------------+"
_WIDTH = len(_DOUBLE)


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
    second = _second_line if new else _second_line_before
    for card in cards:
        errors = f"{conditions.uncorrected(simulated, card):20d}"
        lines += [
            f"|{card.index:4d}  {simulated.board.product:<20}N/A  | {card.bus_id}     N/A |{errors}  |",
            second(simulated.power_limit(card), measured[card.index]),
            _DOUBLE,
        ]
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


def _second_line(limit: int, reading: readings.Reading) -> str:
    return (
        f"| N/A {_text(reading.temperature_c, 'C'):>5}{'P0':>5}{_text(reading.power_w, 'W'):>6} /{limit:5d}W  |"
        f"{_text(reading.memory_used_mib, 'MiB'):>9} /{_text(reading.memory_total_mib, 'MiB'):>10} |"
        f"{_text(reading.utilization, '%'):>7}{_text(reading.memory_utilization, '%'):>14} |"
    )


def _second_line_before(limit: int, reading: readings.Reading) -> str:
    """Cap and total are not padded there: with six digits the second separator stands one column to the right."""
    return (
        f"| N/A {_text(reading.temperature_c, 'C'):>5}   N/A{_text(reading.power_w, 'W'):>7} / {limit}W |"
        f"{_text(reading.memory_used_mib, 'MiB'):>10} / {_text(reading.memory_total_mib, 'MiB')} |"
        f"{_text(reading.utilization, '%'):>7}{'N/A':>14}"
    ).ljust(_WIDTH - 1)[: _WIDTH - 1] + "|"


def _text(value: int | None, unit: str) -> str:
    return "N/A" if value is None else f"{value}{unit}"


def _processes(card: node.Card, reading: readings.Reading) -> list[str]:
    if not reading.processes:
        return [f"|{card.index:4d}{'N/A':>11}{'N/A':>6}    {'N/A':<41}{'N/A':<11}|"]
    return [
        f"|{card.index:4d}{process.pid:11d}{'C':>6}    {process.name:<41.40}{f'{process.memory_mib}MiB':<11}|"
        for process in reading.processes
    ]
