"""What a deployment costs, from prices that were seen somewhere on some day, or from the user; otherwise nothing."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gaudi3_deploy.errors import UsageError
from gaudi3_deploy.messages import reason
from gaudi3_deploy.record import Deployment, Period

HOURS = 3600.0


@dataclass(frozen=True)
class InstanceType:
    """What the catalogue says of a type of machine."""

    name: str
    cards: int
    accelerator: str
    prices: tuple[dict[str, Any], ...]
    """Each with `market`, `usd_per_hour`, `region`, `source` and `seen`, a date."""


def node_count(kind: InstanceType | None, variables: Mapping[str, Any]) -> int:
    """How many machines have this many cards; 0 where the catalogue does not know the type."""
    return int(variables.get("cluster_size", 0)) // kind.cards if kind and kind.cards else 0


@dataclass(frozen=True)
class Price:
    """Of one node, per hour, without storage, traffic and taxes."""

    usd_per_hour: float | None
    description: str

    @classmethod
    def of(
        cls, kind: InstanceType | None, region: str, market: str, given: float | None, before: bool = False
    ) -> Price:
        """The user's own price (given now or before), else the catalogue's for the market (see `market`)."""
        if given is not None:
            return cls(given, f"{given:.2f} USD per node and hour, as given{' before' if before else ''}")
        for known in kind.prices if kind else ():
            if known["market"] != market:
                continue
            where = "" if known.get("region") in (None, region) else f" in {known['region']}, not {region}"
            return cls(
                float(known["usd_per_hour"]),
                f"{known['usd_per_hour']:.2f} USD per node and hour, {known['market']}{where} "
                f"(seen {known['seen']}: {known['source']})",
            )
        reason = REASONS.get(market) or f"the catalogue has no price of {kind.name if kind else 'it'}"
        return cls(None, f"unknown: {reason}; give yours with --price")


def price_of(kind: InstanceType | None, deployment: Deployment, given: float | None) -> Price:
    """The price of a deployment's nodes, of the type ``kind``: the user's own, ``given`` now or before, comes first."""
    before = deployment.given_price if given is None else None
    where = market(deployment.variables)
    return Price.of(kind, deployment.region, where, before if given is None else given, before is not None)


REASONS = {
    "spot": "spot prices change by the hour",
    "mixed": "some nodes are bought on demand and some on the spot market, whose prices change by the hour",
    "capacity-block": "a capacity block is paid beforehand, at the price of its offer",
}


def market(variables: Mapping[str, Any]) -> str:
    """How the nodes are bought: on-demand, spot, mixed or capacity-block. A reservation costs what on-demand does."""
    capacity = str(variables.get("capacity", "on-demand"))
    if capacity == "spot" and int(variables.get("on_demand_nodes", 0)):
        return "mixed"
    return "on-demand" if capacity == "reservation" else capacity


#: What clouds bill beside the nodes, by type of resource and, where it matters, by its name in the modules.
BESIDE = (
    (re.compile(r"(aws_instance|azurerm_linux_virtual_machine|google_compute_instance|ibm_is_instance)\.monitor"),
     "monitoring machine"),
    (re.compile(r"(aws_nat_gateway|google_compute_router_nat|azurerm_nat_gateway|ibm_is_public_gateway)\."), "gateway"),
    (re.compile(r"(aws_eip|azurerm_public_ip|google_compute_address|ibm_is_floating_ip)\."), "public address"),
    (re.compile(r"(aws_vpc_endpoint|ibm_is_virtual_endpoint_gateway)\."), "endpoint"),
    (re.compile(r"(aws_s3_bucket|google_storage_bucket|azurerm_storage_account|ibm_cos_bucket)\."), "bucket"),
    (re.compile(r"(aws_kms_key)\."), "key"),
    (re.compile(r"(aws_flow_log|ibm_is_flow_log|aws_cloudwatch_log_group)\."), "log"),
)  # fmt: skip


def _plural(label: str) -> str:
    return "es" if label.endswith("s") else "s"


def billed_beside(addresses: Iterable[str]) -> list[str]:
    """What is billed beside the nodes of a plan or a state, in numbers; traffic is always among it."""
    counts = {label: 0 for _pattern, label in BESIDE}
    for address in addresses:
        label = next((label for pattern, label in BESIDE if pattern.search(address)), None)
        if label:
            counts[label] += 1
    found = [f"{count} {label}{_plural(label) if count > 1 else ''}" for label, count in counts.items() if count]
    return [*found, "the nodes' disks", "traffic", "taxes"] if found else []


def read_catalogue(path: Path) -> dict[str, InstanceType]:
    """Types of machines by name."""
    return {
        name: InstanceType(name, int(e["cards"]), str(e["accelerator"]), tuple(e.get("prices", ())))
        for name, e in read_types(path).items()
    }


def read_types(path: Path) -> dict[str, Any]:
    """The catalogue's own words on each type. Raises UsageError where it cannot be read."""
    try:
        found = json.loads(path.read_text())["types"]
        for each in found.values():
            _read = str(each["cloud"]), str(each["accelerator"]), int(each["cards"])
        return dict(found)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"The catalogue of machines {path} cannot be read ({reason(error)}): restore it.") from None


def accrued(periods: Sequence[Period], now: float | None = None) -> tuple[float, float, float]:
    """USD since the beginning, node-hours with a known price, node-hours without."""
    now = time.time() if now is None else now
    usd = priced = unpriced = 0.0
    for period in periods:
        hours = period.nodes * max(0.0, (period.ended or now) - period.began) / HOURS
        if period.hourly_usd is None:
            unpriced += hours
        else:
            priced += hours
            usd += hours * period.hourly_usd
    return usd, priced, unpriced
