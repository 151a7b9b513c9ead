"""The machines as Terraform's outputs tell them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gaudi3_deploy.record import Deployment


def on_record(deployment: Deployment) -> dict[str, Any]:
    """The outputs as they were last read; empty before the first `up`."""
    try:
        found: dict[str, Any] = json.loads(deployment.outputs.read_text())
        return found
    except (OSError, ValueError):
        return {}


def machines(outputs: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every machine, the monitor among them, with its name; by name."""
    found = outputs.get("cluster_endpoints") or {}
    if isinstance(found, dict):
        return [{"name": name, **about} for name, about in sorted(found.items())]
    return list(found)


def head(outputs: Mapping[str, Any]) -> str:
    """Name of the first node."""
    found = machines(outputs)
    return str(next((each["name"] for each in found if each.get("role") == "head"), found[0]["name"]))


def as_dict(machine: Mapping[str, Any]) -> dict[str, Any]:
    """One for a program."""
    host, port = address(machine)
    about = {each: machine.get(each) for each in ("role", "private_ip", "public_ip", "instance_id", "instance_type")}
    return {"name": machine["name"], "address": host, "port": port, **about}


def address(machine: Mapping[str, Any]) -> tuple[str, int]:
    """Where its SSH answers."""
    host = machine.get("connect_to") or machine.get("public_ip") or machine.get("private_ip") or machine["name"]
    return str(host), int(machine.get("ssh_port") or 22)
