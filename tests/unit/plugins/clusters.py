"""Outputs and states in the shapes that terraform prints them."""

from __future__ import annotations

from typing import Any


def endpoint(role: str, address: str, **more: Any) -> dict[str, Any]:
    """An entry of cluster_endpoints, as terraform/modules/inventory puts it out."""
    cards = 0 if role == "monitor" else 8
    known = {
        "role": role,
        "private_ip": address,
        "public_ip": None,
        "instance_id": f"i-{address.rpartition('.')[2]}",
        "instance_type": "m6i.large" if role == "monitor" else "dl1.24xlarge",
        "cards": cards,
        "zone": "us-west-2a",
        "market": None if role == "monitor" else "on-demand",
        "ssh_user": "ubuntu",
        "connect_to": address,
    }
    return {**known, **more}


def outputs(cloud: str = "aws", name: str = "big", monitor: bool = True, **about: Any) -> dict[str, Any]:
    """What ``terraform output -json`` prints of two nodes and a monitor."""
    endpoints = {
        f"{name}-01": endpoint("head", "10.42.16.5"),
        f"{name}-02": endpoint("worker", "10.42.16.6", market="spot"),
    }
    if monitor:
        endpoints[f"{name}-monitor"] = endpoint("monitor", "10.42.16.4")
    cluster = {
        "name": name,
        "cloud": cloud,
        "region": "us-west-2",
        "instance_type": "dl1.24xlarge",
        "cluster_size": 16,
        "node_names": [f"{name}-01", f"{name}-02"],
        "checkpoint_target": f"s3://{name}-1/checkpoints",
        "jump_host": "",
        "connection": "direct",
        **about,
    }
    values = {"cluster": cluster, "cluster_endpoints": endpoints, "master_ip": "10.42.16.5"}
    return {key: {"sensitive": False, "type": "dynamic", "value": value} for key, value in values.items()}


def resource(kind: str, name: str, *instances: dict[str, Any]) -> dict[str, Any]:
    """A managed resource of a state."""
    return {
        "module": "module.cluster",
        "mode": "managed",
        "type": kind,
        "name": name,
        "provider": 'provider["registry.terraform.io/hashicorp/aws"]',
        "instances": list(instances),
    }


def state(said: dict[str, Any], *resources: dict[str, Any]) -> dict[str, Any]:
    """A state file of version 4."""
    return {
        "version": 4,
        "terraform_version": "1.11.4",
        "serial": 7,
        "lineage": "9d7c",
        "outputs": {key: {"value": each["value"], "type": "dynamic"} for key, each in said.items()},
        "resources": list(resources),
    }


def intent(names: list[str], hosts: int) -> dict[str, Any]:
    """What was asked for, as the module of each cloud writes it down before it makes machines."""
    return resource("terraform_data", "intent", {"attributes": {"output": {"value": {"hosts": hosts, "names": names}}}})


def nodes(*names: str, **of_each: Any) -> dict[str, Any]:
    """The machines themselves."""
    return resource("aws_instance", "node", *({"index_key": name, "attributes": {}, **of_each} for name in names))
