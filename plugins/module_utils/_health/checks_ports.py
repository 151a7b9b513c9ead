# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Checks of the cards' network ports: number, links, flaps, symbol errors, MTU, flow control, addresses."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from .._hl_smi.card import Card, CardPort
from .actions import CONFIGURE, ERROR, RELOAD, RETRY, WARNING
from .boards import find
from .checks_cards import MAJORITY_OF, OPERATIONAL
from .readings import NodeReading
from .verdicts import NODE_FAULT, Finding

#: Links that came back more often than this since the driver was loaded flap. This project's limit.
RESTORES = 3
#: Symbol errors before their correction, per symbol, from which on a link is bad. This project's limit.
WORST_RATE = 1e-4
_RATE, _EXPONENT = "pre_FEC_SER_int", "pre_FEC_SER_exp (negative)"


def _port(card: Card, port: CardPort) -> str:
    return f"accel{card.index} port {port.port}"


def _working(reading: NodeReading) -> Iterator[tuple[Card, CardPort]]:
    """Ports of cards that work: a card out of order has no links, and its own verdict."""
    for card in reading.cards:
        if card.status in (None, OPERATIONAL):
            for port in card.ports:
                yield card, port


def count(reading: NodeReading) -> Iterator[Finding]:
    """Each card shows as many internal and external ports as its board has."""
    for card in reading.cards:
        board = find(card.name)
        if board is None or not card.ports:
            continue
        internal = sum(port.is_internal for port in card.ports)
        found, wanted = (internal, len(card.ports) - internal), (board.internal_ports, board.external_ports)
        if found != wanted:
            ports = f"{found[0]} internal and {found[1]} external ports"
            said = f"{card.label} has {ports} where {wanted[0]} and {wanted[1]} belong"
            yield Finding("port-count", f"accel{card.index}", NODE_FAULT, ERROR, RELOAD, said)


def internal_down(reading: NodeReading) -> Iterator[Finding]:
    """Every internal port has a link: they are traces of the board."""
    for card, port in _working(reading):
        if port.is_internal and port.link == "down" and not _flaps(port):
            said = f"internal port {port.port} of {card.label} is down"
            yield Finding("port-internal", _port(card, port), NODE_FAULT, ERROR, RELOAD, said)


def external_down(reading: NodeReading) -> Iterator[Finding]:
    """An external port that the host brought up has a link, where any of the node's has one: else nothing is cabled.

    A port that nobody brought up may have no cable. Where those of a whole card are so, the card lost them in a reset.
    """
    external = [(card, port) for card, port in _working(reading) if not port.is_internal]
    if not any(port.link == "up" for _card, port in external):
        return
    brought_up = {card.index for card, port in external if port.enabled is not False}
    for card, port in external:
        if port.link == "down" and (port.enabled is not False or card.index not in brought_up) and not _flaps(port):
            said = f"external port {port.port} of {card.label} is down while others are up"
            yield Finding("port-external", _port(card, port), NODE_FAULT, ERROR, RETRY, said)


def flapping(reading: NodeReading) -> Iterator[Finding]:
    """A link that comes and goes."""
    for card, port in _working(reading):
        if _flaps(port):
            times = port.errors["pcs_link_restores"]
            said = f"port {port.port} of {card.label} lost its link and got it back {times} times"
            yield Finding("port-flapping", _port(card, port), NODE_FAULT, ERROR, RELOAD, said)


def symbol_errors(reading: NodeReading) -> Iterator[Finding]:
    """The rate of symbol errors before their correction."""
    for card, port in _working(reading):
        if _RATE in port.errors and _EXPONENT in port.errors:
            rate = port.errors[_RATE] * 10.0 ** -min(port.errors[_EXPONENT], 300)
            if rate >= WORST_RATE:
                said = f"port {port.port} of {card.label} has a symbol error rate of {rate:.0e} before correction"
                yield Finding("port-symbol-errors", _port(card, port), NODE_FAULT, WARNING, RELOAD, said)


def uncorrected_words(reading: NodeReading) -> Iterator[Finding]:
    """Code words that were not corrected are lost packets."""
    for card, port in _working(reading):
        words = port.errors.get("cw_uncorrect_accum")
        if words:
            said = f"port {port.port} of {card.label} counts {words} code words that were not corrected"
            yield Finding("port-uncorrected", _port(card, port), NODE_FAULT, ERROR, RELOAD, said)


def mtu(reading: NodeReading) -> Iterator[Finding]:
    """Every external port has the MTU of the others."""
    ports = [(card, port) for card, port in _working(reading) if port.mtu is not None]
    if len(ports) < MAJORITY_OF:
        return
    usual, number = Counter(port.mtu for _card, port in ports).most_common(1)[0]
    for card, port in ports if number * 2 > len(ports) else ():
        if port.mtu != usual:
            said = f"port {port.port} of {card.label} has MTU {port.mtu} and the others {usual}"
            yield Finding("port-mtu", _port(card, port), NODE_FAULT, ERROR, CONFIGURE, said)


def flow_control(reading: NodeReading) -> Iterator[Finding]:
    """Flow control is on for all cards or for none."""
    known = [card for card in reading.cards if card.flow_control is not None]
    on = sum(bool(card.flow_control) for card in known)
    for card in known if len(known) >= MAJORITY_OF and on * 2 > len(known) else ():
        if not card.flow_control:
            said = f"flow control is disabled on the ports of {card.label} and enabled on {on} others"
            yield Finding("port-flow-control", f"accel{card.index}", NODE_FAULT, ERROR, CONFIGURE, said)


def addresses(reading: NodeReading) -> Iterator[Finding]:
    """gaudinet.json is absent (layer 2) or has the addresses of this node's ports (layer 3)."""
    text = reading.host.gaudinet
    if text is None:
        return
    said = _address_fault(text, set(reading.host.port_macs))
    if said:
        yield Finding("gaudinet", "node", NODE_FAULT, ERROR, CONFIGURE, f"/etc/habanalabs/gaudinet.json {said}")


def _address_fault(text: str, macs: set[str]) -> str:
    if not text.strip():
        return "is empty, which is neither layer 2 nor layer 3"
    try:
        entries = json.loads(text)["NIC_NET_CONFIG"]
        named = {str(entry["NIC_MAC"]).lower() for entry in entries}
    except (ValueError, KeyError, TypeError):
        return "is not of the shape that the collective library reads"
    strange = sorted(named - macs)
    if macs and strange:
        return f"names {strange[0]}, which no external port of this node has"
    return ""


def _flaps(port: CardPort) -> bool:
    return port.errors.get("pcs_link_restores", 0) >= RESTORES
