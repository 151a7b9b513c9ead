"""Where the simulator keeps its things, and the record of each running cluster.

Layout of the home folder (``GAUDI3_SIMULATOR_HOME``; in a checkout ``.cache/simulator``)::

    podman/            containers.conf, storage.conf, image and container storage of our own
    image-<hash>.txt   log of the image build
    vendor/            the simulated vendor repository
    clusters/NAME/     cluster.json, ssh key, known_hosts, secrets
    stages/NAME/       the same of a cluster that was saved, and stage.json
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path


def home() -> Path:
    """Folder that holds everything the simulator makes."""
    given = os.environ.get("GAUDI3_SIMULATOR_HOME")
    if given:
        return Path(given).resolve()
    checkout = Path(__file__).resolve().parents[3]
    if (checkout / "galaxy.yml").exists():
        return checkout / ".cache" / "simulator"
    return Path(os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))) / "gaudi3-simulator"


def write_atomically(path: Path, text: str, mode: int = 0o644) -> None:
    """Write ``text`` to ``path`` so that a reader sees the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@dataclass
class Node:
    """One container: its role in the inventory, its address and its cards (0: not a Gaudi node).

    ``twin`` is the state of its cards as JSON where an owner's report made it; empty: cards of the node's own name.
    """

    name: str
    address: str
    cards: int = 0
    twin: str = ""


@dataclass
class Cluster:
    """A set of nodes on a network of their own; ``like``: in the place of machines that Terraform made.

    ``user`` goes in by ssh and may become root; ``authorized_key`` opens the nodes beside the cluster's own.
    ``images`` names the image of each node that started from a saved stage; the others start from the node image.
    ``system`` is their Debian, ``present_as`` the supported system whose name they bear, ``kernel`` the release that
    they show; empty: the default, none, this machine's.
    ``board`` is what kind of cards they have, ``profile`` where these stand (``node.board``); empty: the defaults.
    ``network`` is podman's name for its network, another each time that one is made: the record of leases is the
    machine's, and under a known name it would hold those of a cluster that was killed.
    """

    name: str
    subnet: str
    nodes: list[Node] = field(default_factory=list)
    monitor: Node | None = None
    user: str = "root"
    authorized_key: str = ""
    like: bool = False
    images: dict[str, str] = field(default_factory=dict)
    system: str = ""
    present_as: str = ""
    kernel: str = ""
    board: str = ""
    profile: str = ""
    network: str = ""

    @property
    def folder(self) -> Path:
        return home() / "clusters" / self.name

    @property
    def key(self) -> Path:
        """Private key that opens every node of the cluster."""
        return self.folder / "id_ed25519"

    @property
    def bmc_folder(self) -> Path:
        """What readers of the nodes' stand-in management controllers need."""
        return self.folder / "bmc"

    @property
    def bmc_addresses(self) -> Path:
        """The address of each node's stand-in, as long as they are served."""
        return self.bmc_folder / "addresses.json"

    def all_nodes(self) -> list[Node]:
        return self.nodes + ([self.monitor] if self.monitor else [])

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2) + "\n"

    def save(self) -> None:
        write_atomically(self.folder / "cluster.json", self.to_json())


def load_cluster(name: str) -> Cluster | None:
    """The cluster called ``name``, or None where there is none."""
    try:
        return read_cluster(home() / "clusters" / name / "cluster.json")
    except FileNotFoundError:
        return None


def read_cluster(path: Path) -> Cluster:
    """The cluster on record in ``path``."""
    record = json.loads(path.read_text())
    return Cluster(
        name=record["name"],
        subnet=record["subnet"],
        nodes=[Node(**node) for node in record["nodes"]],
        monitor=Node(**record["monitor"]) if record["monitor"] else None,
        user=record.get("user", "root"),
        authorized_key=record.get("authorized_key", ""),
        like=record.get("like", False),
        images=record.get("images", {}),
        system=record.get("system", ""),
        present_as=record.get("present_as", ""),
        kernel=record.get("kernel", ""),
        board=record.get("board", ""),
        profile=record.get("profile", ""),
        network=record.get("network") or f"gaudi3-{record['name']}",
    )


def clusters() -> list[Cluster]:
    """Every cluster on record."""
    found = (load_cluster(path.parent.name) for path in sorted((home() / "clusters").glob("*/cluster.json")))
    return [cluster for cluster in found if cluster]
