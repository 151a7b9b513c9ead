"""The tables of `gaudi3-train goodput --what-if`, and its JSON."""

from __future__ import annotations

import doctest
import io
import json
from pathlib import Path

import pytest
from job_traces import made, write
from rich.console import Console
from typer.testing import CliRunner

from gaudi3_scale.cli import app
from gaudi3_scale.cost import what_if_show
from gaudi3_scale.cost.what_if import Cause, WhatIf, of_directory
from gaudi3_scale.cost.what_if_show import show


def shown(found: WhatIf) -> str:
    console = Console(file=io.StringIO(), width=150)
    show(found, "run", console)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text


def test_the_examples_run() -> None:
    ran = doctest.testmod(what_if_show)
    assert ran.failed == 0 and ran.attempted > 0


def test_each_cause_has_its_hours_its_money_and_what_the_job_would_have_taken(tmp_path: Path) -> None:
    write(made("slow rank", 1), tmp_path)
    found = of_directory(tmp_path)
    said = shown(found)
    (slow,) = [cause for cause in found.causes if cause.ranks]
    (row,) = [line for line in said.splitlines() if slow.name in line]
    assert found.money is not None and slow.money is not None
    assert f" {slow.nanoseconds / 3600e9:.4f} " in row and f" {slow.money:.2f} " in row
    left = what_if_show.duration((found.nanoseconds - slow.nanoseconds) / 1e9)
    assert f"{left}, {found.money - slow.money:.2f}" in row
    assert "the causes sum to it" in said and "Slow ranks that" not in said


def test_a_reader_is_told_what_the_figures_leave_out() -> None:
    causes = (
        Cause("compute", "compute", 8 * 10**9, None),
        Cause("slow_ranks", "slow rank 1", 10**9, None, (1,)),
        Cause("slow_ranks", "slow rank 2", 10**9, None, (2,), alone=False),
    )
    said = shown(WhatIf(causes, 10**10, None, None, 0.5, carried=3.0))
    assert "compared in 50.0 %" in said and "one below the other" in said and "USD" not in said
    assert "not in this ledger" in shown(WhatIf(causes[:1], 10**9, None, None, 0.0))


def test_of_many_ranks_those_are_shown_that_waited_least_and_a_name_is_text() -> None:
    ranks = tuple(
        {"rank": rank, "host": f"[red]{rank}", "own_seconds": 1.0, "waited_seconds": float(rank)} for rank in range(20)
    )
    said = shown(WhatIf((Cause("compute", "compute", 1, None),), 1, None, None, 1.0, ranks))
    assert "[red]15" in said and "[red]16" not in said and "16 of 20" in said


@pytest.mark.parametrize("what_if", [True, False])
def test_the_command_prints_a_table_or_json(what_if: bool, tmp_path: Path) -> None:
    write(made("checkpoints", 1), tmp_path)
    options = ["--what-if"] if what_if else []
    said = CliRunner().invoke(app, ["goodput", str(tmp_path), *options])
    assert said.exit_code == 0 and ("without it" in said.output) == what_if
    printed = json.loads(CliRunner().invoke(app, ["goodput", str(tmp_path), *options, "--json"]).output)
    assert ("causes" in printed) == what_if and ("ratio" in printed) != what_if
