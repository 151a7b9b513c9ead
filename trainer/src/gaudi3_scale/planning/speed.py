"""Throughput that somebody states: a range of MFU, or a result file of `gaudi3-benchmark`."""

from __future__ import annotations

import datetime
import json
import statistics
from pathlib import Path
from typing import Any

from gaudi3_scale.config import Config
from gaudi3_scale.config.auto_precision import precision_of
from gaudi3_scale.cost.inputs import Inputs, Offer
from gaudi3_scale.cost.platforms import PLATFORMS
from gaudi3_scale.cost.values import Given
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.planning.accelerators import accelerator


def with_mfu(inputs: Inputs, text: str, platforms: list[str]) -> Inputs:
    """The inputs with this MFU, as `0.3,0.4`, for every platform of which no throughput is given."""
    try:
        ends = [float(part) for part in text.split(",")]
        if not 1 <= len(ends) <= 2 or not 0 < ends[0] <= ends[-1] <= 1:
            raise ValueError
    except ValueError:
        raise ConfigError(f"--mfu is {text!r}: give a share of the peak, as 0.35, or a range, as 0.3,0.4.") from None
    today = datetime.datetime.now(tz=datetime.UTC).date()
    stated = Given(value=(ends[0], ends[-1]), source="--mfu of this plan, no measurement", date=today)
    return _with(inputs, platforms, {"mfu": stated}, replace=False)


def with_result(inputs: Inputs, path: Path, job: Config) -> Inputs:
    """The inputs with the tokens per second that a result file has of this model, on the platform that it names.

    The range is that of the medians of its rounds. ConfigError for a file of the simulated device, for one without the
    model, and for a device that is not planned for.
    """
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        environment, rows = found["environment"], found["rows"]
        device, simulated = environment["hardware_name"], environment["simulated"]
        name = next((name for name, each in PLATFORMS.items() if each.device == device), None)
        precision = precision_of(job.train.precision, accelerator(name).kind) if name is not None else ""
        date = datetime.date.fromisoformat(str(found["began"])[:10])
        medians = [
            (row["units_per_step"] / statistics.median(each["seconds"]))
            for row in rows
            if row["outcome"] == "measured" and _is_of(row["case"], job, precision)
            for each in row["rounds"]
        ]
    except OSError as error:
        raise ConfigError(f"The result {path} cannot be read ({error.strerror}): give a file that exists.") from None
    except (ValueError, KeyError, TypeError, ZeroDivisionError):
        raise ConfigError(f"{path} is no result of gaudi3-benchmark: give the file that `run` wrote.") from None
    if simulated:
        raise ConfigError(
            f"{path} was measured on the simulated hpu, whose times say nothing about a Gaudi: give another."
        )
    if name is None:
        known = ", ".join(each.device for each in PLATFORMS.values())
        raise ConfigError(f"{path} was measured on {device}, for which nothing is planned: give one of {known}.")
    if not medians:
        raise ConfigError(
            f"{path} has no measured row of {job.model.name} with {job.model.sequence_length} tokens and "
            f"{precision}: measure it, or give --mfu."
        )
    rate = Given(value=(min(medians), max(medians)), source=f"{path.name} of gaudi3-benchmark", date=date)
    return _with(inputs, [name], {"tokens_per_second_per_device": rate, "mfu": None}, replace=True)


def _is_of(case: dict[str, Any], job: Config, precision: str) -> bool:
    wanted = job.model.name, job.model.sequence_length, precision
    return (case["shape"], case["size"], case["precision"]) == wanted and not case.get("config")


def _with(inputs: Inputs, platforms: list[str], values: dict[str, Any], replace: bool) -> Inputs:
    offers = dict(inputs.offers)
    for name in platforms:
        of = [each for each in offers if inputs.platform(each) == name] or [name]
        for each in of:
            offer = offers.get(each, Offer())
            if replace or (offer.mfu is None and offer.tokens_per_second_per_device is None):
                offers[each] = offer.model_copy(update=values)
    return inputs.model_copy(update={"offers": offers})
