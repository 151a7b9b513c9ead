# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Firewall: the table of the cluster's ports, and the unit that loads it at each boot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from .._host.firewall import groups_of, host_addresses
from .._host.service_state import is_unchanged
from .._refusal import Refusal
from .given import group, host, truth
from .model import Answers, Phase, Question, Values, mapping
from .run import Run

TABLE = "Close the ports to others"
BOOT = "Run the unit that closes them at each boot"
#: Variables of role firewall by their names behind firewall_.
ASKED = (
    *("metrics_ports", "admin_ports", "collective_ports", "monitor_addresses", "admin_networks", "cluster_addresses"),
    "extra_cluster_addresses",
)


def addresses(values: Values) -> dict[str, list[str]]:
    """Cluster addresses of the groups' hosts, without those that are being removed (playbook remove_node.yml).

    A node's own answers may have a part in this, so of each host one address is taken and no network.
    """
    gone = str(values("gaudi_remove") or "").split(",")
    found = {}
    for name in ("gaudi", "monitoring"):
        names = [each for each in group(values, name) if each not in gone]
        known = [host(values, each) for each in names]
        found[name] = host_addresses(
            (name, each.get("gaudi_cluster_address"), each.get("ansible_host")) for name, each in zip(names, known)
        )
    return found


def known_addresses(values: Values) -> Mapping[str, Any]:
    """As the plays of this collection look them up once for all hosts.

    Each host reading the variables of all others would take the square of their number.
    """
    known = host(values, "localhost").get("_firewall_known")
    return known if isinstance(known, Mapping) else addresses(values)


def closed(values: Values) -> list[dict[str, Any]]:
    """What is closed on this host, and for whom it stays open. A port belongs to the first list that has it."""
    # The addresses are in variables of other hosts.
    unsafe = values("gaudi_settings_problem")
    if unsafe:
        raise Refusal(unsafe)
    name = values("inventory_hostname")
    asked = {
        "trains": name in group(values, "gaudi"),
        "collects": name in group(values, "monitoring"),
        "jobs": values("trainer_jobs") or [],
        "rendezvous_port": values("firewall_rendezvous_port"),
        **{each: values(f"firewall_{each}") for each in ASKED},
    }
    return [asdict(each) for each in groups_of(asked)]


def _asks(run: Run, values: Values) -> bool:
    return run.has("firewall", "preflight") and truth(values, "firewall_enabled")


def _unchanged(values: Values, answers: Answers) -> bool:
    """The table is loaded, for which nft has to be there, and each boot loads it."""
    return (
        truth(values, "firewall_enabled")
        and is_unchanged(mapping(answers, "firewall"))
        and is_unchanged(mapping(answers, "firewall_boot"))
    )


PHASE = Phase(
    "firewall",
    [Question("firewall", "firewall", TABLE)],
    _asks,
    _unchanged,
    True,
    [Question("firewall_boot", "firewall", BOOT)],
)
