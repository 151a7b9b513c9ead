"""The way to the nodes: one ssh configuration per deployment, with the host keys that were learnt for it and no others.

    deployments/NAME/ssh_config     a host per node, by its name and by the address that Ansible connects to
    deployments/NAME/known_hosts    the machines' keys, each under the machine's id, or its address where it has none

ssh hands `-F` on to the ssh that reaches a jump host, so that both know the same keys. A machine that takes another's
place under the same name or address has another id, and is no changed host key but a new one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from gaudi3_deploy import nodes
from gaudi3_deploy.collection._refusal import Refusal
from gaudi3_deploy.collection._terraform.cluster import Cluster, Host, ssh_options
from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.record import Deployment, write_atomically

CONFIG, KNOWN = "ssh_config", "known_hosts"
#: Waits for the work of the first start, where there is cloud-init; what it says of an error is printed.
FIRST_BOOT = (
    "command -v cloud-init >/dev/null 2>&1 || exit 0; cloud-init status --wait >/dev/null 2>&1; "
    'code=$?; [ "$code" -ne 1 ] || { cloud-init status --long 2>&1 | tail -n 5; exit 1; }'
)
#: Exit code of ssh where there is no connection; a command's own codes are below it.
NO_CONNECTION = 255
PATTERN = re.compile(r"^[A-Za-z0-9._:%@-]+$")


def config(deployment: Deployment, outputs: Mapping[str, Any], strict: str = "yes") -> str:
    """The text of an ssh configuration; `strict` is what ssh does with a key that it does not know."""
    own = deployment.directory / KNOWN
    lines = [
        f"# Written by gaudi3-deploy for deployment {deployment.name}; the next `up` writes it again.",
        *(line for machine in nodes.machines(outputs) for line in _host(nodes.cluster(outputs), machine)),
        "Host *",
        f'  UserKnownHostsFile "{own}" ~/.ssh/known_hosts',
        f"  StrictHostKeyChecking {strict}",
        "  HashKnownHosts no",
        "  ServerAliveInterval 15",
        "  ServerAliveCountMax 4",
        "Match all",
        "Include ~/.ssh/config",
    ]
    return "\n".join(lines) + "\n"


def _host(cluster: Cluster, machine: Host) -> Iterable[str]:
    """The lines that lead to a machine, by its name and by the address that Ansible connects to."""
    try:
        options = ssh_options(cluster, machine)
    except Refusal as error:
        raise DeployError(str(error)) from None
    address = machine.connect_to
    yield f"Host {machine.name}" + (f" {address}" if address != machine.name else "")
    yield f"  HostName {address}"
    yield from ([f"  HostKeyAlias {machine.instance_id}"] if machine.instance_id else [])
    yield from ([f"  Port {machine.ssh_port}"] if machine.ssh_port else [])
    yield from ([f"  User {machine.ssh_user}"] if machine.ssh_user else [])
    yield from (f"  {option} {value}" for option, value in options.items())


def write(deployment: Deployment, outputs: Mapping[str, Any]) -> None:
    """Write the configuration, and the names of keys that an earlier release learnt as this one looks for them."""
    known = deployment.directory / KNOWN
    if known.exists():
        write_atomically(known, _by_id(known.read_text(), nodes.machines(outputs)))
    write_atomically(deployment.directory / CONFIG, config(deployment, outputs))


def _by_id(text: str, machines: Iterable[Host]) -> str:
    """Keys as an earlier release kept them, under name and id (or address), as this one looks for them."""
    for each in machines:
        plain = each.connect_to if each.ssh_port in (None, 22) else f"[{each.connect_to}]:{each.ssh_port}"
        before = re.escape(f"{each.name}.{each.instance_id or each.connect_to}")
        text = re.sub(rf"^{before} ", f"{each.instance_id or plain} ", text, flags=re.MULTILINE)
    return text


def arguments(deployment: Deployment) -> list[str]:
    """The command and its options, to be followed by a node's name."""
    found = shutil.which("ssh")
    if found is None:
        raise UsageError("The command 'ssh' is not on this machine: install OpenSSH's client.")
    return [found, "-F", str(deployment.directory / CONFIG)]


def run(
    deployment: Deployment, node: str, command: str, *options: str, timeout: float = 60, given: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a command on a node without asking anybody anything; an exit code of 255 says that it was not reached."""
    batch = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=10", *options]
    called = [*arguments(deployment), *batch, node, command]
    try:
        return subprocess.run(called, capture_output=True, text=True, check=False, timeout=timeout, input=given)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(called, NO_CONNECTION, "", f"no answer within {timeout:.0f} s")


def on_each(names: Sequence[str], do: Callable[[str], Any]) -> list[Any]:
    """Do something for every node, 32 at a time."""
    with ThreadPoolExecutor(max(1, min(32, len(names)))) as pool:
        return list(pool.map(do, names))


def answering(deployment: Deployment, outputs: Mapping[str, Any]) -> list[bool]:
    """Whether each node lets one in, by the way that Ansible takes."""
    names = [machine.name for machine in nodes.machines(outputs)]
    if not names or not (deployment.directory / CONFIG).exists():
        return [False] * len(names)
    return on_each(names, lambda node: run(deployment, node, "true", timeout=20).returncode == 0)


def learn(deployment: Deployment, outputs: Mapping[str, Any], name: str) -> subprocess.CompletedProcess[str]:
    """Go to a node, and keep its key where none is known; a key that differs from a known one is refused."""
    with tempfile.NamedTemporaryFile("w", dir=deployment.directory, prefix=".ssh_config.", suffix=".tmp") as file:
        file.write(config(deployment, outputs, "accept-new"))
        file.flush()
        options = ("-F", file.name)  # the last one holds
        return run(deployment, name, "true", *options, timeout=30)


def wait(
    deployment: Deployment,
    outputs: Mapping[str, Any],
    log: Callable[[str], None],
    limit: float,
    names: Sequence[str] = (),
    pause: float = 5.0,
) -> None:
    """Until every node lets one in and has ended its first start. Raises DeployError after `limit` seconds."""
    write(deployment, outputs)
    began = time.monotonic()
    left = list(names) or [machine.name for machine in nodes.machines(outputs)]
    total, reason = len(left), {}
    log(f"waiting for {total} machine(s) to let ssh in, for {limit / 60:.0f} minutes at most")
    while left:
        answers = on_each(left, lambda node: learn(deployment, outputs, node))
        for node, answer in zip(list(left), answers, strict=True):
            if answer.returncode == 0:
                left.remove(node)
            reason[node] = _reason(answer)
            if "IDENTIFICATION HAS CHANGED" in answer.stderr:
                raise DeployError(
                    f"{node} has another host key than the one in {deployment.directory / KNOWN}: if you reinstalled "
                    "the machine, remove its line there; otherwise somebody else answers for it."
                )
        log(f"{total - len(left)} of {total} let ssh in" + (f"; not yet {', '.join(left[:4])}" if left else ""))
        if left and time.monotonic() - began > limit:
            raise DeployError(
                f"{len(left)} of {total} machines do not let ssh in after {limit / 60:.0f} minutes ({left[0]}: "
                f"{reason[left[0]]}): look at the way in (jump_host, allowed_cidrs, connection), and run "
                f"`gaudi3-deploy wait {deployment.name}` again."
            )
        if left:
            time.sleep(pause)
    _first_boot(deployment, list(names) or [each.name for each in nodes.machines(outputs)], log, limit)


def _first_boot(deployment: Deployment, names: Sequence[str], log: Callable[[str], None], limit: float) -> None:
    answers = on_each(names, lambda node: run(deployment, node, FIRST_BOOT, timeout=limit))
    for node, answer in zip(names, answers, strict=True):
        if answer.returncode:
            said = " ".join(answer.stdout.split()) or _reason(answer)
            raise DeployError(
                f"The first start of {node} did not end well ({said}): look at /var/log/cloud-init-output.log there, "
                f"with `gaudi3-deploy ssh {deployment.name} {node}`."
            )
    log(f"{len(names)} machine(s) have ended their first start")


def _reason(answer: subprocess.CompletedProcess[str]) -> str:
    lines = [line.strip() for line in answer.stderr.splitlines() if line.strip() and "Warning:" not in line]
    return lines[-1] if lines else f"exit code {answer.returncode}"


def enter(deployment: Deployment, node: str, command: Sequence[str]) -> None:
    """Become ssh."""
    called = [*arguments(deployment), node, *command]
    os.execv(called[0], called)
