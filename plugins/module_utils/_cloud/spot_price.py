# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What a spot market asked for a machine over some hours, zone by zone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Optional


@dataclass(frozen=True)
class Change:
    """From a time on a zone asks another price, USD for one machine and hour."""

    zone: str
    at: datetime
    usd_per_hour: float


@dataclass(frozen=True)
class Zone:
    """A zone's prices from ``start`` to ``end``; USD for one machine and hour."""

    zone: str
    current: float
    #: When the current price began.
    since: str
    minimum: float
    maximum: float
    #: Weighted by time: the sum of price times hours, divided by the hours that a price is known of.
    mean: float
    #: How often the price changed.
    changes: int

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a module's answer."""
        return asdict(self)


def summarise(changes: Iterable[Change], start: datetime, end: datetime) -> list[Zone]:
    """The zones, the cheapest first.

    A price holds until the zone's next change, the last one until ``end``. What was in force at ``start`` counts from
    there on: ``DescribeSpotPriceHistory`` gives the change before the start time, too.
    """
    zones: dict[str, list[Change]] = {}
    for change in changes:
        if change.at < end:
            zones.setdefault(change.zone, []).append(change)
    found = [_summary(zone, sorted(own, key=lambda each: each.at), start, end) for zone, own in zones.items()]
    return sorted(found, key=lambda zone: (zone.current, zone.mean, zone.zone))


def _summary(zone: str, changes: Sequence[Change], start: datetime, end: datetime) -> Zone:
    in_force = [change for n, change in enumerate(changes) if n + 1 == len(changes) or changes[n + 1].at > start]
    ends = [change.at for change in in_force[1:]] + [end]
    hours = [(until - max(change.at, start)).total_seconds() / 3600 for change, until in zip(in_force, ends)]
    prices = [change.usd_per_hour for change in in_force]
    whole = sum(hours)
    mean = sum(price * length for price, length in zip(prices, hours)) / whole if whole else prices[-1]
    return Zone(
        zone=zone,
        current=prices[-1],
        since=in_force[-1].at.isoformat(),
        minimum=min(prices),
        maximum=max(prices),
        mean=round(mean, 6),
        changes=sum(1 for n in range(1, len(prices)) if prices[n] != prices[n - 1]),
    )


def savings_percent(spot: float, on_demand: Optional[float]) -> Optional[float]:
    """How much less the spot market asks, in per cent of the price on demand; None where that is not known."""
    return round(100 * (1 - spot / on_demand), 1) if on_demand else None


def price_list_usd(entries: Iterable[str]) -> Optional[float]:
    """The hourly price on demand out of the ``PriceList`` of ``GetProducts``; None where there is not exactly one."""
    found = set()
    for entry in entries:
        terms: Mapping[str, Any] = json.loads(entry).get("terms", {}).get("OnDemand", {})
        for term in terms.values():
            for dimension in term["priceDimensions"].values():
                usd = float(dimension["pricePerUnit"].get("USD", 0))
                if dimension.get("unit") == "Hrs" and usd > 0:
                    found.add(usd)
    return found.pop() if len(found) == 1 else None
