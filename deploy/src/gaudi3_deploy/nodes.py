"""The machines as Terraform's outputs tell them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gaudi3_deploy.collection._refusal import Refusal
from gaudi3_deploy.collection._terraform.cluster import Cluster, Host, cluster_from_outputs
from gaudi3_deploy.errors import DeployError
from gaudi3_deploy.record import Deployment


def on_record(deployment: Deployment) -> dict[str, Any]:
    """The outputs as they were last read; empty before the first `up`."""
    try:
        found: dict[str, Any] = json.loads(deployment.outputs.read_text())
        return found
    except (OSError, ValueError):
        return {}


def cluster(outputs: Mapping[str, Any]) -> Cluster:
    """What the outputs describe. Raises DeployError where that is no cluster."""
    try:
        return cluster_from_outputs(outputs, "Terraform's state", "`gaudi3-deploy up`")
    except Refusal as error:
        raise DeployError(str(error)) from None


def machines(outputs: Mapping[str, Any]) -> list[Host]:
    """Every machine, the monitor among them; by name. None before the first `up`."""
    return sorted(cluster(outputs).hosts, key=lambda each: each.name) if outputs else []


def workers(outputs: Mapping[str, Any]) -> list[Host]:
    """The same without the monitor."""
    return [each for each in machines(outputs) if not each.is_monitor]


def head(outputs: Mapping[str, Any]) -> str:
    """Name of the first node."""
    return cluster(outputs).nodes[0].name


def as_dict(machine: Host) -> dict[str, Any]:
    """One for a program."""
    about = {
        each: getattr(machine, each) for each in ("role", "private_ip", "public_ip", "instance_id", "instance_type")
    }
    return {"name": machine.name, "address": machine.connect_to, "port": machine.ssh_port or 22, **about}
