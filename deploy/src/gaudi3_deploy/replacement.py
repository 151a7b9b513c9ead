"""A node's replacement on record: which machine stands for which, and how far it is, whatever is killed in between.

    deployments/NAME/replace.json       the one under way
    deployments/NAME/replace-all.json   with --all: which nodes are still to come

grow     a new machine is made beside the old one, under the next free name
gate     site.yml on it alone, then the health command: where either fails, it goes and the old one stays
drain    jobs save and end, as at an interruption
swap     both change names in Terraform's state, at once
shrink   the old machine, which now has the last name, is destroyed; the inventory is written again
start    site.yml on all nodes: jobs go on from their checkpoints
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gaudi3_deploy import nodes
from gaudi3_deploy.collection._terraform.cluster import Host
from gaudi3_deploy.collection._terraform.state import State
from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.messages import reason
from gaudi3_deploy.record import Deployment, write_atomically

FILE, ALL = "replace.json", "replace-all.json"
STAGES = ("grow", "gate", "drain", "swap", "shrink", "start")
#: Clouds where a machine may change its name and stay: elsewhere the name is what the machine is made with.
RENAMES = ("aws", "ibm")
#: Clouds where a machine's name is given once in a region, so that two cannot change theirs at once.
UNIQUE_NAMES = ("ibm",)


@dataclass
class Replacement:
    """One node's."""

    node: str
    new: str
    """The name that the new machine has until they change."""
    size: int
    """Cards in all, before and afterwards."""
    cards: int
    """Of one node."""
    old_id: str
    """What the cloud calls the old machine."""
    stage: str = "grow"
    before: dict[str, Any] = field(default_factory=dict)
    """The image's variable as it was, which comes back where the new machine is not healthy; None: it was not given."""

    def save(self, directory: Path) -> None:
        """Write it down."""
        write_atomically(directory / FILE, json.dumps({"schema": 1, **asdict(self)}, indent=2) + "\n")

    def enter(self, directory: Path, stage: str) -> None:
        """Note what is to be done, before it is."""
        assert stage in STAGES
        self.stage = stage
        self.save(directory)


def load(directory: Path) -> Replacement | None:
    """The one under way, or None."""
    try:
        read = json.loads((directory / FILE).read_text())
        read.pop("schema")
        return Replacement(**read)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DeployError(
            f"The record of the replacement in {directory / FILE} cannot be read ({reason(error)}): look at the nodes "
            "with `gaudi3-deploy status`, and remove it."
        ) from None


def left(directory: Path, image: str | None) -> list[str] | None:
    """Nodes that a `--all` which was cut off has still to replace; None where none was, or for another image."""
    try:
        read = json.loads((directory / ALL).read_text())
        return list(read["left"]) if read["image"] == image else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def note_left(directory: Path, nodes_left: Sequence[str], image: str | None) -> None:
    """Write them down; with none left, remove the record."""
    if nodes_left:
        write_atomically(directory / ALL, json.dumps({"schema": 1, "left": [*nodes_left], "image": image}) + "\n")
    else:
        (directory / ALL).unlink(missing_ok=True)


def refuse(deployment: Deployment, outputs: Mapping[str, Any], node: str) -> Host:
    """The node's machine. Raises UsageError, with what can be done instead, where there is none to be replaced."""
    name, variables = deployment.name, deployment.variables
    machines = {each.name: each for each in nodes.workers(outputs)}
    if node not in machines:
        raise UsageError(f"Deployment {name!r} has no node {node!r}: there is {', '.join(machines)}.")
    if deployment.cloud == "onprem":
        raise UsageError(
            f"The nodes of {name!r} are your own machines, and none can be made beside {node}: name another in "
            f"`hosts`, and run `gaudi3-deploy up {name}`."
        )
    if variables.get("autoscaling"):
        raise UsageError(
            f"The nodes of {name!r} are kept by an autoscaling group, which makes a new one where one ends: end {node} "
            "at the cloud, and run `gaudi3-deploy inventory` when the new one is there."
        )
    return machines[node]


def begin(deployment: Deployment, outputs: Mapping[str, Any], node: str) -> Replacement:
    """What is to be done. Raises UsageError, with what can be done instead, where no node can stand beside another."""
    name, cloud, variables = deployment.name, deployment.cloud, deployment.variables
    machine = refuse(deployment, outputs, node)
    count = len(nodes.workers(outputs))
    if cloud not in RENAMES:
        raise UsageError(
            f"On {cloud} a machine cannot change its name, so that none can take {node}'s place: run `gaudi3-deploy up "
            f"{name}` with one node more, or `gaudi3-deploy replace {name} {node} --in-place`, which ends it first."
        )
    new = f"{name}-{count + 1:02}"
    cards = machine.cards or int(variables["cluster_size"]) // count
    return Replacement(node, new, int(variables["cluster_size"]), cards, machine.instance_id or "")


def is_swapped(found: Replacement, state: State) -> bool:
    """Whether the state has the old machine under the new name already."""
    machine = next((each for each in state.resources if each.address.endswith(f'["{found.new}"]')), None)
    if machine is None:
        raise DeployError(
            f"{found.new}, the machine that was to take {found.node}'s place, is not in Terraform's state: remove "
            f"{FILE} in the deployment's folder, and begin again."
        )
    return machine.id == found.old_id


def refuse_more(found: Replacement, destroyed: list[str], replaced: list[str]) -> None:
    """Raise DeployError where a plan would end anything but the old machine and what is its own."""
    others = [each for each in destroyed if not each.endswith(f'["{found.new}"]')] + replaced
    if others:
        raise DeployError(
            f"To end the machine that {found.node} was would destroy or replace {', '.join(others[:4])}, too: nothing "
            "was destroyed. See what else was changed with `gaudi3-deploy plan`."
        )
