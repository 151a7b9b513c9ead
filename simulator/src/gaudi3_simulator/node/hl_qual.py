"""``hl_qual``: the vendor's qualification of the cards. It computes nothing here: a mode fails where a fault says so.

Options and modes are those of the vendor's page and of a maker of servers who runs all of them. In the report the lines
"hl qual report", "Start running plugin" and "Finish running plugin with" were seen, and the last line is ``Passed`` or
``Failed``. Everything else that is printed, the exit code and which mode notices which fault are UNCONFIRMED.
"""

from __future__ import annotations

import os
import sys
import time

from . import cards as card_files
from . import conditions, faults, node, paths, releases, store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SECONDS = "/var/lib/gaudi3-simulator/hl-qual-seconds"
"""A file with the seconds that a mode takes, whatever ``-t`` says; without it 0.2 on a node and none in a test."""
DEFAULT_SECONDS = 0.2
LOGS = "/var/log/habana_logs"

# option of the mode: its name in the report
MODES = {
    "-f2": "functional",
    "-s": "power",
    "-e": "edp",
    "-p": "pcie",
    "-mb": "memory-bandwidth",
    "-hbm_dma_stress": "hbm",
    "-hbm_tpc_stress": "hbm",
    "-full_hbm_data_check_test": "hbm",
    "-nic_base": "nic",
    "-e2e_concurrency": "end-to-end",
    "-ser": "ser",
}
# Options that take a word, and those that take none.
_WITH_VALUE = ("-c", "-rmod", "-l", "-t", "-i", "-Tw", "-Ts", "-test_type", "-sz", "-ep", "-gen", "-serdes",
               "-enable_ports_check", "-sensors")  # fmt: skip
_ALONE = ("-dis_mon", "-b", "-memOnly", "-pciOnly", "-sync", "-toggle", "read", "write", "read_write", "full_rw")
_TEST_TYPES = ("pairs", "allreduce", "allgather", "bandwidth", "dir_bw", "loopback")


def main(arguments: Sequence[str], release: str) -> int:
    """Run one mode on the cards; 0 where all of them pass."""
    try:
        options, modes = _parsed(arguments)
        if not paths.is_root():
            raise _Refused("this needs root: run it with sudo")
        simulated = node.Node.load()
        if not simulated.driver_up:
            raise _Refused("the habanalabs driver is not up: load it first")
        _check(options, modes, simulated)
        chosen = [card for card in simulated.cards if options["-c"] in ("all", card.bus_id)]
        if not chosen:
            raise _Refused(f"no card at '{options['-c']}': give -c all or the PCI address of a card")
        held = card_files.holders()
        busy = [card for card in chosen if card.index in held]
        if busy:
            raise _Refused(f"accel{busy[0].index} is held by process {held[busy[0].index].pid}: end that first")
        time.sleep(paths.seconds(SECONDS, DEFAULT_SECONDS))
    except (_Refused, store.StateError, ValueError) as error:
        sys.stderr.write(f"hl_qual: {error}\n")
        return 1
    after = node.Node.load()
    causes = [f"accel{card.index} {card.bus_id}: {why}" for card in chosen for why in _causes(after, card, modes)]
    text = _report(modes, release, chosen, causes)
    print(text, end="")
    _write(text)
    return 1 if causes else 0


class _Refused(Exception):
    """The call makes no sense; the message says why."""


def _parsed(arguments: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    options: dict[str, str] = {"-c": "", "-rmod": ""}
    modes = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word in MODES:
            modes.append(word)
        elif word in _WITH_VALUE:
            if not rest:
                raise _Refused(f"{word} needs a value")
            options[word] = rest.pop(0)
        elif word in _ALONE or word in ("-gaudi2", "-gaudi3"):
            options[word] = ""
        else:
            raise _Refused(f"unknown option '{word}'")
    return options, modes


def _check(options: dict[str, str], modes: list[str], simulated: node.Node) -> None:
    wanted = f"-{simulated.board.generation}"
    if wanted not in options:
        raise _Refused(f"the cards are of another generation: give {wanted}")
    if not options["-c"]:
        raise _Refused("no card chosen: give -c all")
    if options["-rmod"] not in ("parallel", "serial"):
        raise _Refused(f"'{options['-rmod']}' is no run mode: give -rmod parallel or -rmod serial")
    if len({MODES[mode] for mode in modes}) != 1:
        raise _Refused(f"{len(modes)} tests chosen: give one of {', '.join(MODES)}")
    if modes == ["-nic_base"] and options.get("-test_type") not in _TEST_TYPES:
        raise _Refused(f"-nic_base needs -test_type with one of {', '.join(_TEST_TYPES)}")


def _causes(simulated: node.Node, card: node.Card, modes: list[str]) -> Iterator[str]:
    """Why a mode fails on a card."""
    mode = MODES[modes[0]]
    if simulated.status(card) != "Operational":
        yield f"the card is {simulated.status(card)}"
        return
    for fault in simulated.faults(faults.QUAL_FAILED, card.index):
        if fault.get("event") in (None, mode):
            yield f"{mode} failed"
    if mode in ("functional", "power", "edp", "end-to-end", "memory-bandwidth") and simulated.has_fault(
        faults.SLOW_CARD, card.index
    ):
        yield "the card computes below its floor"
    if mode == "hbm" and (conditions.uncorrected(simulated, card) or conditions.rows_pending(simulated, card)):
        yield "data read is not data written"
    if mode == "pcie" and (
        simulated.has_fault(faults.PCIE_WIDTH, card.index) or simulated.has_fault(faults.PCIE_GENERATION, card.index)
    ):
        yield "bandwidth below the floor of the link"
    if mode in ("power", "edp") and conditions.violations(simulated, card, "thermal"):
        yield "the card was slowed down for heat"
    if mode in ("nic", "ser"):
        yield from _ports(simulated, card, mode)


def _ports(simulated: node.Node, card: node.Card, mode: str) -> Iterator[str]:
    up = simulated.ports_up(card)
    for port in simulated.board.internal_ports:
        if port not in up:
            yield f"internal port {port} has no link"
        elif mode == "nic" and simulated.port_fault(faults.SLOW_LINK, card, port):
            yield f"internal port {port} is below its floor"
        elif mode == "ser" and simulated.port_fault(faults.PORT_SYMBOL_ERRORS, card, port):
            yield f"internal port {port} has too many symbol errors"


def _report(modes: list[str], release: str, chosen: list[node.Card], causes: list[str]) -> str:
    name = MODES[modes[0]]
    lines = [
        f"hl_qual {releases.release_info(release).release} (simulated: nothing is computed)",
        f"Start running plugin {name} on {len(chosen)} cards",
        *causes,
        f"Finish running plugin with {'errors' if causes else 'no errors'}",
        "hl qual report",
        "",
        "Failed" if causes else "Passed",
    ]
    return "".join(line + "\n" for line in lines)


def _write(text: str) -> None:
    """The report's file, named after the host and the time."""
    folder = f"{os.environ.get('HABANA_LOGS', LOGS).rstrip('/')}/qual"
    stamp = time.strftime("%Y-%m-%d_%H-%M-%S", time.gmtime(paths.now()))
    paths.write_atomically(f"{folder}/{os.uname().nodename}_hl_qual_report_{stamp}.log", text)
