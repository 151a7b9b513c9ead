"""The running cluster as an Ansible inventory (the output of a script plugin)."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from .home import Cluster, home, load_cluster
from .vendor.pip_index import LIST


def inventory(cluster: Cluster | None) -> dict[str, Any]:
    """Groups and host variables of ``cluster``; the groups exist, empty, when there is none."""
    if cluster is None:
        return {
            "_meta": {"hostvars": {}},
            "gaudi": {"hosts": []},
            "gaudi_head": {"hosts": []},
            "monitoring": {"hosts": []},
        }
    common: dict[str, Any] = {
        "ansible_user": cluster.user,
        "ansible_ssh_private_key_file": str(cluster.key),
        "ansible_ssh_common_args": (
            f"-o UserKnownHostsFile={cluster.folder / 'known_hosts'} -o StrictHostKeyChecking=yes"
        ),
        "ansible_python_interpreter": "/usr/bin/python3",
        "gaudi_secrets_dir": str(cluster.folder / "secrets"),
        "simulator_requirements": str(home() / "vendor" / LIST),
    }
    if cluster.user != "root":
        common["ansible_become"] = True
    names = [node.name for node in cluster.nodes]
    variables = {node.name: {"ansible_host": node.address, **common} for node in cluster.all_nodes()}
    for name, address in _controllers(cluster).items():
        if name in variables:
            variables[name]["gaudi_bmc_address"] = address
    return {
        "_meta": {"hostvars": variables},
        "gaudi": {"hosts": names},
        "gaudi_head": {"hosts": names[:1]},
        "monitoring": {"hosts": [cluster.monitor.name] if cluster.monitor else []},
    }


def _controllers(cluster: Cluster) -> dict[str, str]:
    try:
        found: dict[str, str] = json.loads(cluster.bmc_addresses.read_text())
    except FileNotFoundError:
        return {}
    return found


def main(argv: list[str] | None = None) -> int:
    """``--list`` prints the inventory, ``--host NAME`` an empty answer (all is in ``_meta``)."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments[:1] == ["--host"]:
        print("{}")
        return 0
    print(json.dumps(inventory(load_cluster(os.environ.get("GAUDI3_SIMULATOR_CLUSTER", "demo"))), indent=2))
    return 0
