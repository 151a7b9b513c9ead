"""What a measurement leaves: the configuration, the record and the picture."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from gaudi3_scale.batch_warmup.measurement import job_with
from gaudi3_scale.batch_warmup.points import CriticalPoint, schedule_of
from gaudi3_scale.config import Config
from gaudi3_scale.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMA = 1
COLORS = ("#1565c0", "#2e7d32", "#f9a825", "#c62828", "#6a1b9a", "#00838f")


def leave(config: Config, points: Sequence[CriticalPoint], folder: Path, processes: int) -> dict[str, Any]:
    """Write `job.yml`, which `gaudi3-train fit` takes, and `batch-warmup.json`; the record."""
    first = config.train.first_batch(processes)
    stages = schedule_of(first, points)
    settings = job_with(config, stages, processes)
    record = {
        "schema": SCHEMA,
        "samples_per_step": first,
        "sequence_length": config.model.sequence_length,
        "learning_rate_follows": config.train.batch_learning_rate,
        "points": [point.record() for point in points],
        "batch_warmup": stages,
        "steps": settings["train"]["max_steps"],
        "steps_with_first_batch": config.train.max_steps,
    }
    head = "# Written by `gaudi3-train batch-warmup`; batch-warmup.json says what was measured.\n"
    write_atomically(folder / "job.yml", head + yaml.safe_dump(settings, sort_keys=False))
    write_atomically(folder / "batch-warmup.json", json.dumps(record, indent=1) + "\n")
    return record


def draw(record: dict[str, Any], path: Path) -> None:
    """Two pictures in one PNG: the batches by tokens, and what each branch lost or gained."""
    from gaudi3_scale.cost.pictures import new_figure, write_png

    figure = new_figure(11, 4.4)
    _batches(figure, record)
    _losses(figure, record)
    write_png(figure, path)


def _batches(figure: Figure, record: dict[str, Any]) -> None:
    axes = figure.add_subplot(1, 2, 1)
    points, stages = record["points"], record["batch_warmup"]
    tokens = [point["tokens"] for point in points]
    axes.plot(tokens, [point["critical_samples_per_step"] for point in points], "o", color=COLORS[0], label="measured")
    end = max(2 * tokens[-1], stages[-1]["from_tokens"])
    axes.step(
        [*(stage["from_tokens"] for stage in stages), end],
        [*(stage["samples_per_step"] for stage in stages), stages[-1]["samples_per_step"]],
        where="post",
        color=COLORS[3],
        label="train.batch_warmup",
    )
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set(xlabel="tokens", ylabel="samples per optimizer step")
    axes.set_title("Critical batch and schedule", loc="left", fontsize=11)
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)


def _losses(figure: Figure, record: dict[str, Any]) -> None:
    axes = figure.add_subplot(1, 2, 2)
    for number, point in enumerate(record["points"]):
        color, own = COLORS[number % len(COLORS)], point["branches"][0]["loss"]
        factors = [branch["factor"] for branch in point["branches"]]
        gaps = [branch["loss"] - own for branch in point["branches"]]
        axes.plot(factors, gaps, "o-", color=color, label=f"from {point['tokens']:,} tokens")
        axes.axhline(point["tolerance"], color=color, linewidth=0.7, linestyle=":")
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set(xlabel="batch of the branch over the job's", ylabel="held-out loss over that of the job's batch, nats")
    axes.set_title("Branches; dotted: what is allowed", loc="left", fontsize=11)
    axes.legend(frameon=False, fontsize=9)
    axes.grid(alpha=0.3)
