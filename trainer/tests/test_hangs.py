"""A job that hangs says who holds it up; real processes, of which the proof has two hundred hangs."""

from __future__ import annotations

import json
from pathlib import Path

import hanging
import pytest
from hanging import COLUMNS, TEXT, Case
from zygote import Client

from tests.suite.proof import Proof

CASES = hanging.cases()
PROOF = Proof("hangs", {kind: [case.name for case in cases] for kind, cases in CASES.items()}, sample=["loader 3"])


@pytest.mark.parametrize("case", PROOF.parameters({case.name: case for cases in CASES.values() for case in cases}))
def test_the_rank_that_holds_up_a_job_is_named(case: Case, client: Client, text: Path, tmp_path: Path) -> None:
    PROOF.skip_if_held(case.name)
    outcome = hanging.run(case, client, text, tmp_path / "job")
    try:
        hanging.check(case, outcome)
    except AssertionError:
        PROOF.failed(case.name)
        raise
    PROOF.note(case.name, hanging.row(case, outcome))
    PROOF.write_table("Hangs explained", TEXT, COLUMNS, hanging.kind_of)


def test_a_stopped_process_on_another_node_is_named_and_its_notes_are_left(
    client: Client, text: Path, tmp_path: Path
) -> None:
    case = Case("stopped", "stopped", 2, 1, (1,), 4)
    outcome = hanging.run(case, client, text, tmp_path / "job")
    hanging.check(case, outcome)
    said = outcome.hangs[0]
    assert said["certain"] and " did not enter " in said["sentence"] and " stopped " in said["sentence"]
    status = json.loads((tmp_path / "job" / "node-0" / "status.json").read_text())
    assert status["state"] == "failed" and status["error"].startswith(said["sentence"])
    (notes,) = (tmp_path / "job" / "node-0" / "hangs").iterdir()
    assert json.loads((notes / "verdict.json").read_text())["sentence"] == said["sentence"]
    assert json.loads((notes / "rank-0.json").read_text())["end"] == "timed out"
    assert "File " in (notes / "stacks.txt").read_text()
    assert sum(each.stat().st_size for each in notes.iterdir()) < 200_000
