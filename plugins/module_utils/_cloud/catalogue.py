# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Accelerator instance types: what they are, where they were seen, and which of them fit what is asked for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Optional

from .._refusal import Refusal

CLOUDS = ("aws", "azure", "gcp", "ibm", "onprem")


@dataclass(frozen=True)
class Price:
    """A price that was seen somewhere on some day; USD for one machine and hour."""

    market: str
    region: str
    usd_per_hour: float
    source: str
    #: Day on which the source was looked at, as YYYY-MM-DD.
    seen: str
    #: Day of the price itself; None where the source has none.
    source_date: Optional[str] = None


@dataclass(frozen=True)
class Withdrawal:
    """That a cloud no longer offers a type: since when, where that was read, and when."""

    since: str
    source: str
    seen: str


@dataclass(frozen=True)
class InstanceType:
    """A type of machine. None is not known, and so is an empty list of regions."""

    name: str
    cloud: str
    accelerator: str
    source: str
    #: Day on which the source was looked at, as YYYY-MM-DD.
    seen: str
    #: Day of the facts themselves; None where the source has none.
    source_date: Optional[str] = None
    cards: int = 0
    gaudi_generation: Optional[int] = None
    card_memory_gb: Optional[float] = None
    vcpus: Optional[int] = None
    memory_gib: Optional[float] = None
    network: Optional[str] = None
    #: The most that one network interface carries, in Gbit/s, where that is less than ``network``.
    nic_gbps: Optional[float] = None
    network_cards: int = 1
    efa_interfaces: int = 0
    nvme_count: int = 0
    nvme_gb: float = 0
    cluster_network: bool = False
    regions: tuple[str, ...] = ()
    prices: tuple[Price, ...] = ()
    #: Set where its cloud no longer offers it.
    withdrawn: Optional[Withdrawal] = None
    #: Why the Terraform modules refuse it, and what to use; None where they take it.
    refused: Optional[str] = None
    note: Optional[str] = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a module's answer."""
        return {**asdict(self), "regions": list(self.regions), "prices": [asdict(price) for price in self.prices]}

    def on_demand(self, region: str) -> Optional[Price]:
        """The price on demand in a region, where it was seen."""
        return next((price for price in self.prices if (price.market, price.region) == ("on-demand", region)), None)


def read_catalogue(text: str, source: str) -> dict[str, InstanceType]:
    """The types by name, out of the JSON that ``terraform/catalogue/instances.json`` has."""
    try:
        return read_types(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Refusal(
            f"{source} is no catalogue: give a file like terraform/catalogue/instances.json, or leave it out."
        ) from None


def read_types(catalogue: Mapping[str, Any]) -> dict[str, InstanceType]:
    """The types by name, out of the catalogue itself."""
    return {name: _read_type(name, entry) for name, entry in catalogue["types"].items()}


def _read_type(name: str, entry: Mapping[str, Any]) -> InstanceType:
    known = {key: value for key, value in entry.items() if key in InstanceType.__dataclass_fields__}
    known["prices"] = tuple(Price(**price) for price in entry.get("prices") or ())
    known["withdrawn"] = Withdrawal(**entry["withdrawn"]) if entry.get("withdrawn") else None
    known["regions"] = tuple(entry.get("regions") or ())
    return InstanceType(name=name, **{key: value for key, value in known.items() if key != "name"})


@dataclass(frozen=True)
class Question:
    """What is asked for; None asks for nothing."""

    cloud: Optional[str] = None
    gaudi_generation: Optional[int] = None
    region: Optional[str] = None
    minimum_cards: int = 0
    names: tuple[str, ...] = ()
    refused: bool = False
    other_accelerators: bool = False


def select(types: Mapping[str, InstanceType], question: Question) -> list[InstanceType]:
    """The types that fit, those with the newest Gaudi first. A type asked for by name needs not have Gaudi.

    A type whose regions are not known fits every region.
    """
    unknown = [name for name in question.names if name not in types]
    if unknown:
        raise Refusal(
            f"The catalogue has no type {', '.join(unknown)}: give one of {', '.join(sorted(types))}, or a catalogue "
            "of yours."
        )
    fitting = [each for each in types.values() if _fits(each, question)]
    return sorted(fitting, key=lambda each: (-(each.gaudi_generation or 0), each.cloud, each.name))


def _fits(kind: InstanceType, question: Question) -> bool:
    if question.names:
        if kind.name not in question.names:
            return False
    elif ((kind.refused or kind.withdrawn) and not question.refused) or not (
        kind.gaudi_generation or kind.refused or question.other_accelerators
    ):
        return False
    return (
        question.cloud in (None, kind.cloud)
        and question.gaudi_generation in (None, kind.gaudi_generation)
        and (question.region is None or not kind.regions or question.region in kind.regions)
        and kind.cards >= question.minimum_cards
    )


def refuse(types: Mapping[str, InstanceType], names: Iterable[str], cloud: str) -> None:
    """Raise for a type of another cloud, and for one that the catalogue refuses."""
    for name in names:
        each = types.get(name)
        if each is not None and each.refused:
            raise Refusal(each.refused)
        if each is not None and each.cloud != cloud:
            raise Refusal(f"{name} is a type of {each.cloud}, not of {cloud}: leave it out.")
