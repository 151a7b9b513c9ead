"""Bringing simulated clusters up and down."""

from __future__ import annotations

import ipaddress
import json
import os
import re
import secrets
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fcntl import LOCK_EX, flock
from typing import Any

from . import RequestError, SimulatorError
from .at_once import at_once
from .home import Cluster, Node, clusters, home, load_cluster
from .image import ensure_device, ensure_image
from .limits import raise_limits, restore_limits
from .network import check_same_subnet, free_subnet, new_subnet
from .node.board import BOARDS, DEFAULT_BOARD, DEFAULT_PROFILE, PROFILES
from .nodes import container, label, let_in, record_host_keys, start_node, start_vault, update_hosts, wait_until_booted
from .podman import PACKAGES, Podman, missing_packages
from .shelves import build_chosen, ensure_pytorch
from .suggestions import meant
from .systems import PRESENTATIONS, choose, distribution
from .systems.shown_kernel import check
from .terraform import Machines, subnet_of
from .vendor.rpm import build_rpm_repository

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_MAX_NODES = 64

Log = Callable[[str], None]


@contextmanager
def lock() -> Iterator[None]:
    """One change at a time to clusters, images and stages."""
    home().mkdir(parents=True, exist_ok=True)
    with (home() / "lock").open("w") as stream:
        flock(stream, LOCK_EX)
        yield


def preflight() -> None:
    """Say in one sentence what this machine lacks."""
    if os.geteuid() != 0:
        raise SimulatorError("Simulated nodes need root (systemd in containers, a network of their own): use sudo.")
    missing = missing_packages()
    if missing:
        raise SimulatorError(
            f"Simulated nodes need {' '.join(missing)}: apt-get install --no-install-recommends {' '.join(PACKAGES)}"
        )


def prepare(log: Log, step: Callable[[int, int], None] = lambda _number, _total: None) -> None:
    """Install what is missing of the apt packages, after saying so; build node image and PyTorch's tarball once.

    ``step`` gets the number of the step that begins and the number of steps; a step without work reports nothing.
    """
    step(1, 3)
    missing = missing_packages()
    if missing:
        _install(missing, log)
    preflight()
    with lock():
        step(2, 3)
        at_once(lambda: ensure_image(Podman(), log), lambda: ensure_device(log))
        step(3, 3)
        ensure_pytorch(log)


def _install(missing: list[str], log: Log) -> None:
    """Install apt packages; stops in one sentence where that is not possible."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        preflight()
    log(f"installing with apt-get: {' '.join(missing)}")
    apt = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300"]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for step in (["update"], ["install", "-y", "--no-install-recommends", *missing]):
        result = subprocess.run([*apt, *step], env=environment, capture_output=True, text=True, check=False)
        if result.returncode:
            last = (result.stderr.strip().splitlines() or ["no message"])[-1]
            raise SimulatorError(f"'apt-get {step[0]}' failed: {last}")


def _wanted(cluster: Cluster, nodes: int, cards: int, monitor: bool) -> Cluster:
    hosts = list(ipaddress.ip_network(cluster.subnet))
    have = {node.name: node for node in cluster.nodes}
    every = [
        have.get(f"gaudi-{index}", Node(f"gaudi-{index}", str(hosts[10 + index]), cards))
        for index in range(1, max(nodes, len(have)) + 1)
    ]
    watching = Node("monitor-1", str(hosts[3])) if monitor else None
    return replace(cluster, nodes=every, monitor=cluster.monitor or watching)


def up(
    name: str, nodes: int, cards: int, monitor: bool, log: Log, subnet: str | None = None,
    system: str = "", present_as: str = "", board: str = "", profile: str = "", kernel: str = "",
) -> Cluster:  # fmt: skip
    """Bring cluster ``name`` to at least ``nodes`` Gaudi nodes; nodes that run already are left alone.

    New clusters run ``system``, one of ``systems.SYSTEMS``, present themselves as ``present_as`` and show the release
    ``kernel``; their nodes have cards of a ``board`` at the place of a ``profile`` (``node.board``).
    """
    if not 1 <= nodes <= _MAX_NODES:
        raise RequestError(f"--nodes was {nodes}: give 1 to {_MAX_NODES}.")
    if not 1 <= cards <= 8:
        raise RequestError(f"--cards was {cards}: a Gaudi 3 node has 1 to 8 cards.")
    choose(system, present_as)
    if kernel:
        check(kernel)
    for option, wish, known_ones in (("--board", board, BOARDS), ("--profile", profile, PROFILES)):
        if wish and wish not in known_ones:
            raise RequestError(f"{option} was {wish}: give one of {', '.join(known_ones)}.{meant(wish, known_ones)}")

    def wanted(known: Cluster | None) -> Cluster:
        if known is None:
            network = new_subnet(subnet) if subnet else free_subnet(name)
            debian = choose(system, present_as).name
            made = Cluster(
                name, network, system=debian, present_as=present_as, kernel=kernel, board=board, profile=profile
            )
            return _wanted(made, nodes, cards, monitor)
        if known.like:
            raise RequestError(f"Cluster {name} was made with --like: give --like again, or another --name.")
        check_same_subnet(known, subnet)
        for option, wish, have, usual in (
            ("--system", system, known.system, "debian-12"),
            ("--present-as", present_as, known.present_as, ""),
            ("--kernel", kernel, known.kernel, ""),
            ("--board", board, known.board, DEFAULT_BOARD),
            ("--profile", profile, known.profile, DEFAULT_PROFILE),
        ):
            if wish and wish != (have or usual):
                raise RequestError(f"Cluster {name} has {option} {have or 'of the default'}: give another --name.")
        return _wanted(known, nodes, cards, monitor)

    return bring_up(name, wanted, log)


def up_like(name: str, machines: Machines, log: Log, subnet: str | None = None, authorized_key: str = "") -> Cluster:
    """Bring cluster ``name`` to exactly ``machines``: the same names, addresses and user; what runs is left alone."""

    def wanted(known: Cluster | None) -> Cluster:
        if known is None:
            network = new_subnet(subnet_of(machines, subnet))
            return Cluster(name, network, machines.nodes, machines.monitor, machines.user, authorized_key, like=True)
        if not known.like:
            raise RequestError(f"Cluster {name} was made without --like: give another --name, or take it down first.")
        check_same_subnet(known, subnet)
        subnet_of(machines, known.subnet)
        return replace(known, nodes=machines.nodes, monitor=machines.monitor)

    return bring_up(name, wanted, log)


def up_twins(
    name: str, states: dict[str, dict[str, Any]], monitor: bool, log: Log, subnet: str | None = None
) -> Cluster:
    """Bring cluster ``name`` up with exactly the nodes whose states are given, by name; it must be a new one."""
    if len(states) > _MAX_NODES:
        raise RequestError(f"--twins has {len(states)} nodes: a cluster has 1 to {_MAX_NODES}.")

    def wanted(known: Cluster | None) -> Cluster:
        if known is not None:
            raise RequestError(f"Cluster {name} is there already: take it down first, or give another --name.")
        network = new_subnet(subnet) if subnet else free_subnet(name)
        hosts = list(ipaddress.ip_network(network))
        every = [
            Node(node, str(hosts[11 + number]), len(state["cards"]), json.dumps(state))
            for number, (node, state) in enumerate(states.items())
        ]
        watching = Node("monitor-1", str(hosts[3])) if monitor else None
        return Cluster(name, network, every, watching, system=choose("", "").name)

    return bring_up(name, wanted, log)


def bring_up(name: str, wanted: Callable[[Cluster | None], Cluster], log: Log) -> Cluster:
    """Bring cluster ``name`` to what ``wanted`` makes of its record; nodes that run are left alone."""
    preflight()
    with lock():
        podman = Podman()
        known = load_cluster(name)
        cluster = wanted(known)
        presented = PRESENTATIONS.get(cluster.present_as)
        dnf = presented is not None and presented.family == "rhel"
        image = ensure_image(podman, log, choose(cluster.system, cluster.present_as), dnf=dnf)
        choice = build_chosen()
        ensure_pytorch(log)
        if dnf:
            build_rpm_repository(podman, image, home() / "vendor", choice.releases, choice.fault)
        # Before the record says otherwise: killed in between, the next run would take the old ones for the new.
        podman.remove([container(cluster, node) for node in _replaced(known, cluster)] if known else [])
        cluster.folder.mkdir(parents=True, exist_ok=True)
        if not cluster.key.exists():
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"gaudi3-simulator {name}"]
            subprocess.run([*command, "-f", cluster.key], check=True)
        ensure_network(podman, cluster)
        raise_limits(sum(len(other.all_nodes()) for other in clusters()))
        running = set(podman.names(label(name), running=True))
        if container(cluster, "vault") not in running:
            start_vault(podman, cluster, image)
        update_hosts(cluster)
        fresh = [node for node in cluster.all_nodes() if container(cluster, node.name) not in running]
        for node in fresh:
            log(f"  {node.name} at {node.address}" + (f" with {node.cards} cards" if node.cards else ""))
            start_node(podman, cluster, node, image)
    for node in fresh:
        wait_until_booted(podman, cluster, node)
        if presented and node.name not in cluster.images and (script := distribution.install_script(presented)):
            podman.run("exec", container(cluster, node.name), "sh", "-c", script)
        let_in(podman, cluster, node)
    record_host_keys(podman, cluster)
    return cluster


def ensure_network(podman: Podman, cluster: Cluster) -> None:
    """The network of ``cluster``, on record before it is made."""
    if cluster.network and podman.ok("network", "exists", cluster.network):
        cluster.save()
        return
    cluster.network = f"gaudi3-{cluster.name}-{secrets.token_hex(4)}"
    cluster.save()
    given = ["--disable-dns", "--label", label(cluster.name), "--subnet", cluster.subnet]
    podman.run("network", "create", *given, cluster.network)


def _replaced(known: Cluster, wanted: Cluster) -> list[str]:
    """Nodes that are no longer wanted, or have another machine's address now."""
    there = {node.name: node for node in wanted.all_nodes()}
    return [node.name for node in known.all_nodes() if there.get(node.name) != node]


def down(name: str) -> bool:
    """Remove cluster ``name`` and all that it holds; whether there was one."""
    cluster = load_cluster(name)
    if missing_packages():
        return False
    with lock():
        podman = Podman()
        names = podman.names(label(name))
        podman.remove(names)
        networks = podman.run("network", "ls", "--quiet", "--filter", f"label={label(name)}").stdout.split()
        for network in {*networks, *([cluster.network] if cluster else [])}:
            if podman.ok("network", "exists", network):
                podman.run("network", "rm", "--force", network)
        if cluster:
            shutil.rmtree(cluster.folder, ignore_errors=True)
    return bool(names or cluster)


def clean() -> None:
    """Remove every cluster, the image and the home folder, and undo the one setting that was changed."""
    for each in clusters():
        down(each.name)
    if not home().exists():
        return
    if not missing_packages():
        Podman().run("system", "reset", "--force", check=False)
    restore_limits()
    shutil.rmtree(home())


def check_name(name: str) -> None:
    """Raise RequestError for a name that no cluster can have: it becomes part of a path and of containers' names."""
    if not _NAME.fullmatch(name):
        raise RequestError(f"--name was '{name}': give letters, digits, '_', '.' and '-', a letter or a digit first.")


def find_cluster(name: str) -> Cluster:
    """The cluster called ``name``, which must be there."""
    cluster = load_cluster(name)
    if cluster is None:
        raise RequestError(f"There is no cluster called {name}: bring it up with 'gaudi3-simulator up --name {name}'.")
    return cluster


def find_node(name: str, node: str) -> tuple[Cluster, Node]:
    """A node of the cluster called ``name``, both of which must be there."""
    cluster = find_cluster(name)
    known = {each.name: each for each in cluster.all_nodes()}
    if node not in known:
        raise RequestError(f"Cluster {name} has no node {node}: it has {', '.join(known)}.{meant(node, known)}")
    return cluster, known[node]


def exec_in(name: str, node: str, *command: str) -> subprocess.CompletedProcess[str]:
    """Run ``command`` in ``node`` of cluster ``name``."""
    cluster, found = find_node(name, node)
    return Podman().run("exec", container(cluster, found.name), *command, check=False)


def off(name: str, node: str) -> None:
    """Switch ``node`` off without warning."""
    cluster, found = find_node(name, node)
    Podman().run("stop", "--time", "0", container(cluster, found.name))


def restart(name: str, node: str) -> None:
    """Switch ``node`` off without warning and on again, and wait until it has booted."""
    cluster, found = find_node(name, node)
    podman = Podman()
    podman.run("restart", "--time", "0", container(cluster, found.name))
    wait_until_booted(podman, cluster, found)
