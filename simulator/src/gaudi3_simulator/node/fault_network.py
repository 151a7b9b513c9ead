"""Faults of gaudinet.json, the addresses of the external ports in a layer-3 fabric: left empty, or of other cards."""

from __future__ import annotations

import json
import os

from . import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .node import Node


def spoil(simulated: Node, fault: dict[str, Any], empty: bool) -> None:
    """Write the spoilt file, and keep the text that was there in the fault; ``None`` where there was no file."""
    fault["before"] = paths.read_text(paths.GAUDINET)
    fault["text"] = "" if empty else _of_other_cards(simulated)
    paths.write_atomically(paths.GAUDINET, fault["text"])


def restore(fault: dict[str, Any]) -> None:
    """Put the text back that was there, unless somebody has written another."""
    if paths.read_text(paths.GAUDINET) != fault["text"]:
        return
    if fault["before"] is None:
        os.remove(paths.at(paths.GAUDINET))
    else:
        paths.write_atomically(paths.GAUDINET, fault["before"])


def _of_other_cards(simulated: Node) -> str:
    """A whole and valid file, with hardware addresses that no port of this node has."""
    entries = [
        {
            "NIC_MAC": f"06:ff:ff:ff:{card.index:02x}:{port:02x}",
            "NIC_IP": f"198.18.{card.index}.{port * 4 + 1}",
            "SUBNET_MASK": "255.255.255.252",
            "GATEWAY_MAC": "06:ff:ff:ff:ff:fe",
        }
        for card in simulated.all_cards
        for port in simulated.board.external_ports
    ]
    return json.dumps({"NIC_NET_CONFIG": entries}) + "\n"
