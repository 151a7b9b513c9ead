"""The estimate of one offer: hours, energy and money, each as a range.

    device-hours of work   6 x parameters x tokens / (peak x MFU), or tokens / measured tokens per second
    wall hours             of work / devices, with the time for checkpoints and interruptions (`checkpoint_interval.py`)
    node-hours             wall hours x (nodes + spare nodes)
    money of a node-hour   its rent, or (purchase / years + upkeep per year) / (8766 h x utilisation)
    energy                 node-hours x (devices x watts + host watts) x PUE; paid for apart where nodes are owned
    storage                GiB x price per GiB and month x wall hours / 730.5

Both ends of every range come from all inputs at the end that makes the result cheap, or expensive: every cost rises, or
falls, with each input alone, so no combination of inputs lies outside (tests/test_cost_model.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar

from gaudi3_scale.cost.checkpoint_interval import expected_seconds, optimal_interval_seconds
from gaudi3_scale.cost.inputs import FORM, Inputs
from gaudi3_scale.cost.platforms import peak, platform
from gaudi3_scale.cost.values import CHEAP, EXPENSIVE, Given, Pick, Range
from gaudi3_scale.cost.workload import count, parameters, training_flops
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.throughput.peaks import peak_flops

HOURS_PER_YEAR, HOURS_PER_MONTH = 8766.0, 730.5
COMPONENTS = {
    "compute": "nodes while the job gets on",
    "interruption": "nodes while work is saved, lost, repeated or restarted",
    "spares": "nodes that wait",
    "energy": "power that is not in the price of a node",
    "storage": "data and checkpoints",
}
T = TypeVar("T")


@dataclass(frozen=True)
class Time:
    """How long an offer takes, at one end of its inputs."""

    work_hours: float
    """Wall hours without checkpoints and interruptions."""
    wall_hours: float
    nodes: int
    spare_nodes: int
    interval_minutes: float | None
    """Between checkpoints; None where interruptions are not counted."""

    @property
    def node_hours(self) -> float:
        """Of all nodes that are paid for."""
        return self.wall_hours * (self.nodes + self.spare_nodes)


@dataclass(frozen=True)
class Estimate:
    """What an offer comes to; money is in the inputs' currency."""

    offer: str
    platform: str
    flops: float
    device_hours: Range
    """Of accelerators at work, without interruptions."""
    wall_hours: Range
    node_hours: Range
    mfu: Range | None
    """None where the peak of the offer's precision is not known."""
    energy_kwh: Range | None
    """Of all nodes; what is not given (host, PUE) is not in it. None where the accelerators' power is not known."""
    interval_minutes: Range | None
    components: dict[str, Range]
    """Money by what it is for, as in `COMPONENTS`."""
    total: Range
    per_million_tokens: Range
    not_counted: tuple[str, ...]
    """What is missing from the total, since no input was given for it."""


def needed(given: T | None, offer: str, name: str) -> T:
    """The input; a ConfigError that says how to give it where there is none."""
    if given is None:
        raise ConfigError(
            f"No {name} of {offer} is given and none is built in: add offers.{offer}.{name} to the inputs, with its "
            f"source and date, as {name}: {FORM}."
        )
    return given


def device_hours(inputs: Inputs, offer: str, pick: Pick, mfu: float | None = None) -> float:
    """Hours of one accelerator for the work alone; `mfu` overrides the offer's own throughput."""
    job, terms = inputs.job, inputs.offer(offer)
    tokens = count(job.dataset_tokens, "dataset_tokens")
    if mfu is None and terms.tokens_per_second_per_device is not None:
        return tokens / pick.less(terms.tokens_per_second_per_device) / 3600
    name = inputs.platform(offer)
    if mfu is None:
        mfu = pick.less(needed(terms.mfu, offer, "mfu"))
    flops = training_flops(parameters(job.model_size), tokens)
    return flops / (peak(name, inputs.precision(offer))[0] * mfu) / 3600


def time(inputs: Inputs, offer: str, pick: Pick, mfu: float | None = None) -> Time:
    """How long it takes, with checkpoints and interruptions where they are given."""
    job, terms = inputs.job, inputs.offer(offer)
    per_node = platform(inputs.platform(offer)).devices_per_node
    if job.devices % per_node:
        raise ConfigError(
            f"job.devices is {job.devices}: give a multiple of {per_node}, the devices of a node of {offer}."
        )
    nodes = job.devices // per_node
    work = device_hours(inputs, offer, pick, mfu) / job.devices
    checkpoints, rate = inputs.checkpoints, terms.interruptions_per_node_day
    if checkpoints is None or (rate is None and checkpoints.interval_minutes is None):
        return Time(work, work, nodes, terms.spare_nodes, None)
    failures_per_second = nodes * (pick.more(rate) if rate is not None else 0.0) / 86400
    mean = 1 / failures_per_second if failures_per_second else math.inf
    stall, restart = pick.more(checkpoints.stall_seconds), pick.more(checkpoints.restart_seconds)
    if checkpoints.interval_minutes is not None:
        interval = checkpoints.interval_minutes * 60
    else:
        interval = optimal_interval_seconds(stall, mean)
    try:
        wall = expected_seconds(work * 3600, interval, stall, restart, mean) / 3600
    except OverflowError:
        wall = math.inf
    if wall > 1000 * work + 1000:
        raise ConfigError(
            f"With {nodes} nodes, {offer} would be interrupted every {mean:,.0f} s and restart for {restart:,.0f} s: "
            "the job never ends; give fewer devices, fewer interruptions or a shorter restart."
        )
    return Time(work, wall, nodes, terms.spare_nodes, interval / 60 if math.isfinite(interval) else None)


def node_hour(inputs: Inputs, offer: str, pick: Pick) -> float:
    """Money of one node for an hour, without power that is paid for apart."""
    terms = inputs.offer(offer)
    if terms.node_purchase_price is None:
        return pick.more(needed(terms.node_price_per_hour, offer, "node_price_per_hour"))
    years = pick.less(needed(terms.amortisation_years, offer, "amortisation_years"))
    used = pick.less(needed(terms.utilisation, offer, "utilisation")) * HOURS_PER_YEAR
    upkeep = pick.more(needed(terms.node_upkeep_per_year, offer, "node_upkeep_per_year"))
    return (pick.more(terms.node_purchase_price) / years + upkeep) / used


def node_watts(inputs: Inputs, offer: str, pick: Pick) -> float:
    """Power of a node without the site's own, and without its host's where that is not given."""
    terms, per_node = inputs.offer(offer), platform(inputs.platform(offer)).devices_per_node
    host = pick.more(terms.host_watts) if terms.host_watts is not None else 0.0
    return per_node * pick.more(needed(inputs.device_watts(offer), offer, "device_watts")) + host


def energy_kwh(inputs: Inputs, offer: str, taken: Time, pick: Pick) -> float:
    """Of all nodes, spares as well."""
    pue = pick.more(inputs.energy.pue) if inputs.energy is not None else 1.0
    return taken.node_hours * node_watts(inputs, offer, pick) / 1000 * pue


def other_money(inputs: Inputs, offer: str, taken: Time, pick: Pick, include_energy: bool) -> dict[str, float]:
    """Energy and storage."""
    money = {"energy": 0.0, "storage": 0.0}
    terms, storage = inputs.offer(offer), inputs.storage
    if include_energy and terms.node_purchase_price is not None:
        if inputs.energy is None:
            raise ConfigError(
                f"The nodes of {offer} are owned and no energy is given: add energy.price_per_kwh and energy.pue to "
                f"the inputs, each with its source and date as {FORM}, or leave energy out with include_energy=False."
            )
        needed(terms.host_watts, offer, "host_watts")
        money["energy"] = energy_kwh(inputs, offer, taken, pick) * pick.more(inputs.energy.price_per_kwh)
    if storage is not None:
        months = taken.wall_hours / HOURS_PER_MONTH
        money["storage"] = pick.more(storage.gib) * pick.more(storage.price_per_gib_month) * months
    return money


def money(inputs: Inputs, offer: str, pick: Pick, include_energy: bool) -> dict[str, float]:
    """By component, at one end of the inputs."""
    taken, rate = time(inputs, offer, pick), node_hour(inputs, offer, pick)
    return {
        "compute": taken.work_hours * taken.nodes * rate,
        "interruption": (taken.wall_hours - taken.work_hours) * taken.nodes * rate,
        "spares": taken.wall_hours * taken.spare_nodes * rate,
        **other_money(inputs, offer, taken, pick, include_energy),
    }


def estimate(inputs: Inputs, offer: str, include_energy: bool = True) -> Estimate:
    """Everything of one offer; a ConfigError for an input that is missing, with the way to give it."""
    ends = (CHEAP, EXPENSIVE)
    times = [time(inputs, offer, pick) for pick in ends]
    parts = [money(inputs, offer, pick, include_energy) for pick in ends]
    hours = [device_hours(inputs, offer, pick) for pick in ends]
    tokens = count(inputs.job.dataset_tokens, "dataset_tokens")
    flops = training_flops(parameters(inputs.job.model_size), tokens)
    top = peak_flops(platform(inputs.platform(offer)).device, inputs.precision(offer))
    kwh = None
    if inputs.device_watts(offer) is not None:
        kwh = Range(*(energy_kwh(inputs, offer, taken, pick) for taken, pick in zip(times, ends, strict=True)))
    totals = [sum(part.values()) for part in parts]
    intervals = [taken.interval_minutes for taken in times if taken.interval_minutes is not None]
    return Estimate(
        offer=offer,
        platform=inputs.platform(offer),
        flops=flops,
        device_hours=Range(*hours),
        wall_hours=Range(*(taken.wall_hours for taken in times)),
        node_hours=Range(*(taken.node_hours for taken in times)),
        mfu=None if top is None else Range(*(flops / (top * used * 3600) for used in reversed(hours))),
        energy_kwh=kwh,
        interval_minutes=Range(min(intervals), max(intervals)) if intervals else None,
        components={name: Range(parts[0][name], parts[1][name]) for name in COMPONENTS},
        total=Range(*totals),
        per_million_tokens=Range(*(1e6 * total / tokens for total in totals)),
        not_counted=tuple(_not_counted(inputs, offer, include_energy)),
    )


def _not_counted(inputs: Inputs, offer: str, include_energy: bool) -> list[str]:
    terms = inputs.offer(offer)
    missing = {
        "interruptions and checkpoints": inputs.checkpoints is None,
        "interruptions": inputs.checkpoints is not None and terms.interruptions_per_node_day is None,
        "storage": inputs.storage is None,
        "energy": terms.node_purchase_price is not None and not include_energy,
        "kWh (no device_watts)": inputs.device_watts(offer) is None,
        "host power (in kWh alone)": terms.host_watts is None,
        "PUE (in kWh alone)": inputs.energy is None,
    }
    return [name for name, applies in missing.items() if applies]


def given_of(inputs: Inputs, offer: str) -> list[tuple[str, Given]]:
    """Every input of the estimate by its dotted name: stated ones, and the limit of power that stands in for one."""
    terms, watts = inputs.offer(offer), inputs.device_watts(offer)
    found = [(f"offers.{offer}.{name}", getattr(terms, name)) for name in type(terms).model_fields]
    rows = [(name, value) for name, value in found if isinstance(value, Given)]
    if terms.device_watts is None and watts is not None:
        rows.append((f"offers.{offer}.device_watts", watts))
    for section in ("energy", "storage", "checkpoints"):
        values = getattr(inputs, section)
        if values is not None:
            named = [(f"{section}.{name}", getattr(values, name)) for name in type(values).model_fields]
            rows += [(name, value) for name, value in named if isinstance(value, Given)]
    return rows
