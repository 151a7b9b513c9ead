"""Cost in a running job: the bill through kill -9, the budget that saves first, the callback in a Trainer."""

from __future__ import annotations

import urllib.request
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
import yaml
from conftest import QUIET, Job, free_port
from prometheus_client.parser import text_string_to_metric_families as families
from test_throughput_callback import Module, loader

from gaudi3_scale.callbacks.cost_callback import FILE, CostCallback
from gaudi3_scale.callbacks.throughput_callback import ThroughputCallback
from gaudi3_scale.cost.bill import Bill
from gaudi3_scale.cost.chargeback import charge
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.interruption import InterruptionCallback
from gaudi3_scale.throughput.goodput import read
from gaudi3_scale.throughput.ledger import current

PRICE = ("cost.node_price_per_hour=3600", "cost.price_source=a test", "cost.price_date=2026-11-23")
CONTRACT = Path(__file__).resolve().parents[2] / "docs" / "reference" / "metrics.yml"


def test_the_bill_survives_a_kill_and_is_price_times_time(text: Path, tmp_path: Path) -> None:
    job, port = Job(tmp_path / "job", text), free_port()
    settings = (*PRICE, "cost.team=nlp", "cost.project=llama", "cost.budget=3600", "train.max_steps=20")
    with job.running(*settings, "metrics.enabled=true", f"metrics.port={port}", lines=5, saved=10):
        page = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
    samples = {s.name: s for family in families(page) for s in family.samples if s.name.startswith("gaudi_cost")}
    contract = {each["name"]: each for each in yaml.safe_load(CONTRACT.read_text())["metrics"]}
    for name, sample in samples.items():
        assert sorted(sample.labels) == sorted(contract[name]["labels"]), name
    assert samples["gaudi_cost_info"].labels["team"] == "nlp"
    left = samples["gaudi_cost_budget_left"].value
    assert left == pytest.approx(3600 - samples["gaudi_cost_spent"].value) and samples["gaudi_cost_spent"].value > 0
    killed = charge(job.node())
    assert killed is not None and killed.state == "running"

    output = job.run(*settings)
    status = job.status()
    cost, seconds = status["cost"], status["goodput"]["total_seconds"]
    assert status["goodput"]["restarts"] == 1
    assert cost["spent"] == pytest.approx(seconds, rel=1e-3)  # one unit of money a second
    assert sum(cost["parts"].values()) == pytest.approx(cost["spent"], rel=1e-9)
    for part, spent in status["goodput"]["seconds"].items():
        assert cost["parts"][part] == pytest.approx(spent, abs=2e-3)
    assert cost["spent"] > killed.spent and cost["parts"]["restart_loss"] > 0
    assert cost["budget_left"] == pytest.approx(3600 - cost["spent"])
    assert cost["per_million_tokens"] == pytest.approx(1e6 * cost["spent"] / (20 * 12 * 64))
    assert f"cost {cost['spent']:,.2f} USD, " in output
    bill = charge(job.node())
    assert bill is not None and (bill.team, bill.project, bill.state) == ("nlp", "llama", "finished")
    assert bill.spent == pytest.approx(cost["spent"], rel=1e-3)
    assert bill.job is not None
    rank = job.state(20)["ranks"][0]
    assert killed.spent < rank["cost"]["spent"] <= cost["spent"]


def test_two_nodes_save_when_the_budget_is_spent_and_go_on_with_a_larger_one(text: Path, tmp_path: Path) -> None:
    job = Job(tmp_path / "job", text, nodes=2)
    settings = (*PRICE, "cost.on_budget=stop", "train.micro_batch_size=2", "checkpoint.every=1000")
    # 2 units a second for two nodes; the start-up alone costs more than nothing.
    output = job.run(
        *settings, "cost.budget=0.5", "cost.alert_at=0.1", "train.max_steps=4000", code=1
    )  # plain torchrun knows no 75
    status = [job.status(node) for node in (0, 1)]
    assert {each["state"] for each in status} == {"interrupted"} and len({each["step"] for each in status}) == 1
    step = status[0]["step"]
    words = f"the budget of 0.50 USD is spent (rank 0): the checkpoint of step {step} is committed"
    assert {each["interruption"] for each in status} == {words}
    assert f"Interrupted at step {step}, as {words}; raise cost.budget to go on." in output
    assert job.steps(0) == job.steps(1) == [step]
    assert status[0]["cost"]["budget_left"] < 0 and status[0]["cost"]["price_per_hour"] == 7200

    again = job.run(*settings, "cost.budget=0.5", code=1)
    assert "and cost.budget is 0.50: raise cost.budget, or set cost.on_budget to alert, to go on" in again
    assert job.steps(0) == [step]
    output = job.run(*settings, "cost.budget=1000", f"train.max_steps={step + 3}")
    assert f"resuming from step {step}" in output
    assert job.status()["state"] == "finished" and job.status()["cost"]["budget"] == 1000


def fit(
    folder: Path, steps: int, resume: Path | None = None, more: tuple[pl.Callback, ...] = (), **settings: Any
) -> tuple[CostCallback, pl.Trainer]:
    terms = {"node_price_per_hour": 3600.0, "price_source": "a test", "price_date": "2026-11-23"}
    cost = CostCallback(every=2, **{**terms, **settings})
    trainer = pl.Trainer(
        accelerator="cpu",
        max_steps=steps,
        **QUIET,
        default_root_dir=folder,
        callbacks=[ThroughputCallback(every=2, directory=folder), cost, *more],
    )
    trainer.fit(Module(), loader(), ckpt_path=resume)
    return cost, trainer


def test_the_callback_in_a_trainer_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cost, trainer = fit(tmp_path, 4)
    assert cost.spent is not None and cost.spent.total > 0
    assert float(trainer.callback_metrics["cost_spent"]) == pytest.approx(cost.spent.total, rel=1e-5)
    assert cost.state_dict()["tokens"] == 4 * 2 * 16 and current().about == {}
    bill = Bill(read(tmp_path / "goodput.jsonl")).spent()
    assert bill is not None and bill.total >= cost.spent.total and bill.price_per_hour == 3600

    over, trainer = fit(tmp_path, 12, budget=cost.spent.total + 1e-3, on_budget="stop")
    assert trainer.global_step == 2 and trainer.should_stop
    assert over.spent is not None and over.spent.total > cost.spent.total
    assert (
        capsys.readouterr().out == f"Stopped at step 2, as the budget of {cost.spent.total + 1e-3:,.2f} USD is spent.\n"
    )
    elsewhere, trainer = fit(tmp_path / "elsewhere", 4, resume=tmp_path / FILE)
    assert elsewhere.spent is not None and elsewhere.spent.total > over.spent.total  # carried by the checkpoint
    assert elsewhere.state_dict()["tokens"] == (2 + 2) * 2 * 16


def test_the_callback_leaves_by_the_interruption_where_there_is_one(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as left:
        fit(tmp_path, 12, more=(InterruptionCallback(),), budget=1e-9, on_budget="stop")
    assert left.value.code == 75 and (tmp_path / "interrupted.ckpt").exists() and not (tmp_path / FILE).exists()
    current().about = {}


def test_the_callback_says_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="CostCallback has no node_price_per_hour: give it with price_source"):
        CostCallback()
    cost = CostCallback(node_price_per_hour=1, price_source="a test", price_date="2026-11-23")
    trainer = pl.Trainer(
        accelerator="cpu", max_steps=1, logger=False, enable_checkpointing=False, callbacks=[cost],
        enable_progress_bar=False, enable_model_summary=False, default_root_dir=tmp_path,
    )  # fmt: skip
    with pytest.raises(ConfigError, match="CostCallback needs the time that ThroughputCallback measures"):
        trainer.fit(Module(), loader())
