"""The inputs of an estimate, as read from a YAML file or a mapping.

Money is in `currency`; every other unit is in the name. Each value that somebody has to state is a `Given`: a number or
a range, its source and its date.
"""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, ValidationError, model_validator

from gaudi3_scale import yaml_file
from gaudi3_scale.config.section import Section
from gaudi3_scale.cost.energy import screen
from gaudi3_scale.cost.platforms import platform
from gaudi3_scale.cost.values import Given
from gaudi3_scale.errors import ConfigError

FORM = "{value: 12.5, source: where it is from, date: 2026-11-23}"

DType = Literal["bfloat16", "float8", "float32"]
"""In which matrix products are computed."""


class Workload(Section):
    """What is trained."""

    model_size: str | float = Field("70B", description="parameters, as 70B, or a name, as llama-3.1-70b")
    dataset_tokens: str | float = Field("1T", description="tokens learnt from, repeated ones included")
    devices: int = Field(512, ge=1, description="accelerators at work, spares not counted")
    precision: DType = Field("bfloat16", description="whose peak the MFU refers to")


class Readings(Section):
    """Readings of a sensor."""

    values: list[float] = Field(min_length=1, description="watts of one accelerator")
    source: str = Field(min_length=1, description="where they are from")
    date: datetime.date = Field(description="when they were made")


class Offer(Section):
    """Nodes of one platform on one condition: rented (node_price_per_hour) or owned (node_purchase_price)."""

    platform: str = Field("", description="gaudi3, gaudi2, h100, h200 or a100; without it, the offer's name")
    precision: DType | None = Field(None, description="without it, the job's")
    node_price_per_hour: Given | None = Field(None, description="rent of a node, power included")
    node_purchase_price: Given | None = Field(None, description="of an own node, with its share of network and racks")
    amortisation_years: Given | None = Field(None, description="over which it is written off")
    utilisation: Given | None = Field(None, description="share of all hours in which it is at work, 0 to 1")
    node_upkeep_per_year: Given | None = Field(None, description="room, staff, support; without power")
    mfu: Given | None = Field(None, description="share of the dense peak that is reached, 0 to 1")
    tokens_per_second_per_device: Given | None = Field(None, description="measured; instead of mfu")
    device_watts: Given | None = Field(
        None, description="mean power of an accelerator; without it, its limit, if that is built in"
    )
    device_watts_readings: Readings | None = Field(
        None, description="to take the mean of; impossible ones are left out"
    )
    host_watts: Given | None = Field(None, description="mean power of the rest of a node")
    interruptions_per_node_day: Given | None = Field(None, description="failures and withdrawals of spot nodes")
    spare_nodes: int = Field(0, ge=0, description="nodes that are paid for and wait")

    @model_validator(mode="after")
    def _sound(self) -> Offer:
        for name in ("mfu", "utilisation"):
            share = getattr(self, name)
            if share is not None and not 0 < share.low <= share.high <= 1:
                raise ValueError(f"{name} is {list(share.value)}, but a share above 0 and up to 1 is needed")
        for name in (
            "node_price_per_hour",
            "node_purchase_price",
            "amortisation_years",
            "tokens_per_second_per_device",
        ):
            given = getattr(self, name)
            if given is not None and given.low <= 0:
                raise ValueError(f"{name} is {list(given.value)}, but it has to be above 0")
        if self.mfu is not None and self.tokens_per_second_per_device is not None:
            raise ValueError("mfu and tokens_per_second_per_device are both given, and one follows from the other")
        if self.node_price_per_hour is not None and self.node_purchase_price is not None:
            raise ValueError("node_price_per_hour and node_purchase_price are both given: a node is rented or owned")
        if self.device_watts is not None and self.device_watts_readings is not None:
            raise ValueError("device_watts and device_watts_readings are both given")
        return self


class Energy(Section):
    """Power that is paid for apart: that of owned nodes."""

    price_per_kwh: Given = Field(description="tariff")
    pue: Given = Field(description="power of the site over that of its machines, from 1 on")

    @model_validator(mode="after")
    def _sound(self) -> Energy:
        if self.pue.low < 1:
            raise ValueError(f"pue is {list(self.pue.value)}, but it is 1 at least")
        return self


class Storage(Section):
    """Data and checkpoints, kept while the job runs."""

    gib: Given = Field(description="GiB kept")
    price_per_gib_month: Given = Field(description="of them; a month has 730.5 hours")


class Checkpoints(Section):
    """What an interruption costs in time."""

    stall_seconds: Given = Field(description="for which training stands still for a checkpoint")
    restart_seconds: Given = Field(description="from an interruption to the first step after it")
    interval_minutes: float | None = Field(
        None, gt=0, description="between checkpoints; without it, the optimum (Daly)"
    )


class Inputs(Section):
    """All inputs of a comparison."""

    currency: str = Field("USD", pattern="^[A-Z]{3}$", description="of all prices, as ISO 4217 has it")
    note: str = Field("", description="a sentence that stands above the results and in the pictures")
    job: Workload = Field(default_factory=Workload, description="what is trained")
    offers: dict[str, Offer] = Field({}, description="by name")
    energy: Energy | None = Field(None, description="power of owned nodes")
    storage: Storage | None = Field(None, description="not counted without it")
    checkpoints: Checkpoints | None = Field(None, description="interruptions are not counted without it")

    @model_validator(mode="after")
    def _consistent(self) -> Inputs:
        for name, offer in self.offers.items():
            if offer.interruptions_per_node_day is not None and self.checkpoints is None:
                raise ValueError(
                    f"offers.{name}.interruptions_per_node_day needs the section checkpoints, with the seconds that a "
                    "checkpoint and a restart take"
                )
        return self

    def offer(self, name: str) -> Offer:
        """The offer of this name; one without any prices where none is given."""
        return self.offers.get(name, Offer())

    def precision(self, name: str) -> str:
        """In which this offer would train."""
        return self.offer(name).precision or self.job.precision

    def platform(self, name: str) -> str:
        """The name of an offer's platform; a ConfigError where it is not known."""
        found = self.offer(name).platform or name
        platform(found)
        return found

    def device_watts(self, name: str) -> Given | None:
        """Power of an accelerator of this offer: stated, measured, or else its limit; None where that is not known."""
        offer, known = self.offer(name), platform(self.platform(name))
        if offer.device_watts is not None:
            return offer.device_watts
        readings = offer.device_watts_readings
        if readings is not None:
            limit = known.device_watts.high if known.device_watts is not None else None
            power = screen(readings.values, limit)
            source = f"{readings.source}: mean of {power.used} readings, {power.dropped} impossible ones left out"
            return Given(value=(power.mean_watts, power.mean_watts), source=source, date=readings.date)
        return known.device_watts


def load(source: Inputs | dict[str, Any] | str | Path | None) -> Inputs:
    """Inputs from a YAML file or a mapping; a ConfigError of one sentence for what is wrong with them."""
    if isinstance(source, Inputs):
        return source
    where = "the inputs"
    values: Any = source or {}
    if isinstance(source, str | Path):
        where = str(source)
        try:
            values = yaml_file.read(Path(source).read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(
                f"The inputs {source} cannot be read ({error.strerror}): give a YAML file; docs/use/cost.md has one."
            ) from None
        except yaml_file.TwiceError as error:
            raise ConfigError(f"In the inputs {source}, {error}.") from None
        except (yaml.YAMLError, UnicodeDecodeError):
            raise ConfigError(f"The inputs {source} are not valid YAML: compare them with docs/use/cost.md.") from None
    try:
        return Inputs.model_validate(values)
    except ValidationError as error:
        problem = error.errors()[0]
        key = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "missing":
            raise ConfigError(
                f"In {where}, {key} is missing: a value is given with its source and date, as {FORM}."
            ) from None
        if problem["type"] in ("model_type", "dict_type", "model_attributes_type"):
            raise ConfigError(
                f"In {where}, {key or 'the whole'} is {problem['input']!r}: write it as {FORM}."
            ) from None
        if problem["type"] == "extra_forbidden":
            raise ConfigError(f"In {where}, the key {key} is not known: docs/use/cost.md lists all keys.") from None
        reason = problem["ctx"]["error"] if problem["type"] == "value_error" else problem["msg"]
        raise ConfigError(f"In {where}, {key or 'the whole'}: {reason}.") from None
