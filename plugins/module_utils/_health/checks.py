# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The table of health checks: name, component, what it reads, its floor, and the depth at which its readings exist."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from . import checks_cards, checks_node, checks_ports, checks_tools
from .readings import NodeReading
from .verdicts import Finding

QUICK, STANDARD, DEEP = "quick", "standard", "deep"
DEPTHS = (QUICK, STANDARD, DEEP)


@dataclass(frozen=True)
class Check:
    """One check. ``floor`` says in words what is still in order."""

    name: str
    component: str
    reads: str
    floor: str
    depth: str
    run: Callable[[NodeReading], Iterator[Finding]]


CHECKS = (
    Check(
        "driver-loaded", "node", "/sys/module, PCI bus", "loaded where cards are on the bus", QUICK, checks_node.driver
    ),
    Check(
        "driver-built",
        "node",
        "/lib/modules",
        "built for the running kernel, no file empty",
        QUICK,
        checks_node.module_files,
    ),
    Check("driver-version", "node", "/sys/module, modinfo", "loaded is installed", QUICK, checks_node.driver_version),
    Check(
        "card-count",
        "node",
        "PCI bus, hl-smi -Q",
        "8 of an OAM board, or as many as expected",
        QUICK,
        checks_node.card_count,
    ),
    Check(
        "kernel-log",
        "node, card",
        "kernel log",
        "no event that asks for more than a look",
        QUICK,
        checks_node.kernel_log,
    ),
    Check("rdma-files", "node", "/dev/infiniband", "one for each card", QUICK, checks_node.rdma_files),
    Check("iommu", "node", "iommu_group/type", "identity", QUICK, checks_node.iommu),
    Check("huge-pages", "node", "/proc/sys/vm/nr_hugepages", "as many as are set up", QUICK, checks_node.huge_pages),
    Check("governor", "node", "scaling_governor", "performance", QUICK, checks_node.governor),
    Check("firewall", "node", "nft list table", "as it was loaded", QUICK, checks_node.firewall),
    Check("clock", "node", "chronyc tracking", "1 s from its source", QUICK, checks_node.clock),
    Check(
        "gaudinet",
        "node",
        "gaudinet.json, MAC addresses",
        "absent, or this node's ports",
        QUICK,
        checks_ports.addresses,
    ),
    Check("card-status", "card", "hl-smi -L", "Operational", QUICK, checks_cards.status),
    Check("card-temperature", "card", "hl-smi -Q", "above 0 C", QUICK, checks_cards.temperature),
    Check(
        "memory-uncorrected", "card", "hl-smi -Q", "none since the driver was loaded", QUICK, checks_cards.uncorrected
    ),
    Check("memory-corrected", "card", "hl-smi -Q", "none; more is only reported", QUICK, checks_cards.corrected),
    Check("memory-rows", "card", "hl-smi -L", "none pending", QUICK, checks_cards.rows),
    Check("memory-kept", "card", "hl-smi", "idle use and 1 GiB without a process", QUICK, checks_cards.memory_kept),
    Check(
        "leftover-process", "card", "hl-smi", "no idle process outside of a unit", QUICK, checks_cards.leftover_process
    ),
    Check("pcie", "card", "hl-smi -Q", "highest width and generation", QUICK, checks_cards.pcie),
    Check("throttled", "card", "hl-smi -Q", "never; more is only reported", QUICK, checks_cards.throttled),
    Check("firmware", "card", "hl-smi -L", "that of most cards", QUICK, checks_cards.firmware),
    Check("port-count", "card", "hl-smi -n ports", "21 internal, 3 external on OAM boards", QUICK, checks_ports.count),
    Check("port-internal", "port", "hl-smi -n link", "up", QUICK, checks_ports.internal_down),
    Check("port-external", "port", "hl-smi -n link, flags", "up where any is", QUICK, checks_ports.external_down),
    Check("port-mtu", "port", "mtu", "that of most ports", QUICK, checks_ports.mtu),
    Check(
        "port-flow-control",
        "card",
        "manage_network_ifs.sh --get-pfc",
        "that of most cards",
        STANDARD,
        checks_ports.flow_control,
    ),
    Check("port-flapping", "port", "hl-smi -n stats", "fewer than 3 restored links", STANDARD, checks_ports.flapping),
    Check("port-symbol-errors", "port", "hl-smi -n stats", "a rate below 1e-4", STANDARD, checks_ports.symbol_errors),
    Check(
        "port-uncorrected",
        "port",
        "hl-smi -n stats",
        "no uncorrected code word",
        STANDARD,
        checks_ports.uncorrected_words,
    ),
    Check("acquire", "card", "acquiring a card", "acquired", STANDARD, checks_tools.acquire),
    Check("hl-qual", "card", "hl_qual", "every mode passes", STANDARD, checks_tools.qualification),
    Check("collective", "node", "hccl_demo", "the board's floors", STANDARD, checks_tools.collectives),
)
NAMES = tuple(check.name for check in CHECKS)


def findings(reading: NodeReading, expected_cards: int | None = None, without: Collection[str] = ()) -> list[Finding]:
    """What every check says of a reading without impossible values; ``without`` names checks to leave out."""
    found: list[Finding] = []
    for check in CHECKS:
        if check.name in without:
            continue
        if check.run is checks_node.card_count:
            found += checks_node.card_count(reading, expected_cards)
        else:
            found += check.run(reading)
    return found
