# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Clusters out of Terraform's outputs: their machines, and what leads ssh to each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Optional

from .._printable import printable
from .._refusal import Refusal
from .state import mapping_of

#: Forms of what ssh gets to see. None begins as an option does, has a blank, or is a command.
_ADDRESS = re.compile(r"[A-Za-z0-9:][A-Za-z0-9._:-]*")
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9._-]*")
_JUMP = re.compile(r"([A-Za-z_][A-Za-z0-9._-]*@)?[A-Za-z0-9][A-Za-z0-9._:-]*")
_KEY = re.compile(r"[a-z][a-z0-9@.-]* [A-Za-z0-9+/]+=*")
_IDENTITY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]*")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
#: One line without the beginning of a template: `ansible-inventory --export` does not keep the mark that it is none.
_TEXT = re.compile(r"(?:(?!\{[{%#])[^\x00-\x1f\x7f-\x9f])+")
_VARIABLE = re.compile(r"[a-z][a-z0-9_]*")
#: How ssh gets to the machines of a cluster.
CONNECTIONS = ("direct", "ssm")


@dataclass(frozen=True)
class Host:
    """A machine of a cluster."""

    name: str
    #: head, worker or monitor.
    role: str
    private_ip: str
    #: What ssh connects to: an address, or an instance id where ssh goes through a cloud's own service.
    connect_to: str
    ssh_user: str
    public_ip: Optional[str] = None
    instance_id: Optional[str] = None
    instance_type: Optional[str] = None
    zone: Optional[str] = None
    market: Optional[str] = None
    cards: int = 0
    #: None for ssh's own.
    ssh_port: Optional[int] = None
    #: In place of the cluster's; none for no jump host.
    jump_host: Optional[str] = None
    #: Type and key; no other is believed.
    host_key: Optional[str] = None
    #: Address of the machine's management controller.
    bmc: Optional[str] = None

    @property
    def is_monitor(self) -> bool:
        """Whether it is the monitoring machine, and no node."""
        return self.role == "monitor"


@dataclass(frozen=True)
class Cluster:
    """What one Terraform project made."""

    name: str
    cloud: str
    region: Optional[str]
    #: In their order, the head first.
    nodes: tuple[Host, ...]
    monitor: Optional[Host]
    #: As user@host or user@host:port; empty for none.
    jump_host: str = ""
    connection: str = "direct"
    checkpoint_target: Optional[str] = None
    #: Further variables of all its hosts.
    variables: Mapping[str, str] = field(default_factory=dict)
    #: Why no way to its hosts can be told; empty where it can.
    outdated: str = ""

    @property
    def hosts(self) -> tuple[Host, ...]:
        """Nodes and monitor."""
        return self.nodes + ((self.monitor,) if self.monitor else ())


class _Reader:
    """Reads values of one source, each in the form that it must have."""

    def __init__(self, source: str) -> None:
        self._source = source

    def text(self, said: Mapping[str, Any], what: str, form: re.Pattern[str], of: str) -> Optional[str]:
        """A text of a form; None where there is none."""
        value = said.get(what)
        if value is None or value == "":
            return None
        if not isinstance(value, str) or not form.fullmatch(value):
            raise self.wrong(of, what, value)
        return value

    def wrong(self, of: str, what: str, value: Any) -> Refusal:
        """A value that is none of its kind."""
        return Refusal(
            f"{self._source} says of {printable(of)} that its {what} is '{printable(value)}', which cannot be: look "
            "who writes Terraform's state, and correct it there."
        )

    def host(self, name: str, said: Mapping[str, Any]) -> Host:
        """An entry of the output ``cluster_endpoints``."""
        self.text({"name": name}, "name", _NAME, name)
        address, port = self.text(said, "private_ip", _ADDRESS, name) or "", said.get("ssh_port") or None
        if port is not None and (not isinstance(port, int) or not 0 < port < 65536):
            raise self.wrong(name, "ssh_port", port)
        return Host(
            name=name,
            role=said.get("role") or "",
            private_ip=address,
            connect_to=self.text(said, "connect_to", _ADDRESS, name) or address,
            ssh_user=self.text(said, "ssh_user", _USER, name) or "",
            public_ip=self.text(said, "public_ip", _ADDRESS, name),
            instance_id=self.text(said, "instance_id", _IDENTITY, name),
            instance_type=self.text(said, "instance_type", _TEXT, name),
            zone=self.text(said, "zone", _TEXT, name),
            market=self.text(said, "market", _TEXT, name),
            cards=int(said.get("cards") or 0),
            ssh_port=port,
            jump_host=self.text(said, "jump_host", _JUMP, name),
            host_key=self.text(said, "host_key", _KEY, name),
            bmc=self.text(said, "bmc", _ADDRESS, name),
        )

    def variables(self, about: Mapping[str, Any]) -> dict[str, str]:
        """Further variables of all hosts; none of those by which Ansible chooses what it runs."""
        found = dict(about.get("variables") or {})
        for name, value in found.items():
            if not _VARIABLE.fullmatch(name) or name.startswith("ansible_"):
                raise self.wrong("cluster", f"variable {printable(name)}", value)
            self.text(found, name, _TEXT, "cluster")
        return found


def cluster_from_outputs(outputs: Mapping[str, Any], source: str, again: str) -> Cluster:
    """The cluster that the values of outputs describe; ``again`` says how to bring them up to date."""
    if not outputs:
        raise Refusal(f"{source} has no outputs: make the machines first, with {again}.")
    about, endpoints = (mapping_of(outputs, name, source) for name in ("cluster", "cluster_endpoints"))
    reader = _Reader(source)
    hosts = [reader.host(name, said) for name, said in sorted(endpoints.items())]
    unfinished = sorted(host.name for host in hosts if not host.private_ip)
    if unfinished:
        raise Refusal(
            f"{source} is half applied, as {', '.join(unfinished)} has no address yet: finish it with {again}."
        )
    order = {name: index for index, name in enumerate(about.get("node_names") or [])}
    nodes = sorted((host for host in hosts if not host.is_monitor), key=lambda host: order.get(host.name, len(order)))
    if not nodes or set(order) != {host.name for host in nodes} or nodes[0].role != "head":
        raise Refusal(
            f"{source} is half applied: its cluster has {len(order)} nodes, and {len(nodes)} have addresses; finish it "
            f"with {again}."
        )
    connection = about.get("connection") or "direct"
    if connection not in CONNECTIONS:
        raise reader.wrong("cluster", "connection", connection)
    as_text = any(each.get("ssh_arguments") for each in (about, *endpoints.values()))
    return Cluster(
        name=reader.text(about, "name", _TEXT, "cluster") or "cluster",
        cloud=reader.text(about, "cloud", _TEXT, "cluster") or "cloud",
        region=reader.text(about, "region", _NAME, "cluster"),
        nodes=tuple(nodes),
        monitor=next((host for host in hosts if host.is_monitor), None),
        jump_host=reader.text(about, "jump_host", _JUMP, "cluster") or "",
        connection=connection,
        checkpoint_target=reader.text(about, "checkpoint_target", _TEXT, "cluster"),
        variables=reader.variables(about),
        outdated=(
            f"{source} gives ssh_arguments, as an earlier release of the modules did, in place of jump_host and "
            f"connection in the output cluster: bring the outputs up to date with {again}, which changes no machine."
        )
        if as_text
        else "",
    )


def ssh_options(cluster: Cluster, host: Host) -> dict[str, str]:
    """What leads ssh to a host, and which key it believes there, by the name of the option."""
    if cluster.outdated:
        raise Refusal(cluster.outdated)
    found = {}
    if cluster.connection == "ssm":
        found["ProxyCommand"] = (
            f"aws ssm start-session --region {cluster.region} --target %h --document-name AWS-StartSSHSession "
            "--parameters portNumber=%p"
        )
    jump = host.jump_host or cluster.jump_host
    if jump:
        # The jump host may be one of the hosts: ssh refuses to jump to a host through itself.
        place = jump.rpartition("@")[2]
        place = place.partition(":")[0] if place.count(":") == 1 else place
        itself = not host.jump_host and place in (host.connect_to, host.private_ip, host.public_ip)
        found["ProxyJump"] = "none" if itself else jump
    if host.host_key:
        # Nothing else is believed, and nothing has to be answered or learnt at the first connection.
        found["StrictHostKeyChecking"] = "yes"
        found["UserKnownHostsFile"] = found["GlobalKnownHostsFile"] = "/dev/null"
        found["KnownHostsCommand"] = f"/bin/echo %H {host.host_key}"
    return found
