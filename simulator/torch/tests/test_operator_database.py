"""Samples of torch's operator database: none may end the process, and none may ask for data that is not there."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys

import pytest
from conftest import HERE, environment

OPERATORS = 702
"""In the database of torch 2.13."""
STEP = 78
"""Operators of a process, where all are taken."""


def ranges() -> list[list[str]]:
    """For each process, which operators: 24 by GAUDI3_SEED in one, or with GAUDI3_PROOF=operators all in nine."""
    if os.environ.get("GAUDI3_PROOF") == "operators":
        return [[f"{first}-{first + STEP}"] for first in range(0, OPERATORS, STEP)]
    drawn = random.Random(os.environ.get("GAUDI3_SEED", "1")).sample(range(OPERATORS), 24)
    return [[f"{number}-{number + 1}" for number in sorted(drawn)]]


@pytest.mark.parametrize("way", ["run", "fake"])
@pytest.mark.parametrize("part", ranges(), ids=lambda part: part[0])
def test_no_operator_ends_the_process_or_asks_for_data_of_fake_tensors(part: list[str], way: str) -> None:
    result = subprocess.run(
        [sys.executable, str(HERE / "operator_sweep.py"), way, *part],
        env=environment(), capture_output=True, text=True, timeout=1200, check=False,
    )  # fmt: skip
    rows = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    assert result.returncode == 0, f"exit {result.returncode} after {rows[-1:]}: {result.stderr[-500:]}"
    assert rows[-1] == {"end": OPERATORS}, "the database has another size: change OPERATORS"
    assert [row for row in rows if way == "fake" and row.get("asked")] == []
    worked = [row for row in rows if row.get("errors") == []]
    assert len(worked) > 0.5 * sum("name" in row for row in rows)
