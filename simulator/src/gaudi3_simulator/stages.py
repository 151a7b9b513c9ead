"""Saved clusters: what a node holds after a stage of work, kept as an image, so that the work is done once.

A stage keeps the whole identity of its cluster (names, addresses, keys, secrets, host keys). Nodes that start from it
are the same machines after a restart: their services start again, and their configuration holds. Only one cluster of
a stage can therefore run at a time.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from . import RequestError
from .cluster import Log, bring_up, find_cluster, lock, preflight
from .home import Cluster, Node, clusters, home, read_cluster, write_atomically
from .image import device_wheel, image_name
from .network import check_same_subnet, new_subnet
from .nodes import container, label, wait_until_booted
from .podman import Podman
from .suggestions import meant

_CHECKOUT = Path(__file__).resolve().parents[3]
_INPUTS = (
    "simulator/src", "plugins", "roles", "playbooks", "inventories/simulated", "requirements", "trainer/src",
    "benchmark-tool/src", "doctor/src", "migration/src", "watch/src",
)  # fmt: skip
_KEPT = ("id_ed25519", "id_ed25519.pub", "known_hosts", "secrets")


@dataclass
class Stage:
    """One saved cluster."""

    name: str
    key: str
    cluster: Cluster

    @property
    def folder(self) -> Path:
        return home() / "stages" / self.name

    @property
    def is_current(self) -> bool:
        """Whether the sources that it was made from are still the same."""
        return self.key == input_key()


def input_key() -> str:
    """Digest of all that a stage depends on: node image, simulated device, and the sources that configure nodes."""
    digest = hashlib.sha256(f"{image_name()}\0{device_wheel().name}".encode())
    for folder in _INPUTS:
        for path in sorted((_CHECKOUT / folder).rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                digest.update(str(path.relative_to(_CHECKOUT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def load_stage(name: str) -> Stage:
    """The stage called ``name``."""
    folder = home() / "stages" / name
    try:
        key = json.loads((folder / "stage.json").read_text())["key"]
    except FileNotFoundError:
        known = ", ".join(stage.name for stage in stages()) or "none"
        raise RequestError(
            f"There is no stage called {name} (saved: {known}): save a running cluster with 'gaudi3-simulator save'."
            f"{meant(name, [stage.name for stage in stages()])}"
        ) from None
    return Stage(name, key, read_cluster(folder / "cluster.json"))


def stages() -> list[Stage]:
    """Every saved stage."""
    return [load_stage(path.parent.name) for path in sorted((home() / "stages").glob("*/stage.json"))]


def save(cluster_name: str, stage_name: str, log: Log) -> Stage:
    """Keep cluster ``cluster_name`` as stage ``stage_name``. Its nodes are shut down for it, and started again."""
    _check_name(stage_name)
    preflight()
    with lock():
        podman = Podman()
        cluster = find_cluster(cluster_name)
        running = podman.names(label(cluster.name), running=True)
        off = [node.name for node in cluster.all_nodes() if container(cluster, node.name) not in running]
        if off:
            raise RequestError(f"{', '.join(off)} is off: switch it on with 'gaudi3-simulator restart' first.")
        key = input_key()
        names = [container(cluster, node.name) for node in cluster.all_nodes()]
        log(f"shutting {len(names)} nodes down and saving them as {stage_name}")
        podman.run("stop", "--time", "60", *names)
        images = {node.name: f"localhost/gaudi3-stage/{stage_name}:{node.name}" for node in cluster.all_nodes()}
        for node in cluster.all_nodes():
            podman.run("commit", "--quiet", container(cluster, node.name), images[node.name])
        record = Cluster(**{**vars(cluster), "images": images})
        _write(record, stage_name, key, cluster.folder)
        podman.run("start", *names)
        for node in cluster.all_nodes():
            wait_until_booted(podman, cluster, node)
        podman.run("image", "prune", "--force", check=False)
    return load_stage(stage_name)


def _check_name(name: str) -> None:
    if not name or not set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-"):
        raise RequestError(f"The stage's name was '{name}': use lower-case letters, digits and hyphens.")


def _write(record: Cluster, name: str, key: str, source: Path) -> None:
    """The stage's folder; stage.json comes last, so that a stage is either whole or not there."""
    folder = home() / "stages" / name
    shutil.rmtree(folder, ignore_errors=True)
    _copy_identity(source, folder)
    write_atomically(folder / "cluster.json", record.to_json())
    write_atomically(folder / "stage.json", json.dumps({"key": key}) + "\n")


def _copy_identity(source: Path, target: Path) -> None:
    """What nodes know their cluster by, and people get in with."""
    target.mkdir(parents=True, exist_ok=True)
    for each in _KEPT:
        if (source / each).is_dir():
            shutil.copytree(source / each, target / each, dirs_exist_ok=True)
        elif (source / each).exists():
            shutil.copy2(source / each, target / each)


def up_from(
    stage_name: str, name: str, nodes: int, monitor: bool, log: Log, subnet: str | None = None
) -> tuple[Cluster, Stage]:
    """Bring cluster ``name`` up from stage ``stage_name``: its first ``nodes`` Gaudi nodes, and its monitoring host."""
    stage = load_stage(stage_name)
    saved = stage.cluster
    if nodes > len(saved.nodes):
        raise RequestError(
            f"--nodes was {nodes}, but stage {stage_name} has {len(saved.nodes)}: bring these up, and add bare nodes "
            "with another 'up'."
        )

    def wanted(known: Cluster | None) -> Cluster:
        if known is not None:
            raise RequestError(f"Cluster {name} is there already: take it down first, or give another --name.")
        check_same_subnet(saved, subnet)
        for other in clusters():
            if other.subnet == saved.subnet:
                raise RequestError(
                    f"Stage {stage_name} has the addresses of cluster {other.name}, which is there: take that one "
                    f"down with 'gaudi3-simulator down --name {other.name}'."
                )
        kept: list[Node] = saved.nodes[:nodes]
        made = Cluster(**{**vars(saved), "name": name, "subnet": new_subnet(saved.subnet), "nodes": kept})
        made.monitor = saved.monitor if monitor else None
        _copy_identity(stage.folder, made.folder)
        return made

    return bring_up(name, wanted, log), stage


def remove(name: str) -> None:
    """Forget stage ``name`` and free its images; RequestError while nodes are made of these, which would go too."""
    stage = load_stage(name)
    with lock():
        images = set(stage.cluster.images.values())
        for user in (each.name for each in clusters() if images & set(each.images.values())):
            raise RequestError(
                f"Nodes of cluster {user} are made of stage {name}, and would go with it: "
                f"run 'gaudi3-simulator down --name {user}' first."
            )
        podman = Podman()
        for image in stage.cluster.images.values():
            podman.run("image", "rm", "--force", image, check=False)
        shutil.rmtree(stage.folder)
