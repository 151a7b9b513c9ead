# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What Prometheus is configured with, beside what the host had before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._host.address import cluster_address, single_host
from .._printable import printable
from .._refusal import Refusal
from . import prometheus

#: The file that Prometheus is started with, and the folder of all its files.
DIRECTORY = "/etc/prometheus"
CONFIGURATION = f"{DIRECTORY}/prometheus.yml"


@dataclass(frozen=True)
class Wanted:
    """What the role's variables say."""

    host: str
    jobs: Sequence[Mapping[str, Any]]
    rules: Sequence[str]
    """Names of the files of rules."""
    limits: Mapping[str, Any]
    general: Mapping[str, Any]
    """The section ``global``."""
    groups: Mapping[str, Sequence[str]]
    gone: Sequence[str] = ()
    """Hosts that are being removed, which are no targets any more."""
    arguments: Sequence[str] = ()
    extra_arguments: Sequence[str] = ()
    extra_scrape_configs: Sequence[Mapping[str, Any]] = ()
    retention: Mapping[str, str] = field(default_factory=lambda: {"time": "", "size": ""})
    shorter_accepted: bool = False

    @property
    def moved_ports(self) -> list[int]:
        """Ports of services that the role moves from the loopback address to the cluster network."""
        return [int(job["port"]) for job in self.jobs if "monitoring" in job["groups"]]

    def hosts(self, names: Sequence[str]) -> list[str]:
        """The hosts of these groups that stay."""
        found = dict.fromkeys(host for name in names for host in self.groups.get(name, []))
        return [host for host in found if host not in self.gone]


@dataclass(frozen=True)
class Plan:
    """What follows from it."""

    targets: Mapping[str, Sequence[Mapping[str, Any]]]
    """By the name of the job."""
    nodes: Mapping[str, str]
    """The address of each node that is watched."""
    configuration: Mapping[str, Any]
    arguments: Sequence[str]
    replaced: Sequence[str]
    """Jobs of the site that the role's own replace."""


def addresses(wanted: Wanted, hostvars: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The address of every host that is watched."""
    found: dict[str, str] = {}
    for host in wanted.hosts([name for job in wanted.jobs for name in ["gaudi", *job["groups"]]]):
        said = cluster_address(host, hostvars.get(host) or {})
        address = single_host(said)
        if address is None:
            raise Refusal(
                f"{host} has the address {printable(said)!r}, which is no address of one host: correct its "
                "gaudi_cluster_address or ansible_host."
            )
        twin = next((name for name, known in found.items() if known == address), None)
        if twin:
            raise Refusal(
                f"{twin} and {host} both have the address {address}: correct gaudi_cluster_address or ansible_host of "
                "one, or put one name into both groups."
            )
        found[host] = address
    return found


def plan(
    wanted: Wanted,
    known: Mapping[str, str],
    claim: Mapping[str, Any],
    read: Callable[[str], Any],
) -> Plan:
    """From the hosts' addresses, and from what gaudi_claim found on the host: nothing, before it was asked.

    ``read`` reads YAML as Prometheus does; ``ValueError`` for what is none.
    """
    site = _site(str((claim.get("kept") or {}).get(CONFIGURATION, "")), wanted.host, read)
    own = prometheus.own_configuration(
        {
            "directory": DIRECTORY,
            "jobs": wanted.jobs,
            "extra_scrape_configs": wanted.extra_scrape_configs,
            "rules": wanted.rules,
            "limits": wanted.limits,
            "global": wanted.general,
        }
    )
    written = [f"{DIRECTORY}/targets-{job['name']}.yml" for job in wanted.jobs]
    try:
        configuration, replaced = prometheus.configuration(own, site, written, wanted.moved_ports)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Refusal(
            f"{CONFIGURATION} of {wanted.host} is no configuration of Prometheus ({printable(error, 200)}): correct it "
            "there."
        ) from error
    running = claim.get("running") or []
    before = running if running or claim.get("in_use") else None
    time, size = prometheus.retention(wanted.retention, before, wanted.shorter_accepted, wanted.host)
    kept = [f"--storage.tsdb.retention.{name}={value}" for name, value in (("time", time), ("size", size)) if value]
    given = claim.get("arguments") or []
    arguments = prometheus.arguments([*wanted.arguments, *kept], wanted.extra_arguments, given, CONFIGURATION)
    return Plan(
        {job["name"]: _targets(job, wanted, known) for job in wanted.jobs},
        nodes(wanted, known),
        configuration,
        arguments,
        replaced,
    )


def nodes(wanted: Wanted, known: Mapping[str, str]) -> dict[str, str]:
    """The address of each node that is watched."""
    return {host: known[host] for host in wanted.hosts(["gaudi"]) if host in known}


def _targets(job: Mapping[str, Any], wanted: Wanted, known: Mapping[str, str]) -> list[dict[str, Any]]:
    hosts = wanted.hosts(job["groups"])
    shown = {host: f"[{known[host]}]" if ":" in known[host] else known[host] for host in hosts}
    # Several pages at one port, which differ by a label.
    pages = [{"replica": name, "__metrics_path__": path} for name, path in (job.get("replicas") or {}).items()] or [{}]
    return [
        {"targets": [f"{shown[host]}:{job['port']}"], "labels": {"instance": host, **page}}
        for host in hosts
        for page in pages
    ]


def _site(text: str, host: str, read: Callable[[str], Any]) -> Mapping[str, Any]:
    """The site's configuration."""
    try:
        found = read(text) or {}
    except ValueError as error:
        raise Refusal(f"{CONFIGURATION} of {host} is no YAML ({printable(error)}): correct it there.") from error
    if not isinstance(found, dict):
        raise Refusal(f"{CONFIGURATION} of {host} is no configuration of Prometheus: correct it there.")
    return found
