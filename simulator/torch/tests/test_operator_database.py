"""Samples of torch's operator database: none may end the process, and none may ask for data that is not there."""

from __future__ import annotations

import json
import os
import random
import sys
from typing import Any

import pytest
from conftest import HERE, environment
from forks import Forks

sys.path.insert(0, str(HERE.parents[2] / "tests"))  # not its parent: `tests` is this folder under importlib's mode
from suite.proof import Proof  # the same for every proof of the repository

OPERATORS = 702
"""In the database of torch 2.13."""
STEP = 78
"""Operators of a process of the proof."""
WAYS = ("run", "fake")
PROOF = Proof(
    "operators",
    {way: [f"{way} {first}-{first + STEP}" for first in range(0, OPERATORS, STEP)] for way in WAYS},
)
TEXT = """
Each operator of torch's own database (`op_db`) on the simulated device, with two of its samples: run with backward and
forward-mode derivatives, or with fake tensors, which have no data. *worked*: without an error. *refused*: with one, of
the device or of torch. *unsampled*: the database makes no sample. No operator ended the process, none asked for data
of a fake tensor.
"""


def sweep(forks: Forks, way: str, *ranges: str) -> dict[str, Any]:
    """How many operators of these ranges worked, were refused, and had no sample; the process reaches its end."""
    command = [str(HERE / "operator_sweep.py"), way, *ranges]
    code = f"import runpy, sys; sys.argv = {command!r}; runpy.run_path(sys.argv[0], run_name='__main__')"
    result = forks.start(code, environment()).wait(patience=1200)
    rows = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    assert result.returncode == 0, f"exit {result.returncode} after {rows[-1:]}: {result.stderr[-500:]}"
    assert rows[-1] == {"end": OPERATORS}, "the database has another size: change OPERATORS"
    assert [row for row in rows if way == "fake" and row.get("asked")] == []
    errors = [row["errors"] for row in rows if "errors" in row]
    unsampled = sum("unsampled" in row for row in rows)
    worked = errors.count([])
    assert worked > 0.5 * (len(errors) + unsampled)
    return {"worked": worked, "refused": len(errors) - worked, "unsampled": unsampled}


@pytest.mark.parametrize("way", WAYS)
def test_no_operator_ends_the_process_or_asks_for_data_of_fake_tensors(way: str, forks: Forks) -> None:
    """For 24 operators drawn by GAUDI3_SEED; `make proof-operators` takes all."""
    drawn = random.Random(os.environ.get("GAUDI3_SEED", "1")).sample(range(OPERATORS), 24)
    sweep(forks, way, *(f"{number}-{number + 1}" for number in sorted(drawn)))


@pytest.mark.proof
@pytest.mark.parametrize("case", PROOF.cases)
def test_every_operator(case: str, forks: Forks) -> None:
    PROOF.skip_if_held(case)
    way, _, part = case.partition(" ")
    PROOF.note(case, sweep(forks, way, part))
    PROOF.write_table("Every operator of torch", TEXT, ["worked", "refused", "unsampled"])
