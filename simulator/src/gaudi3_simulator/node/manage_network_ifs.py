"""``manage_network_ifs.sh``: brings the external ports up and down, and sets flow control.

The wording of ``--status``, and of a host without port devices, follows older public versions of the script; that of
the other operations is the simulator's own (UNCONFIRMED on hardware).
"""

from __future__ import annotations

import sys

from . import faults, node, paths, releases, store, strictness, sysfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_HELP = """\
manage_network_ifs.sh, simulated: no Gaudi port was touched (gaudi3.scale simulator)

usage: manage_network_ifs.sh OPERATION [OPTION]
  --up           bring all external ports up
  --down         bring all external ports down
  --status       show which external ports are up
  --set-pfc      enable flow control on priorities 0, 1, 2 and 3
  --unset-pfc    disable flow control
  --check-pfc    show the flow control of the external ports
  --no-progbar   no progress bar
  -v             version
  -h             this text
"""
_OPERATIONS = ("--up", "--down", "--status", "--set-pfc", "--unset-pfc", "--check-pfc")
_PRIORITIES = [0, 1, 2, 3]


def main(arguments: Sequence[str], release: str) -> int:
    """Run one operation on every card."""
    chosen = [word for word in arguments if word in _OPERATIONS]
    unknown = [word for word in arguments if word not in (*_OPERATIONS, "--no-progbar", "-v", "-h")]
    if "-h" in arguments or not arguments:
        print(_HELP, end="")
        return 0 if arguments else 1
    if "-v" in arguments and not chosen and not unknown:
        print(f"manage_network_ifs.sh {releases.release_info(release).release} (simulated)")
        return 0
    if unknown:
        return _refuse(f"unknown option '{unknown[0]}': see manage_network_ifs.sh -h")
    if len(chosen) != 1:
        return _refuse(f"{len(chosen)} operations given: give one of {', '.join(_OPERATIONS)} per run")
    if not paths.is_root():
        return _refuse("this needs root: run it with sudo")
    try:
        with store.Lock():
            simulated = node.Node.load()
            if chosen[0] == "--status":
                _print(_status(simulated))
                return 0
            if not _ports(simulated):
                print("Warning: no habanalabs network interfaces were detected")
                return 1 if strictness.is_on("no-port-devices-fail") else 0
            if chosen[0] == "--check-pfc":
                _print(_pfc(simulated))
                return 0
            _change(simulated, chosen[0])
            simulated.save()
            sysfs.apply(simulated)
    except store.StateError as error:
        return _refuse(str(error))
    if chosen[0] in ("--up", "--down") and "--no-progbar" not in arguments:
        print(f"[{'#' * 40}] 100%")
    if chosen[0] in ("--up", "--down"):
        _print(_status(simulated))
    return 0


def _ports(simulated: node.Node) -> tuple[int, ...]:
    """The external ports of each card that are network devices of this host."""
    there = simulated.driver_up and simulated.has_port_devices
    return simulated.board.external_ports if there else ()


def _change(simulated: node.Node, operation: str) -> None:
    for card in simulated.cards:
        key = str(card.index)
        if operation == "--up":
            simulated.runtime["ports_up"][key] = list(simulated.board.external_ports)
        elif operation == "--down":
            simulated.runtime["ports_up"].pop(key, None)
        elif operation == "--set-pfc":
            simulated.runtime["pfc"][key] = _PRIORITIES
        else:
            simulated.runtime["pfc"].pop(key, None)


def _status(simulated: node.Node) -> Iterator[str]:
    present = {card.index for card in simulated.cards} if simulated.driver_up else set()
    ports = _ports(simulated)
    for card in simulated.all_cards:
        name = f"accel{card.index}"
        if card.index not in present:
            yield f"{name} doesn't exist"
        elif simulated.status(card) != "Operational":
            yield f"{name} is not operational"
        else:
            linked = simulated.ports_up(card)
            up = [port for port in ports if port in linked]
            down = [port for port in ports if port not in up]
            yield name
            if up:
                yield f"{len(up)} ports up ({_numbers(up)})"
            if down:
                yield f"{len(down)} ports down ({_numbers(down)})"
            if not ports:
                yield "no interfaces were detected"


def _pfc(simulated: node.Node) -> Iterator[str]:
    for card in simulated.cards:
        disabled = simulated.has_fault(faults.PORT_PFC, card.index)
        priorities = [] if disabled else simulated.runtime["pfc"].get(str(card.index), [])
        state = f"enabled on priorities {_numbers(priorities)}" if priorities else "disabled"
        yield f"accel{card.index}"
        yield f"pfc {state} (ports {_numbers(list(simulated.board.external_ports))})"


def _numbers(numbers: list[int]) -> str:
    return ", ".join(str(number) for number in numbers)


def _print(lines: Iterator[str]) -> None:
    for line in lines:
        print(line)


def _refuse(message: str) -> int:
    sys.stderr.write(f"manage_network_ifs.sh: {message}\n")
    return 1
