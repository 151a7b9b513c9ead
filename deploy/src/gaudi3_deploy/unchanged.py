"""Nodes that run on AWS stay as they were made: a change that they would not get is refused before it is on record."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from gaudi3_deploy.collection._terraform.state import GROUPS, Resource, State
from gaudi3_deploy.converge import NODE
from gaudi3_deploy.errors import UsageError
from gaudi3_deploy.record import Deployment
from gaudi3_deploy.terraform import Terraform


def refuse_change(deployment: Deployment, terraform: Terraform) -> None:
    """Raise UsageError where nodes on AWS are not what is asked for: Terraform leaves running ones as they are."""
    if deployment.cloud != "aws" or not deployment.variables.keys() & HAS.keys():
        return
    nodes = _nodes(terraform.state())
    for variable, has in HAS.items():
        asked = deployment.variables.get(variable)
        if asked is None or asked == "":
            continue
        others: dict[str, list[str]] = {}
        for name, (attributes, made) in nodes.items():
            wanted, found = _of_node(deployment, variable, name), has(attributes, made)
            if found is not None and found != wanted:
                others.setdefault(_text(found), []).append(name)
                asked = wanted
        if others:
            have = " and ".join(f"{found} on {', '.join(names)}" for found, names in others.items())
            raise UsageError(
                f"{variable} is {_text(asked)}, but {have}, and running nodes are not "
                f"changed: give what they have, or run `gaudi3-deploy down {deployment.name}` first, which keeps "
                "checkpoints."
            )


def _nodes(state: State) -> dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """What AWS says of each node, and what the module wrote down when it made it, by name.

    The nodes of a group are one entry: nothing is in the state but what the group makes them with.
    """
    found: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {}
    for node in state.of(["aws_instance"]):
        if NODE.search(node.address):
            found[node.address.rpartition("[")[2].strip(']"')] = (node.attributes, _made_with(node, state))
    templates = [each for each in state.of(["aws_launch_template"]) if ".node[" in each.address]
    for group in state.of(GROUPS):
        for template in templates:
            options = template.attributes.get("instance_market_options") or []
            market = options[0].get("market_type") if options else ""
            # A group that mixes has a template that does not say.
            lifecycle = {"instance_lifecycle": "spot" if group.attributes.get("mixed_instances_policy") else market}
            interfaces = template.attributes.get("network_interfaces") or []
            efa = any(str(each.get("interface_type")).startswith("efa") for each in interfaces)
            found["the group's nodes"] = ({**template.attributes, **lifecycle}, {"efa": efa})
    return found


def _of_node(deployment: Deployment, variable: str, name: str) -> Any:
    """What is asked for of one node: the first `on_demand_nodes` of them are not bought on the spot market."""
    asked, number = deployment.variables[variable], re.search(r"-(\d+)$", name)
    first = int(deployment.variables.get("on_demand_nodes") or 0)
    return "on-demand" if asked == "spot" and number and int(number.group(1)) <= first else asked


def _text(value: Any) -> str:
    """As Terraform writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _made_with(node: Resource, state: State) -> Mapping[str, Any]:
    """What the module wrote down when it made a node; empty where an apply ended before it did."""
    made = state.named(node.address.replace("aws_instance.", "terraform_data."))
    value = (made.attributes.get("input") or {}).get("value") if made else None
    return value or {}


def _root_gb(attributes: Mapping[str, Any], made: Mapping[str, Any]) -> int | None:
    disks = attributes.get("root_block_device") or [{}]
    size = disks[0].get("volume_size")
    return None if size is None else int(size)


def _capacity(attributes: Mapping[str, Any], made: Mapping[str, Any]) -> str | None:
    """How a machine was bought; AWS has no word for on demand."""
    if "instance_lifecycle" not in attributes:
        return None
    if attributes["instance_lifecycle"]:
        return str(attributes["instance_lifecycle"])
    targets = [
        target
        for each in attributes.get("capacity_reservation_specification") or []
        for target in each.get("capacity_reservation_target") or []
    ]
    return "reservation" if any(each.get("capacity_reservation_id") for each in targets) else "on-demand"


#: What a machine has, as AWS says or the module wrote down when it made it, of what a variable asks for.
HAS: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], Any]] = {
    "instance_type": lambda attributes, made: attributes.get("instance_type"),
    "availability_zone": lambda attributes, made: attributes.get("availability_zone"),
    "root_volume_gb": _root_gb,
    "capacity": _capacity,
    "efa": lambda attributes, made: made.get("efa"),
}
