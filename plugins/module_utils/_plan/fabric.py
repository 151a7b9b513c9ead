# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Fabric: the collective library's configuration and the external ports."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .._host.answers import remark_lines
from .._kinds import exact, texts
from .addresses import addresses_here
from .given import demand_facts, entries, facts, group, host, listed, part, truth
from .model import Answers, Phase, Question, Values, empty, mapping
from .run import Run

CONFIGURATION = "Write the collective library's configuration"
PORTS = "Bring the external ports up"
LLDPD = "Run lldpd"


def found(values: Values) -> str:
    """What the host says, or what was asked for. TCP between hosts takes several of them."""
    asked = values("fabric_kind")
    return str(asked) if asked != "auto" else exact(part(facts(values), "gaudi_fabric", "kind")) or ""


def _several(values: Values) -> bool:
    return len(group(values, "gaudi") or listed(values("ansible_play_hosts_all"))) > 1


def kind(values: Values) -> str:
    """How collectives go from host to host."""
    there = found(values)
    return "none" if there == "host_tcp" and not _several(values) else there


def builds(values: Values) -> bool:
    """Whether what TCP needs is built on the host, which takes packages and sources.

    Before the driver is there, ports cannot be seen; IBM Cloud says of its profile that it has no cluster network.
    """
    portless = found(values) == "gaudi" and part(facts(values), "gaudi_fabric", "ports") in ([], ())
    expected = portless and values("fabric_kind") == "auto" and _several(values) and values("gaudi_cloud") == "ibm"
    return bool((expected or kind(values) == "host_tcp") and values("fabric_ofi_wrapper_archive") == "")


def _interface(values: Values) -> str:
    """The interface with this host's address."""
    given, address = facts(values), values("fabric_address")
    for name in listed(given.get("interfaces")):
        each = entries(given.get(re.sub("[^A-Za-z0-9_]", "_", str(name))))
        if part(each, "ipv4", "address") == address and (device := exact(each.get("device"))):
            return device
    return exact(part(given, "default_ipv4", "interface")) or ""


def environment(values: Values) -> dict[str, Any]:
    """Variables of the collective library on this host; what the user sets takes precedence."""
    interface = _interface(values) if kind(values) == "host_tcp" else ""
    return {**({"HCCL_SOCKET_IFNAME": interface} if interface else {}), **entries(values("fabric_environment"))}


def _special(values: Values) -> str:
    """The tasks that few hosts need besides; empty for none."""
    return {"gaudi": "lldp" if truth(values, "fabric_lldp") else "", "host_tcp": "host_tcp"}.get(kind(values), "")


def remarks_of_all(values: Values) -> list[str]:
    """What does not leave the hosts of the play, each sentence once, behind the hosts that it is said of."""
    said: dict[str, list[str]] = {}
    for name in values("ansible_play_hosts"):
        there = host(values, name)
        down = texts(part(there, "_fabric_ports_state", "down")) or []
        if down and there.get("fabric_ports", values("fabric_ports")) == "reported":
            said[name] = [f"External ports without a link: {', '.join(down)}."]
    # Of several such hosts, collectives go over TCP.
    if found(values) == "host_tcp" and kind(values) == "none":
        said[values("inventory_hostname")] = ["The cards show no network ports: collectives stay within this host."]
    return remark_lines(said)


def decide(values: Values) -> Mapping[str, Any]:
    """What role fabric does on this host."""
    demand_facts(values)
    return {
        "found": found(values),
        "kind": kind(values),
        "special": _special(values),
        "environment": environment(values),
        "ofi_wrapper_url": addresses_here(values)["wrapper"],
    }


def _asks(run: Run, _values: Values) -> bool:
    return run.needs_cards


def _has_ports(values: Values) -> bool:
    return found(values) == "gaudi"


def _hears(values: Values) -> bool:
    return _has_ports(values) and truth(values, "fabric_lldp")


def _unchanged(values: Values, answers: Answers) -> bool:
    files = mapping(answers, "fabric")
    return (
        _has_ports(values)
        and empty(files, "files")
        # By LLDP, without which the files stay as they are in a dry run.
        and files.get("addresses_known") is not False
        and empty(mapping(answers, "ports"), "down")
        and (not _hears(values) or mapping(answers, "lldpd").get("changed") is False)
    )


PHASE = Phase(
    "fabric",
    [Question("fabric", "fabric", CONFIGURATION)],
    _asks,
    _unchanged,
    details=[
        Question("ports", "fabric", PORTS, applies=_has_ports),
        Question("lldpd", "fabric", LLDPD, applies=_hears, tolerated=True),
    ],
)
