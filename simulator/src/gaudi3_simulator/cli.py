"""Command ``gaudi3-simulator``: clusters of Gaudi 3 nodes without hardware."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from . import SimulatorError, __version__, cluster, nodes, shelves, stages, systems
from .home import Cluster, clusters
from .node import faults
from .podman import Podman, missing_packages
from .terraform import read_machines


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def default_cluster() -> str:
    """The cluster that inventories/simulated shows, so that commands and playbooks are about the same nodes."""
    return os.environ.get("GAUDI3_SIMULATOR_CLUSTER") or "demo"


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gaudi3-simulator",
        description="Brings up simulated Gaudi 3 nodes: containers with systemd, ssh, the vendor's packages and tools.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name: str, text: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.add_argument("--name", default=default_cluster(), help="name of the cluster (default: %(default)s)")
        return added

    up = command("up", "bring a cluster up, or add nodes to it; nodes that run are left alone")
    up.add_argument("--nodes", type=int, default=2, help="Gaudi nodes (default: 2)")
    up.add_argument("--cards", type=int, default=8, help="cards in each new node (default: 8)")
    up.add_argument("--no-monitor", action="store_true", help="leave out the monitoring host monitor-1")
    up.add_argument(
        "--subnet", metavar="CIDR", help="network of a new cluster (default: a free one under 10.89.0.0/16)"
    )
    up.add_argument(
        "--like",
        metavar="FILE",
        help="nodes under the names, addresses and user of 'terraform output -json' in FILE (- for standard input); "
        "again with a newer one: adds and removes nodes accordingly",
    )
    up.add_argument("--authorized-key", metavar="FILE", help="with --like: public key that opens the nodes too")
    up.add_argument(
        "--system", choices=systems.SYSTEMS, default="", help="Debian of a new cluster's nodes (default: 12)"
    )
    up.add_argument(
        "--present-as",
        choices=systems.PRESENTATIONS,
        default="",
        help="supported system whose name a new cluster's nodes bear: the facts that roles look at, not its packages",
    )
    up.add_argument("--board", default="", help="kind of card of a new cluster's nodes (default: HL-325L)")
    up.add_argument("--profile", default="", help="where its cards stand: cluster (default), single or vm")
    up.add_argument("--stage", metavar="STAGE", help="a new cluster of the nodes that 'save' kept, as they were then")
    save = command("save", "keep a running cluster as a stage; its nodes are shut down for it, and started again")
    save.add_argument("stage", help="name of the stage, e.g. drivers")
    stages_command = commands.add_parser("stages", help="list the saved stages, or remove one")
    stages_command.add_argument("--json", action="store_true", help="as JSON")
    stages_command.add_argument("--remove", metavar="STAGE", help="remove this stage")
    down = command("down", "remove a cluster and all that it holds")
    down.add_argument("--all", action="store_true", help="every cluster of this simulator home")
    restart = command("restart", "switch a node off and on, or on after 'off', as a power cycle does")
    restart.add_argument("node", help="node, e.g. gaudi-1")
    off = command("off", "switch a node off without warning; 'restart' switches it on again")
    off.add_argument("node", help="node, e.g. gaudi-1")
    text = "choose what the repository of every cluster has; without options: what it has by default"
    repository = commands.add_parser("repository", help=text, description=text)
    repository.add_argument("--releases", metavar="RELEASE,...", help="published releases, e.g. 1.24.1-482,1.21.1-16")
    repository.add_argument("--fault", help="what is wrong with it, e.g. truncated-package")
    repository.add_argument(
        "--shelf",
        action="append",
        default=[],
        help="build this beside the packages, for each of --releases: pytorch (200 MB), image",
    )
    commands.add_parser("prepare", help="install the apt packages that simulated nodes need, saying which")
    commands.add_parser("clean", help="remove every cluster, the node image and all else that the simulator made")
    status = command("status", "show the nodes of every cluster")
    status.add_argument("--json", action="store_true", help="as JSON")
    fault = command("fault", "put a fault into a node, or take it out; without arguments, list the kinds of fault")
    fault.add_argument("node", nargs="?", help="node, e.g. gaudi-1")
    fault.add_argument("kind", nargs="?", help="kind of fault")
    fault.add_argument("--card", type=int, help="index of the card (default: 0)")
    fault.add_argument("--port", type=int, help="port of the card")
    fault.add_argument("--count", type=int, help="how often, of a fault that is counted (default: 1)")
    fault.add_argument("--event", help="name of the driver's event, or the mode of hl_qual that fails")
    fault.add_argument("--after", metavar="SECONDS", help="let the fault come so many seconds from now")
    fault.add_argument("--at-boot", action="store_true", help="let it come with the node's next boot")
    fault.add_argument("--share", metavar="PERCENT", help="let it be there in this share of the time only")
    fault.add_argument("--under-load", action="store_true", help="let it be there only while a process holds the card")
    fault.add_argument("--clear", action="store_true", help="take the fault out again")
    return parser


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
        raise SimulatorError(f"{option} was {path}, which cannot be read: give a file.") from None


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
    if arguments.stage:
        if arguments.board or arguments.profile:
            raise SimulatorError("--stage was given with --board or --profile: give one of them.")
        if arguments.like or arguments.authorized_key or arguments.system or arguments.present_as:
            raise SimulatorError(
                "--stage was given with --like, --authorized-key, --system or --present-as: give one of them."
            )
        made, stage = stages.up_from(
            arguments.stage, arguments.name, arguments.nodes, not arguments.no_monitor, _say, arguments.subnet
        )
        if not stage.is_current:
            _say(f"warning: stage {stage.name} was made from other sources than these")
        return made
    if not arguments.like:
        if arguments.authorized_key:
            raise SimulatorError("--authorized-key was given without --like: give both, or neither.")
        return cluster.up(
            arguments.name, arguments.nodes, arguments.cards, not arguments.no_monitor, _say, arguments.subnet,
            arguments.system, arguments.present_as, arguments.board, arguments.profile,
        )  # fmt: skip
    if arguments.board or arguments.profile:
        raise SimulatorError("--like was given with --board or --profile: give one of them.")
    if arguments.system or arguments.present_as:
        raise SimulatorError("--like was given with --system or --present-as: give one of them.")
    key = _read(arguments.authorized_key, "--authorized-key") if arguments.authorized_key else ""
    machines = read_machines(_read(arguments.like, "--like"))
    return cluster.up_like(arguments.name, machines, _say, arguments.subnet, key)


def _fault(arguments: argparse.Namespace) -> int:
    if arguments.node in faults.REGISTRY:
        raise SimulatorError(
            f"{arguments.node} is a kind of fault, and the node comes first: fault NODE {arguments.node}."
        )
    if not arguments.kind:
        if arguments.clear:
            where = arguments.node or "NODE"
            raise SimulatorError(f"--clear was given without a kind of fault: fault {where} KIND --clear.")
        print(faults.listing(), end="")
        print("\nFor example: gaudi3-simulator fault gaudi-1 port-down --card 3, and with --clear to end it.")
        return 0
    if arguments.kind in faults.REFUSED:
        raise SimulatorError(f"{arguments.kind} cannot be simulated: {faults.REFUSED[arguments.kind]}.")
    if arguments.kind not in faults.REGISTRY:
        raise SimulatorError(f"{arguments.kind} is no kind of fault: choose one of {', '.join(faults.REGISTRY)}.")
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


def _repository(arguments: argparse.Namespace) -> None:
    if arguments.releases == "":
        raise SimulatorError("--releases was empty: give one release or several, with commas between them.")
    releases = arguments.releases.split(",") if arguments.releases else []
    if arguments.shelf:
        cluster.preflight()
    with cluster.lock():
        choice = shelves.arrange(releases, arguments.fault, arguments.shelf, _say)
    print(f"the repository has {', '.join(choice.releases)}" + (f", with {choice.fault}" if choice.fault else ""))


def main(argv: list[str] | None = None) -> int:
    """Entry point; errors are one sentence on stderr and exit code 1."""
    arguments = build_parser().parse_args(argv)
    try:
        if arguments.command == "up":
            made = _up(arguments)
            names = ", ".join(f"{node.name} {node.address}" for node in made.all_nodes())
            print(f"simulated cluster {made.name} is up: {names}")
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
            cluster.prepare(_say)
        elif arguments.command == "clean":
            cluster.clean()
            print("everything that the simulator made is removed")
        elif arguments.command == "status":
            _status(arguments.json)
        elif arguments.command == "save":
            saved = stages.save(arguments.name, arguments.stage, _say)
            print(f"stage {saved.name} holds {', '.join(node.name for node in saved.cluster.all_nodes())}")
        elif arguments.command == "stages":
            if arguments.remove:
                stages.remove(arguments.remove)
                print(f"stage {arguments.remove} removed")
            else:
                _stages(arguments.json)
        elif arguments.command == "fault":
            return _fault(arguments)
    except SimulatorError as error:
        print(f"gaudi3-simulator: {error}", file=sys.stderr)
        return 1
    return 0

    sys.exit(main())
