# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What role slurm runs on a host of a cluster that it sets up, and why it would not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._host.address import cluster_address, single_ip
from .._jobs.rules import number
from .._refusal import Refusal
from .._slurm import conf, site
from .given import entries, fact, group, host, listed, part, truth
from .model import Values

CONFIGURATION = "/etc/slurm"
CONTROLLERS = "slurm_controller"


def nodes(values: Values) -> list[conf.ComputeNode]:
    """The nodes as slurm.conf has them; Refusal where nothing is known of one."""
    return [_node(values, name) for name in group(values, "gaudi")]


def _node(values: Values, name: str) -> conf.ComputeNode:
    known = host(values, name)
    facts = entries(known.get("ansible_facts"))
    processors = number(known.get("slurm_processors") or 0) or number(facts.get("processor_vcpus") or 0)
    memory = number(known.get("slurm_memory") or 0) or _memory(number(facts.get("memtotal_mb") or 0))
    if not processors or not memory:
        raise Refusal(
            f"Nothing is known of {name}, and slurm.conf names all nodes: run for all of them, or give {name} "
            "slurm_processors and slurm_memory."
        )
    names = ("processor_count", "processor_cores", "processor_threads_per_core")
    sockets, cores, threads = (number(facts.get(each) or 0) for each in names)
    whole = sockets * cores * threads == processors
    return conf.ComputeNode(
        name, _address(values, name), processors, memory, number(known.get("slurm_expected_cards") or 0) or 8,
        str(facts.get("hostname") or ""), (sockets, cores, threads) if whole else (0, 0, 0),
    )  # fmt: skip


def _memory(found: int) -> int:
    """In MB: somewhat less than there is, and the same after a kernel's upgrade, as a node that has less is drained."""
    most = found * 97 // 100
    return most // 1024 * 1024 or most


def _address(values: Values, name: str) -> str:
    found = str(cluster_address(name, host(values, name)))
    if single_ip(found) is None:
        raise Refusal(
            f"{name} has {found!r} as its address: give it gaudi_cluster_address, an IP address of the cluster."
        )
    return found


def cluster(values: Values) -> conf.Cluster:
    """What slurm.conf says besides its nodes."""
    controller = group(values, CONTROLLERS)[0]
    named = part(host(values, controller), "ansible_facts", "hostname")
    return conf.Cluster(
        str(values("slurm_cluster_name")),
        str(named or controller),
        _address(values, controller),
        stop_timeout=number(values("slurm_stop_timeout")),
        health_interval=number(values("slurm_health_interval")),
        partition=str(values("slurm_partition")),
        partitions=[entries(each) for each in listed(values("slurm_partitions"))],
        constrains=truth(values, "slurm_constrain_devices"),
        accounting=truth(values, "slurm_accounting"),
        enforce=[str(each) for each in listed(values("slurm_enforce"))],
        settings={str(name): str(value) for name, value in entries(values("slurm_settings")).items()},
    )


def parts(values: Values) -> list[str]:
    """What of Slurm runs on this host, as `PACKAGES` names it."""
    name = values("inventory_hostname")
    controls = name in group(values, CONTROLLERS)
    return [
        *(["node"] if name in group(values, "gaudi") else []),
        *(["controller"] if controls else []),
        *(["accounting"] if controls and truth(values, "slurm_accounting") else []),
    ]


def packages(values: Values) -> list[str]:
    """All of this host, those of the site before the distribution's."""
    given, usual = entries(values("slurm_packages")), site.PACKAGES.get(fact(values, "os_family"), {})
    found: list[str] = []
    for each in parts(values):
        found += [str(name) for name in (given.get(each) or usual.get(each, ()))]
    return list(dict.fromkeys(found))


def _daemon(values: Values) -> str:
    """The package whose version is that of Slurm here."""
    return next((name for name in packages(values) if name.startswith("slurm")), "slurmd")


def problem(values: Values) -> str:
    """Why this host's part of the cluster cannot be, in one sentence; empty where it can. Asked before any change."""
    if (found := _problem_of_groups(values)) or (found := clocks_problem(values)):
        return found
    try:
        check(values)
    except Refusal as refusal:
        return str(refusal)
    if entries(values("slurm_packages")) and fact(values, "os_family") not in site.PACKAGES:
        return ""
    name, family = str(values("inventory_hostname")), fact(values, "os_family")
    system = f"{fact(values, 'distribution')} {fact(values, 'distribution_version')}"
    said = entries(values("_slurm_candidate"))
    version = site.version_of(family, str(said.get("stdout", "")))
    found = site.package_problem(name, system, family, _daemon(values), version, said.get("rc") == 0)
    return found or _releases_problem(values)


def _releases_problem(values: Values) -> str:
    """Which node is ahead of the controller, as far as hosts have said it."""
    (controller,) = group(values, CONTROLLERS)
    hosts = list(dict.fromkeys([controller, *group(values, "gaudi")]))
    return site.releases_problem(controller, {name: _version(values, name) for name in hosts})


def _version(values: Values, name: str) -> str:
    """Of Slurm's package on a host, installed or to be; empty where it is not known."""
    family = str(part(host(values, name), "ansible_facts", "os_family") or "")
    return site.version_of(family, str(_answer(values, name, "_slurm_candidate").get("stdout", "")))


def _problem_of_groups(values: Values) -> str:
    return site.controller_problem(group(values, CONTROLLERS)) or (
        "" if group(values, "gaudi") else "No host is in the group gaudi, where jobs run: put one into it."
    )


def check(values: Values) -> None:
    """Refuse variables that make no configuration."""
    conf.cluster_files(cluster(values), nodes(values))
    site.munge_key(str(values("slurm_munge_key") or ""), "")
    for name in entries(values("slurm_packages")):
        if name not in site.PACKAGES["Debian"]:
            raise Refusal(f"slurm_packages has {name!r}: its keys are node, controller and accounting.")


def clocks_problem(values: Values) -> str:
    """Which host's clock is too far from the others', in one sentence; empty where none is."""
    hosts = list(dict.fromkeys([*group(values, CONTROLLERS), *group(values, "gaudi")]))
    found = {name: site.clock(str(_answer(values, name, "_slurm_clock").get("stdout", ""))) for name in hosts}
    known = {name: clock for name, clock in found.items() if clock is not None}
    return site.clock_problem(next(iter(known), ""), known)


def keys_problem(values: Values) -> str:
    """Which hosts have another munge key, in one sentence; empty where all have the same."""
    hosts: Sequence[str] = list(dict.fromkeys([*group(values, CONTROLLERS), *group(values, "gaudi")]))
    return site.keys_problem(
        {name: str(part(_answer(values, name, "_slurm_key"), "stat", "checksum") or "") for name in hosts}
    )


def _answer(values: Values, name: str, registered: str) -> Mapping[str, Any]:
    return entries(host(values, name).get(registered))


def files(values: Values) -> list[dict[str, Any]]:
    """The files that are equal on all hosts, as module gaudi_service takes them."""
    found = conf.cluster_files(cluster(values), nodes(values))
    return [
        {"path": f"{CONFIGURATION}/{name}", "content": text, "restart": name != conf.READ_AGAIN}
        for name, text in found.items()
    ]


def controller_files(values: Values) -> list[dict[str, Any]]:
    """The same on the controller, which tells the nodes what is read again."""
    return [{**each, "reload": not each["restart"]} for each in files(values)]


def munge_key(values: Values) -> str:
    """The text of munge.key."""
    made = part(values("_slurm_secrets"), "passwords", "slurm_munge", "password")
    return site.munge_key(str(values("slurm_munge_key") or ""), str(made or ""))


def secrets(values: Values) -> list[str]:
    """Names of the passwords that are made and kept, unless they are given."""
    key = [] if values("slurm_munge_key") else ["slurm_munge"]
    return [*key, *(["slurm_database"] if truth(values, "slurm_accounting") else [])]


def accounting(values: Values) -> Mapping[str, str]:
    """What slurmdbd and its database read."""
    password = str(part(values("_slurm_secrets"), "passwords", "slurm_database", "password") or "")
    family = fact(values, "os_family")
    memory = number(entries(values("ansible_facts")).get("memtotal_mb") or 0)
    return {
        "password": password,
        "slurmdbd": site.slurmdbd_conf(cluster(values), password),
        "settings": site.database_settings(memory),
        "settings_file": site.DATABASE_SETTINGS.get(family, site.DATABASE_SETTINGS["Debian"]),
    }


def decide(values: Values) -> Mapping[str, Any]:
    """What role slurm runs on this host, whatever its answers."""
    found, name = parts(values), str(values("inventory_hostname"))
    controller = next(iter(group(values, CONTROLLERS)), "")
    return {
        "is_node": "node" in found,
        "controls": "controller" in found,
        "accounts": "accounting" in found,
        "packages": packages(values),
        "candidate": site.candidate(fact(values, "os_family"), _daemon(values)),
        "secrets": secrets(values),
        "address": str(cluster_address(name, host(values, name))),
        "controller": str(cluster_address(controller, host(values, controller))),
    }
