"""Command ``gaudi3-simulator``: clusters of Gaudi 3 nodes without hardware."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from . import RequestError, SimulatorError, cluster, completion, controllers, nodes, reach, shelves, stages
from .clock import Teller
from .home import Cluster, clusters, load_cluster
from .node import board, faults, schedule
from .parser import build_parser, split
from .podman import Podman, missing_packages
from .suggestions import meant
from .terraform import read_machines
from .twin import commands as twins

_log = Teller()


def _status(as_json: bool) -> None:
    podman = None if missing_packages() else Podman()
    rows = []
    for each in clusters():
        running = podman.names(nodes.label(each.name), running=True) if podman else []
        rows += [
            {
                "cluster": each.name,
                "node": node.name,
                "address": node.address,
                "cards": node.cards,
                "running": nodes.container(each, node.name) in running,
            }
            for node in each.all_nodes()
        ]
    if as_json:
        print(json.dumps(rows, indent=2))
    elif not rows:
        print("no simulated cluster is up")
    else:
        for row in rows:
            state = "up" if row["running"] else "down"
            print(f"{row['cluster']:<16} {row['node']:<12} {row['address']:<16} {row['cards']} cards  {state}")


def _read(path: str, option: str) -> str:
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text()
    except (OSError, UnicodeDecodeError):
        raise RequestError(f"{option} was {path}, which cannot be read: give a file.") from None


def _stages(as_json: bool) -> None:
    rows: list[dict[str, Any]] = [
        {"stage": each.name, "nodes": [node.name for node in each.cluster.all_nodes()], "current": each.is_current}
        for each in stages.stages()
    ]
    if as_json:
        print(json.dumps(rows, indent=2))
    elif not rows:
        print("no stage is saved")
    else:
        for row in rows:
            state = "current" if row["current"] else "made from other sources"
            print(f"{row['stage']:<16} {', '.join(row['nodes'])}  {state}")


def _up(arguments: argparse.Namespace) -> Cluster:
    own = ("board", "profile", "system", "present_as", "kernel")
    if arguments.stage:
        _refuse_beside("--stage", arguments, "twins", "like", "authorized_key", *own)
        made, stage = stages.up_from(
            arguments.stage, arguments.name, arguments.nodes, not arguments.no_monitor, _log, arguments.subnet
        )
        if not stage.is_current:
            _log(f"warning: stage {stage.name} was made from other sources than these")
        return made
    if arguments.twins:
        _refuse_beside("--twins", arguments, "like", "authorized_key", *own)
        states = twins.nodes_of(Path(arguments.twins))
        return cluster.up_twins(arguments.name, states, not arguments.no_monitor, _log, arguments.subnet)
    if not arguments.like:
        if arguments.authorized_key:
            raise RequestError("--authorized-key was given without --like: give both, or neither.")
        return cluster.up(
            arguments.name, arguments.nodes, arguments.cards, not arguments.no_monitor, _log, arguments.subnet,
            arguments.system, arguments.present_as, arguments.board, arguments.profile, arguments.kernel,
        )  # fmt: skip
    _refuse_beside("--like", arguments, *own)
    key = _read(arguments.authorized_key, "--authorized-key") if arguments.authorized_key else ""
    machines = read_machines(_read(arguments.like, "--like"))
    return cluster.up_like(arguments.name, machines, _log, arguments.subnet, key)


def _refuse_beside(option: str, arguments: argparse.Namespace, *others: str) -> None:
    """Raise RequestError where an option came with one that it leaves no room for."""
    for other in others:
        if getattr(arguments, other):
            raise RequestError(f"{option} was given with --{other.replace('_', '-')}: give one of them.")


def _fault(arguments: argparse.Namespace) -> int:
    if arguments.node in faults.REGISTRY:
        raise RequestError(
            f"{arguments.node} is a kind of fault, and the node comes first: fault NODE {arguments.node}."
        )
    if not arguments.kind:
        if arguments.clear:
            where = arguments.node or "NODE"
            raise RequestError(f"--clear was given without a kind of fault: fault {where} KIND --clear.")
        print(faults.listing(), end="")
        print("\nFor example: gaudi3-simulator fault gaudi-1 port-down --card 3, and with --clear to end it.")
        return 0
    if arguments.kind in faults.REFUSED:
        raise RequestError(f"{arguments.kind} cannot be simulated: {faults.REFUSED[arguments.kind]}.")
    if arguments.kind not in faults.REGISTRY:
        raise RequestError(
            f"{arguments.kind} is no kind of fault: choose one of {', '.join(faults.REGISTRY)}."
            f"{meant(arguments.kind, faults.REGISTRY)}"
        )
    _check_fault(arguments)
    command = ["/usr/local/sbin/gaudi3-simulator-node", "fault", arguments.kind]
    for option in ("card", "port", "count", "event", "after", "share"):
        value = getattr(arguments, option)
        command += [] if value is None else [f"--{option}", str(value)]
    for option in ("at_boot", "under_load", "clear"):
        command += [f"--{option.replace('_', '-')}"] if getattr(arguments, option) else []
    result = cluster.exec_in(arguments.name, arguments.node, *command)
    print(result.stdout, end="")
    print(result.stderr, end="", file=sys.stderr)
    if result.returncode == 0:
        print(f"{arguments.node}: {arguments.kind} {'cleared' if arguments.clear else 'set'}")
    return result.returncode


def _check_fault(arguments: argparse.Namespace) -> None:
    """Refuse here what the node would refuse, with the exit code of a bad request."""
    known = load_cluster(arguments.name)
    cards = {node.name: node.cards for node in known.all_nodes()} if known else {}
    ports = board.BOARDS[known.board if known and known.board else board.DEFAULT_BOARD].external_ports
    given = (arguments.card, arguments.port, cards.get(arguments.node, 8), ports, arguments.count, arguments.event)
    try:
        made = faults.make(arguments.kind, *given)
        schedule.add(made, 0.0, 0.0, arguments.after, arguments.at_boot, arguments.share, arguments.under_load)
    except faults.FaultError as error:
        raise RequestError(f"{error}.") from None


def _from_report(arguments: argparse.Namespace) -> int:
    into = Path(arguments.into) if arguments.into else None
    lines, code = twins.from_report(Path(arguments.report), into, arguments.node, arguments.replay)
    print(*lines, sep="\n")
    return code


def _repository(arguments: argparse.Namespace) -> None:
    if arguments.releases == "":
        raise RequestError("--releases was empty: give one release or several, with commas between them.")
    releases = arguments.releases.split(",") if arguments.releases else []
    if arguments.shelf:
        cluster.preflight()
    with cluster.lock(), _log:
        choice = shelves.arrange(releases, arguments.fault, arguments.shelf, _log)
    print(f"the repository has {', '.join(choice.releases)}" + (f", with {choice.fault}" if choice.fault else ""))


def _completion(arguments: argparse.Namespace) -> None:
    if bool(arguments.shell) == bool(arguments.names):
        raise RequestError(f"completion was given without a shell: give one of {', '.join(completion.SHELLS)}.")
    if arguments.shell:
        print(completion.script(build_parser(), arguments.shell))
    else:
        print(*completion.names(arguments.names, arguments.line, arguments.name), sep="\n")


def main(argv: list[str] | None = None) -> int:
    """Entry point; errors are one sentence on stderr. Exit codes: 0 done, 1 failed, 2 a request that cannot be met."""
    given, behind = split(sys.argv[1:] if argv is None else argv)
    arguments = build_parser().parse_args(given)
    try:
        cluster.check_name(getattr(arguments, "name", "any"))
        if behind is not None and arguments.command != "ssh":
            raise RequestError(f"{arguments.command} takes no command behind --: only ssh does.")
        if arguments.command == "up":
            with _log:
                made = _up(arguments)
            names = ", ".join(f"{node.name} {node.address}" for node in made.all_nodes())
            print(f"simulated cluster {made.name} is up: {names}")
            print(*reach.next_steps(made), sep="\n")
        elif arguments.command == "down":
            names_down = [each.name for each in clusters()] if arguments.all else [arguments.name]
            for name in names_down:
                found = cluster.down(name)
                print(f"simulated cluster {name} {'removed' if found else 'was not up'}")
        elif arguments.command == "off":
            cluster.off(arguments.name, arguments.node)
            print(f"{arguments.node} is off")
        elif arguments.command == "restart":
            cluster.restart(arguments.name, arguments.node)
            print(f"{arguments.node} is up again")
        elif arguments.command == "repository":
            _repository(arguments)
        elif arguments.command == "prepare":
            with _log:
                cluster.prepare(_log, _log.step)
        elif arguments.command == "clean":
            cluster.clean()
            print("everything that the simulator made is removed")
        elif arguments.command == "status":
            _status(arguments.json)
        elif arguments.command == "save":
            with _log:
                saved = stages.save(arguments.name, arguments.stage, _log)
            print(f"stage {saved.name} holds {', '.join(node.name for node in saved.cluster.all_nodes())}")
        elif arguments.command == "stages":
            if arguments.remove:
                stages.remove(arguments.remove)
                print(f"stage {arguments.remove} removed")
            else:
                _stages(arguments.json)
        elif arguments.command == "fault":
            return _fault(arguments)
        elif arguments.command == "from-report":
            return _from_report(arguments)
        elif arguments.command == "from-inventory":
            places = (Path(place) for place in (arguments.inventory, arguments.reports, arguments.into))
            print(*twins.from_inventory(*places), sep="\n")
        elif arguments.command == "ssh":
            reach.enter(arguments.name, arguments.node, behind or [])
        elif arguments.command == "bmc":
            controllers.run(arguments.name)
        elif arguments.command == "open":
            print(*reach.opened(arguments.name, arguments.service, reach.browse), sep="\n")
        elif arguments.command == "completion":
            _completion(arguments)
    except SimulatorError as error:
        print(f"gaudi3-simulator: {error}", file=sys.stderr)
        return 2 if isinstance(error, RequestError) else 1
    return 0
