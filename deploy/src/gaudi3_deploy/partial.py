"""The machines of an `up` that did not come to its end: what they are, where they are, and what they cost.

    deployments/NAME/partial.yml    an inventory of the machines that there are, which no command takes by itself

Terraform has no outputs before all is there, so they are read out of its state. The file is removed once `up` has come
to its end or the machines are gone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import yaml

from gaudi3_deploy import estimate
from gaudi3_deploy.collection._terraform.state import GROUPS, MACHINES, MONITOR, Resource, State
from gaudi3_deploy.record import Deployment, write_atomically

FILE = "partial.yml"
HEADER = """# Written by gaudi3-deploy: the machines of {name} that there are, after `up` was cut off or failed.
# It is partial: what is asked for is not whole, and no job belongs on it. `gaudi3-deploy up {name}` goes on.
"""


def machines(state: State) -> list[dict[str, str]]:
    """Name, role, id, private address and type of each machine, as far as the state has them; by name."""
    found = [_machine(each) for each in state.of(MACHINES) if each.id]
    return sorted(found, key=lambda each: each["name"])


def _machine(resource: Resource) -> dict[str, str]:
    has = resource.attributes
    name = (has.get("tags") or {}).get("Name") if resource.type == "aws_instance" else has.get("name")
    kind = has.get("instance_type") or has.get("profile") or has.get("machine_type") or has.get("size")
    key = re.search(r'\["([^"]+)"\]$', resource.address)
    return {
        "name": str(name or (key.group(1) if key else resource.address)),
        "role": "monitor" if MONITOR.search(resource.address) else "node",
        "id": resource.id,
        "address": _address(has),
        "type": str(kind or ""),
    }


def _address(has: Mapping[str, Any]) -> str:
    """The private one; each provider has its own place for it."""
    try:
        if "primary_network_attachment" in has:  # IBM
            interface = has["primary_network_attachment"][0]["virtual_network_interface"][0]
            return str(interface["primary_ip"][0]["address"])
        if "network_interface" in has and "private_ip" not in has:  # GCP
            return str(has["network_interface"][0]["network_ip"])
    except (KeyError, IndexError, TypeError):
        return ""
    return str(has.get("private_ip") or has.get("private_ip_address") or "")


def write(deployment: Deployment, found: Iterable[Mapping[str, str]]) -> None:
    """Write the inventory of these machines."""
    groups: dict[str, dict[str, Any]] = {"gaudi": {}, "monitoring": {}}
    for each in found:
        about = {"ansible_host": each["address"]} if each["address"] else {}
        groups["monitoring" if each["role"] == "monitor" else "gaudi"][each["name"]] = {
            **about,
            "gaudi_instance_id": each["id"],
            "gaudi_instance_type": each["type"],
        }
    children = {group: {"hosts": hosts} for group, hosts in groups.items() if hosts}
    given: dict[str, Any] = {"gaudi_inventory_partial": True}
    if jump := deployment.variables.get("jump_host"):
        given["ansible_ssh_common_args"] = f"-o ProxyJump={jump}"
    if user := deployment.variables.get("ssh_user"):
        given["ansible_user"] = str(user)
    text = yaml.safe_dump({"all": {"vars": given, "children": children}}, sort_keys=False)
    write_atomically(deployment.directory / FILE, HEADER.format(name=deployment.name) + text)


def forget(deployment: Deployment) -> None:
    """The deployment is whole, or gone."""
    (deployment.directory / FILE).unlink(missing_ok=True)


def read(deployment: Deployment) -> list[str]:
    """Names of the machines on record; empty where `up` came to its end."""
    try:
        children = yaml.safe_load((deployment.directory / FILE).read_text())["all"]["children"]
        return sorted(name for group in children.values() for name in group["hosts"])
    except (OSError, yaml.YAMLError, KeyError, TypeError):
        return []


def report(deployment: Deployment, state: State, usd: float | None, log: Callable[[str], None]) -> None:
    """After a failed `up`: write down and say what there is, with what it costs by the hour."""
    found = machines(state)
    beside = estimate.billed_beside(each.address for each in state.resources)
    if not found and not beside:
        forget(deployment)
        return
    write(deployment, found)
    for each in found:
        log(f"{each['name']}  {each['address'] or 'no address yet'}  {each['id']}  {each['type']}".rstrip())
    count = deployment.nodes
    asked = "" if usd is None else f", {count * usd:.2f} USD per hour"
    price = asked or ", at a price that is not known: give yours with --price"
    nodes = f"{count} node(s) run and cost money{price}" if count else "no node runs"
    also = f"; billed beside: {', '.join(beside)}" if beside else ""
    log(f"{nodes}{also}")
    for group in state.of(GROUPS):
        log(
            f"{group.address} ({group.id}) goes on trying, and buys machines when there are some: only its end stops "
            "that"
        )
    log(
        f"this is partial, and on record in {deployment.directory / FILE}: run `up` again, which goes on from it, or "
        f"`gaudi3-deploy down {deployment.name}`"
    )
