"""ansible-playbook over the deployment's inventory."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.record import Deployment, write_atomically

HOSTS = "hosts.yml"


def write_inventory(deployment: Deployment, outputs: dict[str, Any]) -> None:
    """Terraform's outputs, and the inventory among them; group_vars/ may be added beside it by hand and stays."""
    if not outputs.get("cluster_endpoints") or not outputs.get("ansible_inventory"):
        raise DeployError(
            f"Deployment {deployment.name!r} has no nodes in terraform's outputs: run `gaudi3-deploy up` to its end."
        )
    deployment.inventory.mkdir(parents=True, exist_ok=True)
    write_atomically(deployment.outputs, json.dumps(outputs, indent=2) + "\n")
    write_atomically(deployment.inventory / HOSTS, str(outputs["ansible_inventory"]))


def forget_inventory(deployment: Deployment) -> None:
    """There are no nodes any more."""
    deployment.outputs.unlink(missing_ok=True)
    (deployment.inventory / HOSTS).unlink(missing_ok=True)


def playbook(collection: Path) -> list[str]:
    """The checkout's site.yml, or the installed collection's."""
    if (collection / "site.yml").is_file() and (collection / "galaxy.yml").is_file():
        return [str(collection / "site.yml")]
    return ["gaudi3.scale.site"]


def run_site(deployment: Deployment, collection: Path, arguments: Sequence[str]) -> int:
    """Run the playbook in the foreground; its exit code."""
    executable = shutil.which("ansible-playbook")
    if executable is None:
        raise UsageError("The command 'ansible-playbook' is not on this machine: install ansible-core 2.19.")
    command = [executable, "-i", str(deployment.inventory), *playbook(collection), *arguments]
    return subprocess.run(command, env=dict(os.environ), cwd=collection, check=False).returncode


def reachable(addresses: Sequence[tuple[str, int]], timeout: float = 3.0) -> list[bool]:
    """Whether each address accepts a connection."""

    def knock(address: tuple[str, int]) -> bool:
        try:
            with socket.create_connection(address, timeout=timeout):
                return True
        except OSError:
            return False

    if not addresses:
        return []
    with ThreadPoolExecutor(min(32, len(addresses))) as pool:
        return list(pool.map(knock, addresses))
