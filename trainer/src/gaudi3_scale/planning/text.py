"""A plan for readers: text, JSON, and the configuration that is recommended."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import yaml

from gaudi3_scale.config import Config, Section
from gaudi3_scale.config.auto_precision import AUTO
from gaudi3_scale.cost.model import given_of
from gaudi3_scale.cost.values import Range
from gaudi3_scale.planning.accelerators import accelerator
from gaudi3_scale.planning.account import PARTS
from gaudi3_scale.planning.estimate import Row, TrainingPlan

COLUMNS = ("device", "number", "spread", "recomputed", "samples/device", "GB predicted", "of GB", "hours", "cost", "")


def title(plan: TrainingPlan) -> str:
    """Of every form."""
    return f"Plan for {plan.job.model.name}: {plan.model.parameters / 1e9:,.2f} billion parameters"


def sentences(plan: TrainingPlan) -> list[str]:
    """The result in words."""
    job, best = plan.job, plan.recommended
    trained = (
        ""
        if plan.model.trained_parameters == plan.model.parameters
        else (f", of which {plan.model.trained_parameters / 1e6:,.1f} million are trained")
    )
    said = [
        f"{plan.model.parameters:,} parameters{trained}; {job.model.length_words}, "
        f"{_precision(plan)}, {plan.tokens:.3g} tokens in all: {plan.flops:.3g} floating-point operations.",
    ]
    if best is None or best.option is None or plan.peak is None:
        return [*said, "It fits nowhere: take more devices, shorter samples, LoRA, or a smaller model."]
    cost = "" if best.money is None else f" for {best.money.text()} {plan.inputs.currency}"
    hours = "" if best.hours is None else f" in {best.hours.text()} hours"
    chosen = "the cheapest" if best.money else "the fastest" if best.hours else "that on the fewest devices"
    offer = f", offer {best.offer}," if len(plan.offers) > 1 else ""
    said.append(
        f"Recommended, as {chosen} that fits: {best.devices} x {accelerator(best.platform).label}, "
        f"{best.option.strategy}, {best.option.text}, {best.micro_batch} sample(s) per device{offer}{hours}{cost}; "
        f"predicted peak {plan.peak.bytes / 1e9:,.1f} of {best.memory_bytes / 1e9:,.0f} GB, in {plan.peak.phase}."
    )
    parts = [f"{name.replace('_', ' ')} {getattr(plan.peak, name) / 1e9:,.1f}" for name in PARTS]
    said.append(f"At the peak, in GB: {', '.join(parts)}.")
    said.append(
        f"{plan.margin:.0%} of each memory is left free. Predicted is what tensors take, operation by operation: an "
        "allocator's fragments and the workspaces of kernels and graph compilers come on top, and no prediction here "
        "was compared with a Gaudi. Jobs of fit split no matrices (tensor parallelism)."
    )
    return said


def _precision(plan: TrainingPlan) -> str:
    """That of the rows, which `auto` leaves to each accelerator."""
    found = " or ".join(dict.fromkeys(row.precision for row in plan.rows))
    return f"{found} (auto)" if plan.job.train.precision == AUTO else found


def cells(plan: TrainingPlan, row: Row) -> tuple[str, ...]:
    """A row of the table."""
    currency = plan.inputs.currency
    option = row.option
    return (
        accelerator(row.platform).label,
        str(row.devices),
        option.strategy if option else "-",
        option.text if option else "-",
        f"{row.micro_batch:,}" if option else "-",
        f"{row.needed_bytes / 1e9:,.1f}" if row.needed_bytes else "-",
        f"{row.memory_bytes / 1e9:,.0f}",
        _range(row.hours),
        f"{_range(row.money)} {currency}" if row.money else "-",
        row.why or (f"offer {row.offer}" if row.offer not in ("", row.platform) else ""),
    )


def precision_cells(plan: TrainingPlan) -> list[tuple[str, ...]]:
    """What a precision changes at the recommended place."""
    return [(row.precision, *cells(plan, row)[2:]) for row in plan.precisions]


OFFER_COLUMNS = ("offer", "hours", "cost", "")


def offer_cells(plan: TrainingPlan) -> list[tuple[str, ...]]:
    """What the recommended row costs at each offer of its platform, such as regions and contracts."""
    return [(row.offer, *cells(plan, dataclasses.replace(row, offer=""))[-3:]) for row in plan.offers]


def more_tables(plan: TrainingPlan) -> list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    """Title, header and rows of what else there is to choose at the recommended place."""
    found: list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]] = []
    if len(plan.offers) > 1:
        found.append(("The same place by offer", OFFER_COLUMNS, offer_cells(plan)))
    if len(plan.precisions) > 1:
        found.append(("The same place by precision", ("precision", *COLUMNS[2:]), precision_cells(plan)))
    return found


def as_text(plan: TrainingPlan, width: int = 160) -> str:
    """For a terminal."""
    import io

    from rich.console import Console
    from rich.table import Table

    out = io.StringIO()
    console = Console(file=out, width=width, highlight=False)
    console.print(title(plan), style="bold")
    for sentence in sentences(plan):
        console.print(sentence)
    table = Table(*COLUMNS, box=None, pad_edge=False)
    for row in plan.rows:
        table.add_row(*cells(plan, row), style=None if row.fits else "dim")
    console.print()
    console.print(table)
    for heading, columns, rows in more_tables(plan):
        console.print()
        table = Table(*columns, box=None, pad_edge=False)
        for each in rows:
            table.add_row(*each)
        console.print(heading)
        console.print(table)
    console.print()
    for line in sources(plan):
        console.print(line)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def sources(plan: TrainingPlan) -> list[str]:
    """Every input with where it is from."""
    lines = []
    for name in dict.fromkeys(row.platform for row in plan.rows):
        place = accelerator(name)
        lines.append(f"{place.label}: {place.memory_bytes / 1e9:,.0f} GB, {place.source}")
    for offer in dict.fromkeys(row.offer for row in (*plan.rows, *plan.precisions, *plan.offers) if row.offer):
        for name, given in given_of(plan.inputs, offer):
            if name.startswith("offers."):
                value = f"{given.low:g}" if given.low == given.high else f"{given.low:g} to {given.high:g}"
                lines.append(f"{name}: {value}, {given.source}, {given.date}")
    return lines


def as_json(plan: TrainingPlan) -> str:
    """Everything, in bytes, hours and the inputs' currency."""
    best = plan.recommended
    whole: dict[str, Any] = {
        "model": plan.job.model.name,
        "parameters": plan.model.parameters,
        "trained_parameters": plan.model.trained_parameters,
        "tokens": plan.tokens,
        "flops": plan.flops,
        "margin": plan.margin,
        "currency": plan.inputs.currency,
        "rows": [_row(row) for row in plan.rows],
        "recommended": None if best is None else _row(best),
        "peak": None if plan.peak is None else dataclasses.asdict(plan.peak),
        "precisions": [_row(row) for row in plan.precisions],
        "offers": [_row(row) for row in plan.offers],
        "config": None if plan.config is None else settings(plan.config),
        "sources": sources(plan),
    }
    return json.dumps(whole, indent=2) + "\n"


def as_config(plan: TrainingPlan) -> str:
    """The recommended configuration as YAML, for `gaudi3-train fit --config`."""
    assert plan.config is not None and plan.recommended is not None
    row = plan.recommended
    place = accelerator(row.platform)
    head = (
        f"# Planned for {row.devices} x {place.label} ({-(-row.devices // place.per_node)} node(s)), one process per "
        "device.\n"
    )
    return head + yaml.safe_dump(settings(plan.config), sort_keys=False)


def settings(config: Config) -> dict[str, Any]:
    """What differs from the defaults, and what was given where that counts."""
    found: dict[str, Any] = config.model_dump(mode="json", exclude_defaults=True)
    for name in type(config).model_fields:
        section = getattr(config, name)
        for key in section.FOLLOWS & section.model_fields_set if isinstance(section, Section) else ():
            found.setdefault(name, {}).setdefault(key, getattr(section, key))
    return found


def _row(row: Row) -> dict[str, Any]:
    values = dataclasses.asdict(row)
    values["fits"] = row.fits
    return values


def _range(found: Range | None) -> str:
    return "-" if found is None else found.text()
