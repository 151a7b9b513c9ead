"""The bill of a job follows its ledger, through kills, other prices and nodes, and pauses; chargeback adds up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gaudi3_scale.cli import app
from gaudi3_scale.config import CostConfig
from gaudi3_scale.cost.bill import Bill, Spent, status, terms
from gaudi3_scale.cost.budget import Budget, require
from gaudi3_scale.cost.chargeback import charges, groups
from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.throughput.goodput import FILE, PARTS, read
from gaudi3_scale.throughput.ledger import CHECKPOINT, COMPUTE, DATA, Ledger

SECOND = 10**9
HOUR = 3600


class Clocks:
    """A steady clock and a wall clock, moved by hand."""

    def __init__(self) -> None:
        self.steady, self.wall = 5 * SECOND, 1000.0

    def pass_(self, seconds: float) -> None:
        self.steady += round(seconds * SECOND)
        self.wall += seconds


def config(price: float | None = 10.0, **more: Any) -> CostConfig:
    return CostConfig(node_price_per_hour=price, price_source="a test", price_date="2026-11-23", **more)


class Jobs:
    """Processes that work on a job one after the other; a step is 18 minutes, of which 3 wait for data."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.clocks, self.path = Clocks(), folder / FILE

    def run(
        self, settings: CostConfig, first: int, last: int, nodes: int = 1, before: Any = None, job: str = "j"
    ) -> Ledger:
        ledger = Ledger(self.path, 0, lambda: self.clocks.steady, lambda: self.clocks.wall)
        ledger.about = terms(settings, nodes, before, job=job)
        self.clocks.pass_(0.2 * HOUR)
        ledger.resumed(first)
        ledger.switch(COMPUTE)
        for step in range(first + 1, last + 1):
            with ledger.during(DATA):
                self.clocks.pass_(0.05 * HOUR)
            self.clocks.pass_(0.25 * HOUR)
            ledger.append(step, force=True)
        return ledger


def spent(path: Path) -> Spent:
    found = Bill(read(path)).spent()
    assert found is not None
    return found


def parts(found: Spent) -> dict[str, float]:
    return {part: round(money, 6) for part, money in found.parts.items() if round(money, 6)}


def test_the_phases_times_the_price_are_the_bill(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path)
    jobs.run(config(), 0, 4, nodes=3)
    found = spent(jobs.path)
    assert found.price_per_hour == 30 and found.currency == "USD"
    assert parts(found) == {"startup": 6.0, "compute": 30.0, "data_wait": 6.0}
    assert found.total == pytest.approx((jobs.clocks.wall - 1000) / HOUR * 30, rel=1e-9)
    assert found.per_million_tokens(2e6) == pytest.approx(21)
    assert found.per_million_tokens(0) is None


def test_a_kill_costs_the_steps_that_are_done_again_and_the_pause_and_no_money_is_forgotten(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path)
    jobs.run(config(), 0, 4)
    jobs.clocks.pass_(0.1 * HOUR)  # killed in a step: nothing of it is written
    jobs.clocks.pass_(0.5 * HOUR)
    jobs.run(config(price=20.0), 2, 4)  # from the checkpoint of step 2, at another price
    found = spent(jobs.path)
    assert parts(found) == {
        "startup": 2.0 + 4.0,
        "compute": 2 * 2.5 + 2 * 5.0,
        "data_wait": 2 * 0.5 + 2 * 1.0,
        "restart_loss": 2 * 3.0 + 0.6 * 10,
    }
    first, second = 0.2 + 4 * 0.3 + 0.6, 0.2 + 2 * 0.3
    assert found.total == pytest.approx(first * 10 + second * 20, rel=1e-9)


def test_each_process_counts_with_its_own_nodes(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path)
    jobs.run(config(), 0, 2, nodes=4)
    jobs.run(config(), 2, 4, nodes=3)
    assert spent(jobs.path).total == pytest.approx(0.8 * 40 + 0.8 * 30)
    jobs.run(config(nodes=5), 4, 4, nodes=3)
    assert spent(jobs.path).price_per_hour == 50  # spares are paid for


def test_a_pause_is_not_paid_for_where_nodes_are_given_back_nor_after_the_end(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path / "spot")
    jobs.run(config(bill_pauses=False), 0, 2)
    jobs.clocks.pass_(100 * HOUR)
    jobs.run(config(bill_pauses=False), 2, 4)
    assert spent(jobs.path).total == pytest.approx(1.6 * 10)
    finished = Jobs(tmp_path / "finished")
    finished.run(config(), 0, 2).finished(2)
    finished.clocks.pass_(100 * HOUR)
    finished.run(config(), 2, 4)
    assert spent(finished.path).total == pytest.approx(1.6 * 10)


def test_a_node_without_a_ledger_carries_on_what_the_checkpoint_has(tmp_path: Path) -> None:
    lost = Jobs(tmp_path / "lost")
    lost.run(config(), 0, 4)
    before = status(spent(lost.path), config(), tokens=10**6)
    json.dumps(before, allow_nan=False)
    jobs = Jobs(tmp_path / "fresh")
    jobs.run(config(), 4, 6, before=before)
    assert spent(jobs.path).total == pytest.approx(14 + 8)
    jobs.run(
        config(), 6, 8, before=status(spent(jobs.path), config(), 1)
    )  # its own ledger knows as much: once is enough
    assert spent(jobs.path).total == pytest.approx(14 + 8 + 8)
    assert spent(jobs.path).parts["data_wait"] == pytest.approx(8 * 0.5)


def test_a_node_that_was_away_counts_the_time_once(tmp_path: Path) -> None:
    for pauses, away in ((True, 5 * 10.0), (False, 3 * 10.0)):
        jobs = Jobs(tmp_path / str(pauses))
        jobs.run(config(bill_pauses=pauses), 0, 4)
        jobs.clocks.pass_(5 * HOUR)  # other nodes worked on in three of these hours
        checkpoint = {"currency": "USD", "parts": {"compute": 14 + 3 * 10.0}}
        jobs.run(config(bill_pauses=pauses), 9, 9, before=checkpoint)
        assert spent(jobs.path).total == pytest.approx(14 + away + 2)


def test_without_a_price_there_is_no_bill(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path)
    jobs.run(config(None), 0, 2)
    assert Bill(read(jobs.path)).spent() is None
    jobs.run(config(), 2, 4)  # from now on
    assert spent(jobs.path).total == pytest.approx(8)


def test_the_bill_until_now_goes_beyond_the_last_line(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path)
    ledger = jobs.run(config(), 0, 2)
    bill = Bill(read(jobs.path))
    with ledger.during(CHECKPOINT):
        jobs.clocks.pass_(HOUR)
    now = bill.spent(ledger.nanoseconds())
    assert now is not None and now.parts["checkpoint_stall"] == pytest.approx(10)
    assert now.total == pytest.approx(8 + 10)


# The budget.


def bought(total: float) -> Spent:
    return Spent("EUR", 10.0, dict.fromkeys(PARTS, 0.0) | {"compute": total})


def test_a_budget_warns_once_and_stops_once() -> None:
    said: list[str] = []
    stopped: list[str] = []
    budget = Budget(config(budget=100, on_budget="stop"), said.append, stopped.append)
    for total in (10, 79.9, 80, 85, 99):
        budget.look(bought(total))
    assert (said, stopped) == (["warning: 80 % of the budget of 100.00 EUR is spent"], [])
    for total in (100, 105):
        budget.look(bought(total))
    assert len(said) == 1 and stopped == ["the budget of 100.00 EUR is spent"]
    alert = Budget(config(budget=100, alert_at=0.5), said.append, stopped.append)
    for total in (100, 200):
        alert.look(bought(total))
    assert said[1:] == ["warning: the budget of 100.00 EUR is spent, and the job goes on, as cost.on_budget is alert"]
    assert len(stopped) == 1


def test_a_job_whose_budget_is_spent_is_not_begun_again() -> None:
    require(config(budget=100, on_budget="stop"), bought(99))
    require(config(budget=100), bought(101))
    require(config(), None)
    with pytest.raises(ConfigError) as raised:
        require(config(budget=100, on_budget="stop"), bought(100.5))
    assert str(raised.value) == (
        "The job has cost 100.50 EUR and cost.budget is 100.00: raise cost.budget, or set cost.on_budget to alert, to "
        "go on from its newest checkpoint."
    )


# Chargeback.


def a_job(folder: Path, team: str, project: str, job: str, status: dict[str, Any], **more: Any) -> Path:
    Jobs(folder).run(config(team=team, project=project, **more), 0, 4, job=job)
    (folder / "status.json").write_text(json.dumps(status))
    return folder


@pytest.fixture
def three(tmp_path: Path) -> list[Path]:
    finished, running = (
        {"state": "finished", "step": 4, "max_steps": 4},
        {"state": "running", "step": 4, "max_steps": 8},
    )
    return [
        a_job(tmp_path / "a", "vision", "clip", "1", finished, projected=20),
        a_job(tmp_path / "b", "nlp", "llama", "2", finished, projected=10),
        a_job(tmp_path / "c", "nlp", "llama", "3", running, projected=30),
    ]


def test_chargeback_by_team_and_project(three: list[Path]) -> None:
    nlp, vision = groups(charges(three))
    assert (nlp.team, nlp.project, len(nlp.jobs)) == ("nlp", "llama", 2)
    assert nlp.spent == pytest.approx(28) and nlp.projected == 40
    assert nlp.forecast == pytest.approx(14 + 28)  # the second job is half way
    assert nlp.parts["compute"] == pytest.approx(20) and sum(nlp.parts.values()) == pytest.approx(nlp.spent)
    assert vision.spent == pytest.approx(14) and vision.forecast == pytest.approx(14)


def test_the_command_prints_the_table(three: list[Path]) -> None:
    found = CliRunner().invoke(app, ["chargeback", *map(str, three)])
    assert found.exit_code == 0
    assert [line.split()[:6] for line in found.output.splitlines()] == [
        ["team", "project", "jobs", "spent,", "USD", "projected"],
        ["nlp", "llama", "2", "28.00", "40.00", "42.00"],
        ["vision", "clip", "1", "14.00", "20.00", "14.00"],
        ["all", "3", "42.00", "60.00", "56.00", "30.00"],
    ]
    rows = CliRunner().invoke(app, ["chargeback", "--format", "csv", *map(str, three)]).output.splitlines()
    assert rows[0].startswith(
        "team,project,folder,job,state,step,max_steps,currency,spent,projected,budget,forecast,compute"
    )
    assert len(rows) == 4
    whole = json.loads(CliRunner().invoke(app, ["chargeback", "--format", "json", *map(str, three)]).output)
    assert [group["team"] for group in whole] == ["nlp", "vision"] and len(whole[0]["jobs"]) == 2


def test_what_chargeback_does_not_add_up(three: list[Path], tmp_path: Path) -> None:
    unpriced = Jobs(tmp_path / "unpriced")
    unpriced.run(config(None), 0, 1)
    with pytest.raises(
        ConfigError, match=r"unpriced ran without cost\.node_price_per_hour, so that its cost is not known"
    ):
        charges([*three, unpriced.path.parent])
    assert len(charges([*three, unpriced.path.parent], skip_unpriced=True)) == 3
    with pytest.raises(ConfigError, match="are the same job: give the folder of one of its nodes"):
        charges([*three, a_job(tmp_path / "node1", "nlp", "llama", "2", {})])
    with pytest.raises(ConfigError, match="is in EUR and that in"):
        charges([*three, a_job(tmp_path / "euro", "nlp", "llama", "4", {}, currency="EUR")])
    with pytest.raises(TrainerError, match=r"has no goodput\.jsonl with a readable line"):
        charges([tmp_path / "nothing"])
    with pytest.raises(ConfigError, match="None of the folders has a job with a price"):
        charges([unpriced.path.parent], skip_unpriced=True)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"node_price_per_hour": 10}, "node_price_per_hour is 10 without price_source and price_date"),
        ({"budget": 10}, "budget is 10 and node_price_per_hour is null, so nothing is counted"),
        ({"node_price_per_hour": 0}, "greater than 0"),
    ],
)
def test_a_price_needs_its_source_and_a_budget_needs_a_price(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CostConfig(**values)
