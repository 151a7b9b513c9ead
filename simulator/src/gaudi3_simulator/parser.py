"""The commands and options of ``gaudi3-simulator``, and what a shell offers for each."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import NoReturn

from . import __version__, systems
from .completion import NAMES, SHELLS, names_of
from .reach import DEFAULT_CLUSTER, SERVICES
from .suggestions import meant_choice


def default_cluster() -> str:
    """The cluster that inventories/simulated shows, so that commands and playbooks are about the same nodes."""
    return os.environ.get("GAUDI3_SIMULATOR_CLUSTER") or DEFAULT_CLUSTER


class Parser(argparse.ArgumentParser):
    """An error is one sentence, with the nearest name where a word is not known."""

    def error(self, message: str) -> NoReturn:
        """Exit code 2."""
        self.exit(
            2, f"gaudi3-simulator: {message} ('{self.prog} --help' shows what there is).{meant_choice(message)}\n"
        )


def build_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="gaudi3-simulator",
        description="Brings up simulated Gaudi 3 nodes: containers with systemd, ssh, the vendor's packages and tools.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True)

    def bare(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=text, description=text)

    def command(name: str, text: str) -> argparse.ArgumentParser:
        added = bare(name, text)
        named = added.add_argument(
            "--name", default=default_cluster(), help="name of the cluster (default: %(default)s)"
        )
        offer(named, "clusters")
        return added

    def offer(argument: argparse.Action, kind: str) -> None:
        """Have shells offer names; shtab reads this attribute."""
        argument.complete = names_of(kind)  # type: ignore[attr-defined]

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
    up.add_argument(
        "--kernel",
        metavar="RELEASE",
        default="",
        help="kernel that a new cluster's nodes show, e.g. 6.8.0-51-generic (default: this machine's)",
    )
    up.add_argument("--board", default="", help="kind of card of a new cluster's nodes (default: HL-325L)")
    up.add_argument("--profile", default="", help="where its cards stand: cluster (default), single or vm")
    stage = up.add_argument("--stage", help="a new cluster of the nodes that 'save' kept, as they were then")
    offer(stage, "stages")
    up.add_argument(
        "--twins", metavar="FOLDER", help="a new cluster of the twins that 'from-inventory' or 'from-report' made"
    )
    text = "make a simulated node of an owner's: of a doctor's report, a support bundle or a table of hl-smi"
    twin = bare("from-report", text)
    twin.add_argument("report", metavar="REPORT", help="the report, or with --replay the folder of a twin")
    twin.add_argument("--into", metavar="FOLDER", help="new folder for the twin")
    twin.add_argument("--node", default="gaudi-1", help="name of the simulated node (default: %(default)s)")
    twin.add_argument(
        "--replay", action="store_true", help="let the health engine judge the twin, and compare with the report"
    )
    text = "make a simulated node of each Gaudi host of an inventory, by reports named after the hosts"
    twins = bare("from-inventory", text)
    twins.add_argument("inventory", metavar="INVENTORY", help="inventory that Ansible reads")
    twins.add_argument(
        "--reports", metavar="FOLDER", required=True, help="folder with HOST.json or HOST.tar.gz of each"
    )
    twins.add_argument("--into", metavar="FOLDER", required=True, help="new folder for the twins")
    save = command("save", "keep a running cluster as a stage; its nodes are shut down for it, and started again")
    save.add_argument("stage", help="name of the stage, e.g. drivers")
    stages_command = bare("stages", "list the saved stages, or remove one")
    stages_command.add_argument("--json", action="store_true", help="as JSON")
    offer(stages_command.add_argument("--remove", metavar="STAGE", help="remove this stage"), "stages")
    down = command("down", "remove a cluster and all that it holds")
    down.add_argument("--all", action="store_true", help="every cluster of this simulator home")
    restart = command("restart", "switch a node off and on, or on after 'off', as a power cycle does")
    offer(restart.add_argument("node", help="node, e.g. gaudi-1"), "nodes")
    off = command("off", "switch a node off without warning; 'restart' switches it on again")
    offer(off.add_argument("node", help="node, e.g. gaudi-1"), "nodes")
    text = "choose what the repository of every cluster has; without options: what it has by default"
    repository = bare("repository", text)
    repository.add_argument("--releases", metavar="RELEASE,...", help="published releases, e.g. 1.24.1-482,1.21.1-16")
    repository.add_argument("--fault", help="what is wrong with it, e.g. truncated-package")
    repository.add_argument(
        "--shelf",
        action="append",
        default=[],
        help="build this beside the packages, for each of --releases: pytorch (200 MB), image",
    )
    bare("prepare", "install the apt packages that simulated nodes need, saying which")
    bare("clean", "remove every cluster, the node image and all else that the simulator made")
    status = command("status", "show the nodes of every cluster")
    status.add_argument("--json", action="store_true", help="as JSON")
    fault = command("fault", "put a fault into a node, or take it out; without arguments, list the kinds of fault")
    offer(fault.add_argument("node", nargs="?", help="node, e.g. gaudi-1"), "nodes")
    offer(fault.add_argument("kind", nargs="?", help="kind of fault"), "faults")
    fault.add_argument("--card", type=int, help="index of the card (default: 0)")
    fault.add_argument("--port", type=int, help="port of the card")
    fault.add_argument("--count", type=int, help="how often, of a fault that is counted (default: 1)")
    fault.add_argument("--event", help="name of the driver's event, or the mode of hl_qual that fails")
    fault.add_argument("--after", type=float, metavar="SECONDS", help="let the fault come this many seconds from now")
    fault.add_argument("--at-boot", action="store_true", help="let it come with the node's next boot")
    fault.add_argument("--share", type=int, metavar="PERCENT", help="let it be there in this share of the time only")
    fault.add_argument("--under-load", action="store_true", help="let it be there only while a process holds the card")
    fault.add_argument("--clear", action="store_true", help="take the fault out again")
    ssh = command("ssh", "log in to a node, or run a command there, as in: ssh gaudi-1 -- uptime")
    ssh.usage = f"{ssh.prog} [--name NAME] [NODE] [-- COMMAND ...]"
    offer(ssh.add_argument("node", nargs="?", metavar="NODE", help="node (default: the first one)"), "nodes")
    command("bmc", "serve a stand-in management controller (BMC) for each node, for readers alone, until it is ended")
    opening = command("open", "say how to open a service of the monitoring host, and open it where there is a display")
    opening.add_argument(
        "service", choices=tuple(SERVICES), help="service whose address, user and password file to show"
    )
    script = command("completion", "print the script that completes commands, options and names in your shell")
    script.add_argument("shell", nargs="?", choices=SHELLS, help="your shell")
    script.add_argument("--names", choices=NAMES, help="print these names, one a line, as the script asks for them")
    script.add_argument("--line", default="", help="with --names: the command line so far, which may name a cluster")
    return parser


def split(command_line: Sequence[str]) -> tuple[list[str], list[str] | None]:
    """What is before the first ``--``, and the command of a node behind it; None where there is no ``--``."""
    place = command_line.index("--") if "--" in command_line else len(command_line)
    return [*command_line[:place]], [*command_line[place + 1 :]] if place < len(command_line) else None
