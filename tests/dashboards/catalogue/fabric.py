"""Ports, PCIe and the hosts' network."""

from __future__ import annotations

from tests.dashboards.model import CARD, NODE, Board, Panel, Row, stat

INTERFACES = 'device!~"lo|(veth|docker|cni|podman|br-|cali|virbr).*"'

BOARD = Board(
    "fabric",
    "Gaudi 3 fabric",
    "Ports between the cards and to the switches, PCIe, and the hosts' network.",
    [
        Row(
            "Ports of the cards",
            [
                stat(
                    "Ports down",
                    "Without a link. Internal ports have no cable.",
                    "sum by (port_type) (instance:habanalabs_ports_down:count{@hpu})",
                    legend="{{port_type}}",
                    limits=(1, 1),
                    alerts=("HpuInternalPortDown", "HpuExternalPortDown"),
                ),
                stat(
                    "Ports up",
                    "With a link.",
                    "sum by (port_type) (habanalabs_nic_port_status{@hpu})",
                    legend="{{port_type}}",
                ),
                stat(
                    "Changes of links",
                    "In the last hour.",
                    "sum(changes(habanalabs_nic_port_status{@hpu}[1h]))",
                    limits=(1, 20),
                    alerts=("HpuPortFlapping",),
                ),
                stat(
                    "Narrowest PCIe link",
                    "Lanes. A card should have 16.",
                    "min(habanalabs_pci_link_width{@hpu} > 0)",
                    alerts=("HpuPcieLinkDegraded",),
                ),
                Panel(
                    "Ports down, by node",
                    "Without a link.",
                    {"{{instance}} {{port_type}}": "instance:habanalabs_ports_down:count{@hpu}"},
                    width=12,
                    alerts=("HpuInternalPortDown", "HpuExternalPortDown"),
                ),
                Panel(
                    "Changes of links, by card",
                    "In 10 minutes.",
                    {CARD: "sum by (instance, id) (changes(habanalabs_nic_port_status{@hpu}[10m]))"},
                    width=12,
                    alerts=("HpuPortFlapping",),
                ),
            ],
        ),
        Row(
            "PCIe",
            [
                Panel(
                    "Lanes",
                    "The fewest of each node's cards. A reading that failed (0 from Intel's exporter) is left out.",
                    {NODE: "min by (instance) (habanalabs_pci_link_width{@hpu} > 0)"},
                    width=12,
                    alerts=("HpuPcieLinkDegraded", "HpuPcieReplays"),
                ),
                Panel(
                    "Speed",
                    "Gigatransfers per second, the slowest of each node's cards.",
                    {NODE: "min by (instance) (habanalabs_pci_link_speed{@hpu} > 0)"},
                    width=12,
                ),
            ],
        ),
        Row(
            "Network of the hosts",
            [
                Panel(
                    "Received",
                    "All interfaces but the loopback.",
                    {NODE: "instance:node_network_receive:bytes_per_second{@node}"},
                    "Bps",
                ),
                Panel(
                    "Sent",
                    "All interfaces but the loopback.",
                    {NODE: "instance:node_network_transmit:bytes_per_second{@node}"},
                    "Bps",
                ),
                Panel(
                    "Errors and drops",
                    "Packets per second that were received with errors, dropped, or could not be sent.",
                    {
                        "{{instance}} received": "sum by (instance)"
                        " (rate(node_network_receive_errs_total{@node}[$__rate_interval]))",
                        "{{instance}} dropped": "sum by (instance)"
                        " (rate(node_network_receive_drop_total{@node}[$__rate_interval]))",
                        "{{instance}} sent": "sum by (instance)"
                        " (rate(node_network_transmit_errs_total{@node}[$__rate_interval]))",
                    },
                    "cps",
                ),
                Panel(
                    "Changes of links, by interface",
                    "Of interfaces with a cable.",
                    {
                        "{{instance}} {{device}}": "increase(node_network_carrier_changes_total"
                        f"{{@node, {INTERFACES}}}[$__rate_interval])"
                    },
                    width=12,
                    alerts=("NodeLinkFlapping",),
                ),
                Panel(
                    "Interfaces that are up",
                    "Of those with a cable.",
                    {NODE: f"sum by (instance) (node_network_up{{@node, {INTERFACES}}})"},
                    width=12,
                ),
            ],
        ),
    ],
)
