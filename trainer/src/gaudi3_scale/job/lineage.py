"""Where a model comes from: what a checkpoint's manifest keeps of it, and what an export and a registration say."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gaudi3_scale.checkpoint.manifest import Manifest
from gaudi3_scale.config import Config
from gaudi3_scale.cost.bill import Bill
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.files import write_atomically
from gaudi3_scale.git_commit import commit_of
from gaudi3_scale.registry.server import without_credentials
from gaudi3_scale.status import read_status
from gaudi3_scale.throughput.goodput import FILE as LEDGER
from gaudi3_scale.throughput.goodput import read as read_ledger
from gaudi3_scale.version import VERSION

if TYPE_CHECKING:
    from gaudi3_scale.run import Run

KEY = "made_with"
"""In a checkpoint's manifest."""
FILE = "gaudi3_lineage.json"
"""In the folder of an export."""
EVALUATIONS = "evaluation.jsonl"
ADDRESSES = (("tracking", "mlflow_uri"), ("checkpoint", "target"), ("checkpoint", "endpoint_url"))
"""Settings that may hold a password."""
HOUR = 3600e9
"""Nanoseconds."""


def made_with(run: Run, folder: Path | None = None) -> dict[str, Any]:
    """What makes the job's checkpoints: the first rank's view, for all of them. Collective.

    `folder` is where the job was started, of whose checkout the commit is; without it the present one.
    """
    mine = None
    if run.rank == 0:
        mine = {
            "trainer": VERSION,
            "software": run.progress.software,
            "commit": commit_of(folder or Path()),
            "configuration": configuration_of(run.config),
            "registered": run.registered,
        }
    found = run.process_group.gather(mine)[0]
    assert found is not None
    return found


def configuration_of(config: Config) -> dict[str, Any]:
    """The whole configuration as plain data, without passwords in addresses."""
    values = config.model_dump(mode="json")
    for section, name in ADDRESSES:
        if isinstance(values[section][name], str):
            values[section][name] = without_credentials(values[section][name])
    return values


def of_checkpoint(checkpoint: Manifest) -> dict[str, Any]:
    """What a checkpoint's manifest says of where it comes from."""
    made = checkpoint.about.get(KEY)
    known: dict[str, Any] = dict(made) if isinstance(made, dict) else {}
    data = checkpoint.about.get("data")
    return {
        "checkpoint": {
            "step": checkpoint.step,
            "sha256": checkpoint.fingerprint[2],
            "job": checkpoint.job.id if checkpoint.job is not None else None,
        },
        "data": data if isinstance(data, dict) else {},
        "model": checkpoint.about.get("model"),
        **{name: known.get(name) for name in ("trainer", "software", "commit", "configuration", "registered")},
    }


def write(checkpoint: Manifest, folder: Path) -> None:
    """Into the folder of an export."""
    write_atomically(folder / FILE, json.dumps(of_checkpoint(checkpoint), indent=1) + "\n")


def of_export(folder: Path) -> dict[str, Any]:
    """What an export says of where it comes from; ConfigError where it does not."""
    try:
        found = json.loads((folder / FILE).read_text(encoding="utf-8"))
        if not isinstance(found["checkpoint"]["step"], int) or not isinstance(found["checkpoint"]["sha256"], str):
            raise TypeError
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise ConfigError(
            f"{folder} does not say of which checkpoint it is ({FILE}): export the job again, or leave --export out "
            "and have it exported now."
        ) from None
    return dict(found)


def results_of(folder: Path, step: int) -> dict[str, Any]:
    """What a job's folder tells of the way to a step: its held-out loss there, what it cost so far, how long it took.

    None for each that the folder does not tell; TrainerError where its status.json is not to be used.
    """
    status = read_status(folder)
    loss = next((line["validation_loss"] for line in _evaluations(folder) if line.get("step") == step), None)
    if loss is None and status.get("step") == step:
        loss = status.get("validation_loss")
    try:
        bill = Bill(read_ledger(folder / LEDGER))
        spent, goodput = bill.spent(), bill.goodput()
    except (OSError, ValueError, KeyError, TypeError):
        return {"validation_loss": loss, "cost": None, "hours": None}
    cost = None if spent is None else {"spent": spent.total, "currency": spent.currency}
    hours = sum(goodput.nanoseconds.values()) / HOUR if goodput.runs else None
    return {"validation_loss": loss if _is_number(loss) else None, "cost": cost, "hours": hours}


def _evaluations(folder: Path) -> list[dict[str, Any]]:
    found = []
    try:
        lines = (folder / EVALUATIONS).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    for line in lines:
        try:
            values = json.loads(line)
        except ValueError:  # the last one may be cut off
            continue
        if isinstance(values, dict) and "validation_loss" in values:
            found.append(values)
    return found[::-1]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
