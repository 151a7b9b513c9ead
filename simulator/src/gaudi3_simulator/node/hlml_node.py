"""What libhlml asks about itself and about the node: every question, and those that concern no single card."""

from __future__ import annotations

from . import hlml_values, node, releases
from .hlml_codes import DRIVER_NOT_LOADED, INVALID_ARGUMENT, NOT_FOUND, Refused, number
from .hlml_shown import Shown
from .strictness import is_on

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .hlml_values import Field


def value(simulated: node.Node, info: releases.Release, name: str, arguments: list[str]) -> list[Field]:
    """The fields that answer a question; Refused with the error code otherwise."""
    if name in _OF_THE_LIBRARY:
        return _OF_THE_LIBRARY[name](simulated, info, arguments)
    if not simulated.driver_up and (name != "count" or is_on("hlml-needs-driver")):
        raise Refused(DRIVER_NOT_LOADED)
    if name in _OF_THE_NODE:
        return _OF_THE_NODE[name](simulated, info, arguments)
    return hlml_values.OF_A_CARD[name](hlml_values.Question(simulated, info, arguments))


def _initialise(simulated: node.Node, info: releases.Release, arguments: list[str]) -> list[Field]:
    if not simulated.driver_up and is_on("hlml-needs-driver"):
        raise Refused(DRIVER_NOT_LOADED)
    return []


def _count(simulated: node.Node, info: releases.Release, arguments: list[str]) -> list[Field]:
    return [len(simulated.cards) if simulated.driver_up else 0]


def _by_index(simulated: node.Node, info: releases.Release, arguments: list[str]) -> list[Field]:
    wanted = number(arguments[0])
    indexes = sorted(card.index for card in simulated.cards)
    # The vendor's page: the index is the number of an existing device file.
    places = {index: index for index in indexes} if is_on("hlml-index-is-minor") else dict(enumerate(indexes))
    if wanted not in places:
        raise Refused(INVALID_ARGUMENT)
    return [places[wanted]]


def _by_address(simulated: node.Node, info: releases.Release, arguments: list[str]) -> list[Field]:
    wanted = arguments[0].lower() if arguments else ""
    # On a node of one PCI domain the domain may be left out (habana-pyhlml's text).
    domains = {card.bus_id.partition(":")[0] for card in simulated.cards}
    if wanted.count(":") == 1 and len(domains) == 1:
        wanted = f"{domains.pop()}:{wanted}"
    return _found([card.index for card in simulated.cards if card.bus_id == wanted])


def _by_uuid(simulated: node.Node, info: releases.Release, arguments: list[str]) -> list[Field]:
    return _found([card.index for card in simulated.cards if card.uuid == " ".join(arguments)])


def _found(indexes: list[int]) -> list[Field]:
    if not indexes:
        raise Refused(NOT_FOUND)
    return [indexes[0]]


def _events(simulated: node.Node, info: releases.Release, arguments: list[str]) -> list[Field]:
    """Of each card: its index, critical events, ECC errors (double, single), those in DRAM, changes of clock."""
    answered: list[Field] = []
    present = {card.index for card in simulated.cards}
    for card in simulated.all_cards:
        lost = card.index not in present
        resets = int(simulated.runtime["resets"].get(str(card.index), 0))
        # A reset counts as the event that led to it, so the count does not fall when the card is back.
        failed = resets + int(lost or simulated.status(card) != "Operational")
        counts = [0, 0, 0, 0]
        if not lost:
            shown = Shown(simulated, card, info)
            counts = [
                int(shown.field(f"ecc.errors.{which}.volatile.total") or 0)
                for which in ("uncorrected", "corrected", "dram", "dram-corrected")
            ]
        answered += [card.index, failed, *counts, 0]
    return answered


def _driver_version(simulated: node.Node, info: releases.Release, arguments: list[str]) -> list[Field]:
    return [simulated.driver_version]


def _nic_driver_version(simulated: node.Node, info: releases.Release, arguments: list[str]) -> list[Field]:
    return [simulated.nic_driver_version]


def _library_version(simulated: node.Node, info: releases.Release, arguments: list[str]) -> list[Field]:
    return [info.tool]


_OF_THE_LIBRARY: dict[str, Callable[[node.Node, releases.Release, list[str]], list[Field]]] = {
    "init": _initialise,
    "library-version": _library_version,
    "events": _events,
}

_OF_THE_NODE: dict[str, Callable[[node.Node, releases.Release, list[str]], list[Field]]] = {
    "count": _count,
    "by-index": _by_index,
    "by-address": _by_address,
    "by-uuid": _by_uuid,
    "driver-version": _driver_version,
    "nic-driver-version": _nic_driver_version,
}
