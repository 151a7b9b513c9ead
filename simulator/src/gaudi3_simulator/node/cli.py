"""``gaudi3-simulator-node``: creates, boots, breaks and shows the simulated node."""

from __future__ import annotations

import argparse
import json
import os
import sys

from . import (
    bmc,
    board,
    boot,
    fault_log,
    fault_modules,
    fault_network,
    faults,
    follower,
    kernel,
    launchers,
    leftover,
    node,
    paths,
    readings,
    schedule,
    store,
    sysfs,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def main(arguments: Sequence[str]) -> int:
    """Run one command; an error is one sentence and exit code 1."""
    options = build_parser().parse_args(arguments)
    try:
        if not paths.is_root() and options.command != "status":
            raise store.StateError("changing the simulated node needs root: run this with sudo")
        code: int = options.run(options)
        return code
    except (store.StateError, faults.FaultError, kernel.KernelError, leftover.Refused) as error:
        sys.stderr.write(f"gaudi3-simulator-node: {error}\n")
        return 1


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gaudi3-simulator-node", description="The simulated Gaudi node of this machine"
    )
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("init", help="create the cards (nothing happens when they exist)")
    command.add_argument("--node", required=True, help="name of the node: the same name gives the same cards")
    command.add_argument("--cards", type=int, default=8, help=f"number of cards, 1 to {board.MAX_CARDS}")
    command.add_argument("--board", default=board.DEFAULT_BOARD, help=f"kind of card: {', '.join(board.BOARDS)}")
    places = "; ".join(f"{name}: {profile.description}" for name, profile in board.PROFILES.items())
    command.add_argument("--profile", default=board.DEFAULT_PROFILE, help=f"where the cards stand ({places})")
    command.add_argument("--spi-release", default="1.23.0", help="release of the cards' flashed preboot firmware")
    command.add_argument("--force", action="store_true", help="replace existing cards and faults")
    command.set_defaults(run=_init)
    commands.add_parser("boot", help="bring the node up; run by systemd").set_defaults(run=_boot)
    commands.add_parser("status", help="print the node as JSON").set_defaults(run=_status)
    text = "print what the node's stand-in management controller shows, as JSON"
    commands.add_parser("bmc", help=text).set_defaults(run=_bmc)
    command = commands.add_parser("fault", help="put a fault on the node, or take it away")
    command.add_argument("kind", nargs="?", help="kind of fault")
    command.add_argument("--card", type=int, help="accelerator index (default 0)")
    command.add_argument("--port", type=int, help="port (default: the first external one)")
    command.add_argument("--count", type=int, help=f"how often (default 1), of {', '.join(faults.COUNTED)}")
    command.add_argument("--event", help=f"event or mode, of {' and '.join(faults.NAMED)}")
    command.add_argument("--after", type=float, metavar="SECONDS", help="let it come this many seconds from now")
    command.add_argument("--at-boot", action="store_true", help="let it come with the next boot")
    command.add_argument("--share", type=int, metavar="PERCENT", help="let it be there in this share of the time")
    command.add_argument("--under-load", action="store_true", help="let it be there while a process holds the card")
    command.add_argument("--clear", action="store_true", help="take the fault away (on every card unless one is named)")
    command.add_argument("--clear-all", action="store_true", help="take every fault away")
    command.add_argument("--list", action="store_true", help="list the kinds of fault")
    command.set_defaults(run=_fault)
    command = commands.add_parser("follow", help="let scheduled faults come and go; started with the first of them")
    command.add_argument("--once", action="store_true", help="look once")
    command.set_defaults(run=_follow)
    command = commands.add_parser("install", help="write the node's launchers and unit; run when the image is made")
    command.add_argument("--root", default="", help="folder of the image")
    command.set_defaults(run=_install)
    return parser


def _init(options: argparse.Namespace) -> int:
    with store.Lock():
        if options.force or paths.read_text(paths.STATE) is None:
            store.save_state(
                store.new_state(options.node, options.cards, options.spi_release, options.board, options.profile)
            )
    return 0


def _boot(options: argparse.Namespace) -> int:
    boot.boot()
    return 0


def _status(options: argparse.Namespace) -> int:
    print(json.dumps(describe(node.Node.load()), indent=1))
    return 0


def _bmc(options: argparse.Namespace) -> int:
    print(json.dumps(bmc.resources(node.Node.load())))
    return 0


def describe(simulated: node.Node) -> dict[str, Any]:
    """The node for people and scripts."""
    measured = readings.read_all(simulated)
    up = {card.index: simulated.ports_up(card) for card in simulated.cards}
    return {
        "simulator": True,
        "node": simulated.state["node"],
        "board": simulated.board.product,
        "profile": simulated.state["profile"],
        "driver_up": simulated.driver_up,
        "driver_version": simulated.driver_version,
        "nic_driver_version": simulated.nic_driver_version,
        "modules": list(simulated.runtime["modules"]),
        "faults": simulated.active_faults,
        "cards": [
            {
                "index": card.index,
                "module_id": card.module_id,
                "bus_id": card.bus_id,
                "serial": card.serial,
                "uuid": card.uuid,
                "status": simulated.status(card),
                "temperature_c": measured[card.index].temperature_c,
                "utilization_percent": measured[card.index].utilization,
                "ports_up": [port for port in simulated.board.external_ports if port in up[card.index]],
                "ports_down": [port for port in simulated.board.external_ports if port not in up[card.index]],
            }
            for card in simulated.cards
        ],
    }


def _fault(options: argparse.Namespace) -> int:
    if options.list:
        print(faults.listing(), end="")
        return 0
    if not options.kind and not options.clear_all:
        raise faults.FaultError(f"no fault named: give one of {', '.join(faults.REGISTRY)}")
    with store.Lock():
        simulated = node.Node.load()
        before = list(simulated.state["faults"])
        if options.clear_all:
            kinds = {fault["kind"] for fault in simulated.state["faults"]}
            simulated.state["faults"] = []
        else:
            fault = faults.make(
                options.kind, options.card, options.port, len(simulated.all_cards), simulated.board.external_ports,
                options.count, options.event,
            )  # fmt: skip
            booted_at = simulated.runtime["booted_at"]
            schedule.add(
                fault, paths.now(), booted_at, options.after, options.at_boot, options.share, options.under_load
            )
            kinds = {options.kind}
            if options.clear:
                _clear(simulated, options)
            elif options.kind == faults.DEVICE_ACQUIRED:
                _acquire(simulated, fault)
            else:
                _set(simulated, fault)
        for fault in before:
            if fault not in simulated.state["faults"]:
                _undo(fault)
        _take_effect(simulated, kinds)
        follower.start(simulated)
    return 0


def _follow(options: argparse.Namespace) -> int:
    if options.once:
        with store.Lock():
            follower.look(node.Node.load())
    else:
        follower.follow()
    return 0


def _set(simulated: node.Node, fault: dict[str, Any]) -> None:
    """Put the fault on the node; one that is there already only gets its new count."""
    there = next((each for each in simulated.active_faults if faults.is_same(each, fault)), None)
    if there is not None:
        for option in schedule.OPTIONS:
            there.pop(option, None)
        there.update(fault)
        return
    simulated.state["faults"] = [each for each in simulated.state["faults"] if not faults.is_same(each, fault)]
    if fault["kind"] == faults.PORT_FLAPPING:
        fault["since"] = paths.now()
    if fault["kind"] in faults.MODULE_FILES:
        fault_modules.spoil(fault)
    if fault["kind"] in faults.NETWORK_FILES:
        fault_network.spoil(simulated, fault, empty=fault["kind"] == faults.GAUDINET_EMPTY)
    simulated.state["faults"].append(fault)
    if schedule.is_scheduled(fault):
        follower.look(simulated)
    else:
        fault_log.write_one(simulated, fault)


def _undo(fault: dict[str, Any]) -> None:
    """What has to be undone besides forgetting the fault."""
    if fault["kind"] == faults.DEVICE_ACQUIRED:
        leftover.stop(fault["card"], fault["pid"])
    elif fault["kind"] in faults.MODULE_FILES:
        fault_modules.restore(fault)
    elif fault["kind"] in faults.NETWORK_FILES:
        fault_network.restore(fault)


def _acquire(simulated: node.Node, fault: dict[str, Any]) -> None:
    """Start the process that this fault is, unless it is there."""
    if not simulated.has_fault(faults.DEVICE_ACQUIRED, fault["card"]):
        simulated.clear_fault(faults.DEVICE_ACQUIRED, fault["card"])
        fault["pid"] = leftover.start(fault["card"])
        simulated.state["faults"].append(fault)


def _clear(simulated: node.Node, options: argparse.Namespace) -> None:
    if options.port is None:
        simulated.clear_fault(options.kind, options.card)
        return
    gone = {"kind": options.kind, "card": options.card or 0, "port": options.port}
    simulated.state["faults"] = [fault for fault in simulated.state["faults"] if not faults.is_same(fault, gone)]


def _take_effect(simulated: node.Node, kinds: set[str]) -> None:
    """Let the kernel notice: some faults are about a moment (a load, a probe) that has to be lived again."""
    without_driver = (faults.DRIVER_NOT_LOADED, *faults.MODULE_FILES)
    if kinds & set(without_driver):
        if any(simulated.has_fault(kind) for kind in without_driver):
            kernel.unload_all(simulated)
        elif paths.read_text(paths.RUNTIME) is not None:
            boot.autoload(simulated)
    if faults.NO_FIRMWARE in kinds and simulated.loaded(node.DRIVER):
        kernel.probe(simulated)
    simulated.save()
    if os.path.exists(paths.at(paths.RUNTIME)):
        sysfs.apply(node.Node.load())  # anew: a fault may concern what a card is


def _install(options: argparse.Namespace) -> int:
    for path, (mode, text) in launchers.image_files().items():
        target = options.root + path
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(target, mode)
    return 0
