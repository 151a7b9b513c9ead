"""ansible-playbook over the deployment's inventory."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gaudi3_deploy import audit, partial, ssh, traces
from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.record import Deployment, write_atomically

#: Read by the collection's inventory plugin, beside group_vars/ of the user's own.
SOURCE = """# Written by gaudi3-deploy; the next `up` writes it again.
plugin: gaudi3.scale.terraform
output_file: ../outputs.json
ssh_config: ../ssh_config
"""
NAME = "terraform.yml"
#: What an earlier release wrote in its place.
EARLIER = "hosts.yml"


def write_inventory(deployment: Deployment, outputs: dict[str, Any]) -> None:
    """Terraform's outputs, and the inventory of them; group_vars/ may be added beside it by hand and stays."""
    if not outputs.get("cluster_endpoints"):
        raise DeployError(
            f"Deployment {deployment.name!r} has no nodes in terraform's outputs: run `gaudi3-deploy up` to its end."
        )
    deployment.inventory.mkdir(parents=True, exist_ok=True, mode=0o700)
    ssh.write(deployment, outputs)  # first, as it refuses what is none
    write_atomically(deployment.outputs, json.dumps(outputs, indent=2) + "\n")
    write_atomically(deployment.inventory / NAME, SOURCE)
    (deployment.inventory / EARLIER).unlink(missing_ok=True)
    partial.forget(deployment)


def forget_inventory(deployment: Deployment) -> None:
    """There are no nodes any more."""
    partial.forget(deployment)
    deployment.outputs.unlink(missing_ok=True)
    for name in (NAME, EARLIER):
        (deployment.inventory / name).unlink(missing_ok=True)
    for name in (ssh.CONFIG, ssh.KNOWN):
        (deployment.directory / name).unlink(missing_ok=True)


def playbook(collection: Path) -> list[str]:
    """The checkout's site.yml, or the installed collection's."""
    if (collection / "site.yml").is_file() and (collection / "galaxy.yml").is_file():
        return [str(collection / "site.yml")]
    return ["gaudi3.scale.site"]


def run_site(deployment: Deployment, collection: Path, arguments: Sequence[str]) -> int:
    """Run the playbook in the foreground; its exit code."""
    process = start(deployment, collection, arguments)
    try:
        return process.wait()
    except KeyboardInterrupt:  # which the terminal has given ansible-playbook, too
        return process.wait()


def start(
    deployment: Deployment, collection: Path, arguments: Sequence[str], of: Sequence[str] = ()
) -> subprocess.Popen[bytes]:
    """Start the playbook; that of another path or name than site, if `of` gives one."""
    command = [*_on_inventory("ansible-playbook", deployment), *(of or playbook(collection)), *arguments]
    # Started in the background of a script, this process ignores the interrupt by which a playbook is ended.
    ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    if ignored:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        return subprocess.Popen(command, env=_environment(deployment, _checkout(collection)), cwd=_checkout(collection))
    finally:
        if ignored:
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def run_module(deployment: Deployment, collection: Path, module: str, given: Mapping[str, str]) -> int:
    """Run one module on all nodes at once; its exit code. What it says goes to standard error."""
    command = [*_on_inventory("ansible", deployment), "gaudi", "--forks", "64", "-m", module, "-a", json.dumps(given)]
    done = subprocess.run(
        command,
        env=_environment(deployment, _checkout(collection)),
        cwd=_checkout(collection),
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        check=False,
    )
    return done.returncode


def _environment(deployment: Deployment, checkout: Path | None) -> dict[str, str]:
    """What Ansible runs with: a user's settings, and those that keep a run from going on where it must not.

    Without its inventory, which needs the collection, a play would do nothing, with success.
    """
    settings = {"ANSIBLE_INJECT_FACT_VARS": "False", "ANSIBLE_INVENTORY_UNPARSED_FAILED": "True"}
    more = audit.environment(deployment.directory.parent, checkout, traces.environment(checkout))
    return {**os.environ, **settings, **more}


def _on_inventory(name: str, deployment: Deployment) -> list[str]:
    """A command of Ansible's on the deployment's inventory. Raises UsageError where it is not on this machine."""
    executable = shutil.which(name)
    if executable is None:
        raise UsageError(f"The command {name!r} is not on this machine: install ansible-core, 2.17 to 2.21.")
    return [executable, "-i", str(deployment.inventory)]


def _checkout(collection: Path) -> Path | None:
    """Where a command has to start for a checkout's configuration; None for an installed collection."""
    return collection if (collection / "galaxy.yml").is_file() else None
