"""What a job would have taken without a cause: made jobs, and in `make proof-what-if` all of them and real ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import delayed
import pytest
from delayed import PLANS
from job_traces import KINDS, PRICE, made, planted, wall, write
from zygote import Client

from gaudi3_scale.cost.bill import Bill
from gaudi3_scale.cost.what_if import CAUSES, SLOW, Causes, WhatIf, of_directory
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.throughput.goodput import FILE, Account, read
from gaudi3_scale.throughput.ledger import COMPUTE, MEASURED
from tests.suite.proof import Proof

PER_KIND = 30
SUM, EACH = 0.005, 0.05
MADE = {f"made, {kind}": kind for kind in KINDS}
REAL = {f"real, {plan.name}": plan for plan in PLANS}
PROOF = Proof("what-if", {"made": list(MADE), "real": list(REAL)}, sample=list(MADE))
COLUMNS = ["jobs", *delayed.COLUMNS]
TEXT = f"""
A made job is drawn from a seed by `trainer/tests/job_traces.py`: 2 to 16 ranks on 2 to 4 nodes that are never quite
alike, 240 to 400 steps, and the causes that its kind names. Its processes' ledgers and step clocks run on clocks that
are moved by hand; `goodput.jsonl` is what they write. How long the job takes with and without each cause is computed
apart from them. In all {PER_KIND * len(KINDS)} made jobs the causes sum to the wall time within {100 * SUM:g} %, each
is within {100 * EACH:g} % of what was planted, and no other rank is named than those that were made slow. The table has
the largest difference of each kind. Steps between the last logged one and a kill are not compared; the made jobs save
where they log, as a comparison that was not written is gone with its processes.

A real job is `gaudi3-train` with four processes on gloo which sleep where `trainer/tests/delayed_job.py` says; what was
planted is what they note themselves, and a restart counts from the end of the step that was resumed from to the
beginning of the next one. The processes share a few processor cores, so that a step without a delay takes as long as it
happens to; found and planted may differ by a tenth.
"""


def summed(found: WhatIf) -> dict[str, float]:
    """Seconds by kind of cause."""
    sums: dict[str, float] = {}
    for cause in found.causes:
        sums[cause.kind] = sums.get(cause.kind, 0.0) + cause.nanoseconds / 1e9
    return sums


def off(kind: str, seed: int, folder: Path) -> dict[str, float]:
    """Write a job, read it, and say by which share the causes of each kind differ from what was planted."""
    job = made(kind, seed)
    folder.mkdir()
    write(job, folder)
    found, took = of_directory(folder), wall(job)
    assert sum(cause.nanoseconds for cause in found.causes) / 1e9 == pytest.approx(took, rel=SUM)
    assert sum(cause.money or 0.0 for cause in found.causes) == pytest.approx(PRICE * took / 3600, rel=SUM)
    assert found.money == pytest.approx(sum(cause.money or 0.0 for cause in found.causes))
    named = {rank for cause in found.causes for rank in cause.ranks}
    assert named == {rank for delay in job.slow for rank in delay.ranks}, (seed, found)
    sums, truth = summed(found), planted(job)
    assert all(sums.get(name, 0.0) == 0 for name in ("data_wait", "restart", "recompilation") if name not in truth)
    return {name: sums.get(name, 0.0) / seconds - 1 for name, seconds in truth.items()}


@pytest.mark.parametrize("case", [pytest.param(case, marks=PROOF.marks(case)) for case in MADE])
def test_the_causes_of_made_jobs_are_those_that_were_planted(case: str, tmp_path: Path) -> None:
    PROOF.skip_if_held(case)
    number = PER_KIND if PROOF.is_running else 2
    most: dict[str, float] = {}
    for seed in range(number):
        for name, share in off(MADE[case], seed, tmp_path / str(seed)).items():
            assert abs(share) <= EACH, (seed, name, share)
            most[name] = max(most.get(name, 0.0), share, key=abs)
    said = ", ".join(f"{name} {100 * share:+.1f} %" for name, share in most.items())
    note(case, {"jobs": number, "off by": said})


@pytest.mark.parametrize("case", [pytest.param(case, marks=PROOF.marks(case)) for case in REAL])
def test_the_causes_of_real_jobs_are_those_that_were_planted(
    case: str, client: Client, text: Path, tmp_path: Path
) -> None:
    PROOF.skip_if_held(case)
    outcome = delayed.run(REAL[case], client, text, tmp_path / "job")
    note(case, {"jobs": 1, **delayed.check(REAL[case], outcome)})


def note(case: str, row: dict[str, Any]) -> None:
    """In the proof, for its table."""
    if PROOF.is_running:
        PROOF.note(case, row)
        PROOF.write_table("What a job would have taken", TEXT, COLUMNS)


@pytest.mark.parametrize("seed", range(3))
def test_nobody_is_named_in_a_job_whose_ranks_differ_by_chance(seed: int, tmp_path: Path) -> None:
    write(made(None, seed), tmp_path)
    found = of_directory(tmp_path)
    assert not [cause for cause in found.causes if cause.kind == SLOW]
    assert summed(found)["uneven"] > 0


def line(event: str, step: int, began: float, **spent: float) -> dict[str, Any]:
    """Of a ledger, whose process has spent so many seconds."""
    nanoseconds = {part: round(spent.get(part, 0.0) * 1e9) for part in MEASURED}
    time = began + sum(spent.values())
    return {"event": event, "step": step, "run": f"{began}", "began": began, "time": time, "nanoseconds": nanoseconds}


def test_a_restart_has_what_was_done_again_and_the_pause_and_the_start_up() -> None:
    lines = [
        line("start", 0, 1000, startup=5),
        {
            **line("account", 20, 1000, startup=5, compute=20),
            "ranks": {
                "steps": [0, 20],
                "spent": 20 * 10**9,
                "moved": {COMPUTE: -10 * 10**9, "communication": 4 * 10**9},
                "slow": [[[[1, 1]], 6 * 10**9]],
                "hosts": {"gaudi-1": [[0, 1]], "gaudi-2": [[2, 3]]},
            },
        },
        {**line("start", 10, 1100, startup=7), "hang": {"nodes": ["gaudi-2"]}},
        {
            **line("finished", 20, 1100, startup=7, compute=10),
            "ranks": {"steps": [10, 20], "spent": 10**10, "moved": {}, "hosts": {"gaudi-1": [[0, 1]], "x": [[2, 3]]}},
        },
    ]
    found = Causes(lines).what_if()
    assert summed(found) == {COMPUTE: 15, SLOW: 3, "communication": 2, "startup": 5, "restart": 75 + 10 + 7}
    (restart,) = [cause for cause in found.causes if cause.kind == "restart"]
    assert restart.name == "restart after step 20, from step 10, without gaudi-2"
    (slow,) = [cause for cause in found.causes if cause.kind == SLOW]
    assert slow.name == "slow rank 1 (on gaudi-1)" and slow.ranks == (1,)
    assert found.money is None and found.compared == 1


def test_a_hang_is_named_where_all_nodes_came_back() -> None:
    lines = [line("start", 0, 1000, compute=5), {**line("start", 0, 1010), "hang": {"nodes": ["gaudi-2"]}}]
    (cause,) = [cause for cause in Causes(lines).what_if().causes if cause.kind == "restart"]
    assert cause.name == "restart after step 0, hung on gaudi-2"


@pytest.mark.parametrize(("bill_pauses", "paid"), [(True, 20 + 95 + 7), (False, 20 + 10 + 7)])
def test_the_money_is_that_of_the_bill(bill_pauses: bool, paid: float) -> None:
    terms = {"cost": {"price_per_hour": 3600.0, "currency": "EUR", "bill_pauses": bill_pauses}}
    lines = [
        line("start", 0, 1000) | terms,
        line("account", 20, 1000, compute=20, checkpoint_stall=10) | terms,
        line("start", 20, 1115, startup=7) | terms,
    ]
    found = Causes(lines).what_if()
    spent = Bill(lines).spent()
    assert spent is not None and found.money == pytest.approx(spent.total)
    assert found.currency == "EUR" and found.nanoseconds == Account(lines).goodput().total


def test_the_end_of_a_job_that_went_on_later_is_no_restart() -> None:
    lines = [line("start", 0, 1000), line("finished", 9, 1000, compute=20), line("start", 9, 1100, startup=7)]
    assert summed(Causes(lines).what_if()) == {COMPUTE: 20, "startup": 7, "other": 80}


@pytest.mark.parametrize(
    "said",
    [
        None, 3, {}, {"steps": [1]}, {"steps": [0, 9], "moved": {"compute": "x"}, "spent": 1},
        {"steps": [0, 9], "moved": {}, "spent": 1, "slow": [[3, 4]]},
        {"steps": [0, 9], "moved": {}, "spent": 1, "hosts": {"\x1b[31m": [[0, 1]]}},
    ],
)  # fmt: skip
def test_a_line_that_says_nonsense_of_the_ranks_is_one_that_says_nothing(said: Any) -> None:
    found = Causes([line("start", 0, 1000), {**line("account", 9, 1000, compute=20), "ranks": said}]).what_if()
    assert summed(found) == {COMPUTE: 20} and found.compared == 0


def test_the_sums_are_those_of_the_ledger_whatever_a_line_says_of_the_ranks() -> None:
    said = {"steps": [0, 9], "moved": {"data_wait": 7 * 10**9, COMPUTE: 0}, "spent": 1, "slow": [[[[0, 0]], 10**9]]}
    found = Causes([{**line("account", 9, 1000, compute=20), "ranks": said}]).what_if()
    assert found.nanoseconds == 20 * 10**9 and summed(found)[COMPUTE] == 12


def test_each_kind_of_cause_has_its_meaning_and_the_record_is_whole(tmp_path: Path) -> None:
    write(made("everything", 1), tmp_path)
    (tmp_path / "ranks.json").write_text(
        json.dumps({"step": 9, "ranks": [{"rank": 0, "host": "a", "own_seconds": 3, "waited_seconds": 1}]})
    )
    found = of_directory(tmp_path)
    record = json.loads(json.dumps(found.record()))
    assert {cause["kind"] for cause in record["causes"]} <= set(CAUSES)
    assert sum(cause["seconds"] for cause in record["causes"]) == pytest.approx(record["total"]["seconds"], abs=0.1)
    (slow,) = [cause for cause in record["causes"] if cause["kind"] == SLOW]
    assert slow["without"]["hours"] == pytest.approx(record["total"]["hours"] - slow["hours"], abs=1e-5)
    assert slow["without"]["money"] == pytest.approx(record["total"]["money"] - slow["money"])
    assert record["ranks"] == [{"rank": 0, "host": "a", "own_seconds": 3.0, "waited_seconds": 1.0}]
    (tmp_path / "ranks.json").write_text('{"ranks": [{"rank": 0, "host": "\\u001b[31m"}]}')
    assert of_directory(tmp_path).ranks == ()
    assert len(list(read(tmp_path / FILE))) > 3


def test_a_folder_without_a_ledger_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no goodput"):
        of_directory(tmp_path)
