"""What a training says of its anomalies, where it keeps them, and what it does about them."""

from __future__ import annotations

import doctest
import importlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
import torch
import yaml
from prometheus_client import generate_latest
from torch import nn

from gaudi3_scale.callbacks import GaudiCheckpoint, MonitoringCallback
from gaudi3_scale.callbacks import monitoring_callback as callbacks
from gaudi3_scale.config import Config
from gaudi3_scale.data.prefetch import Prefetched
from gaudi3_scale.job import fit as fitting
from gaudi3_scale.metrics import TrainingMetrics
from gaudi3_scale.monitoring import KINDS, Anomaly, PerformanceMonitor, StepReading
from gaudi3_scale.monitoring.actions import Actions, Knob, sentence
from gaudi3_scale.monitoring.fleet import RankReading, combine, noticed
from gaudi3_scale.throughput.callback import ThroughputCallback
from gaudi3_scale.throughput.ledger import current

SMALL = {"layers": 1, "hidden_size": 16, "intermediate_size": 32, "heads": 2, "kv_heads": 2, "sequence_length": 16}
CONTRACT = Path(__file__).resolve().parents[2] / "docs" / "reference" / "metrics.yml"


@pytest.mark.parametrize("name", ["level", "detectors", "monitor", "actions"])
def test_the_examples_of_a_module_run(name: str) -> None:
    ran = doctest.testmod(importlib.import_module(f"gaudi3_scale.monitoring.{name}"))
    assert ran.failed == 0 and ran.attempted > 0


def test_the_example_of_the_callback_runs() -> None:
    ran = doctest.testmod(callbacks)
    assert ran.failed == 0 and ran.attempted > 0


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "anomalies.jsonl").read_text().splitlines()]


class Slow:
    """Batches that come late from the 25th on, unless they are asked for further ahead than at first.

    They take four times as long as the step before them, so that the share of the wait is the same on any machine.
    """

    def __init__(self, batches: Any, cure: int) -> None:
        self._batches, self._cure = batches, cure
        self.loader: Any = None
        self.step = 0.0

    def __iter__(self) -> Iterator[Any]:
        for number, batch in enumerate(self._batches):
            if number >= 25 and self.loader.ahead < self._cure:
                time.sleep(max(0.15, 4 * self.step))
            yield batch


class Timed(Prefetched[Any]):
    """Tells how long a step takes: from a batch until the next one is asked for."""

    def __init__(self, late: Slow, ahead: int, prepare: Any) -> None:
        super().__init__(late, ahead, prepare)
        self._late = late
        late.loader = self

    def __iter__(self) -> Iterator[Any]:
        for batch in super().__iter__():
            begun = time.monotonic()
            yield batch
            self._late.step = time.monotonic() - begun


@pytest.mark.parametrize("cure", [3, 100])
def test_a_job_whose_loader_is_slow_names_data_wait_and_reads_further_ahead(
    cure: int, tmp_path: Path, text: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What helps stays, and what does not is undone; the rest of an earlier process's file stays, too."""

    def slow(items: Any, ahead: int, prepare: Any = None) -> Prefetched[Any]:
        return Timed(Slow(items, cure), ahead, prepare)

    monkeypatch.setattr("gaudi3_scale.callbacks.batch_callback.Prefetched", slow)
    (tmp_path / "anomalies.jsonl").write_text('{"event": "anomaly", "step": 400}\n{"event": "ano')
    config = Config.model_validate(
        {
            "device": "cpu",
            "output_dir": tmp_path,
            "model": SMALL,
            "train": {"max_steps": 62, "log_every": 1, "threads": 1},
            "data": {"source": str(text), "validation_samples": 2},
            "checkpoint": {"every": 1000},
            "metrics": {"port": 0},
            "monitoring": {
                "warmup_steps": 2,
                "data_wait": 0.4,
                "actions": ["prefetch", "checkpoint"],
                "step_time": 9.0,
                "memory_creep": 9.0,
            },
        }
    )
    served: list[TrainingMetrics] = []

    def serve(metrics: TrainingMetrics, _: Any) -> str:
        served.append(metrics)
        return "nowhere"

    monkeypatch.setattr(TrainingMetrics, "serve", serve)
    fitting.fit(config)
    said = capsys.readouterr().out

    broken, (first, *rest) = (tmp_path / "anomalies.jsonl").read_text().splitlines()[:2], lines_after(tmp_path, 2)
    assert broken == ['{"event": "anomaly", "step": 400}', '{"event": "ano']
    assert (first["event"], first["kind"], first["unit"], first["rank"]) == ("anomaly", "data_wait", "share", None)
    assert 22 <= first["since"] <= 31 and first["before"] < 0.4 and first["after"] > 0.5
    assert first["severity"] == "critical" and 26 <= first["step"] <= 45
    step = first["step"]
    assert f"anomaly at step {step}: data wait takes " in said
    assert [(line["action"], line["before"], line["after"]) for line in rest[:2]] == [
        ("prefetch", 2, 4),
        ("checkpoint", None, step),
    ]
    assert f"action at step {step}: data.prefetch is changed from 2 to 4\n" in said
    assert (tmp_path / "checkpoints" / f"step-{step:08d}").exists()
    verdict = rest[2]
    assert verdict["step"] == step + 16
    if cure == 3:
        assert (verdict["event"], verdict["after"]) == ("kept", 4) and verdict["share"] < 0.3
        assert "data.prefetch stays 4, as it has helped\n" in said
    else:
        assert (verdict["event"], verdict["before"], verdict["after"]) == ("undone", 4, 2) and verdict["share"] > 0.5
        assert "data.prefetch is changed from 4 to 2 again, as it has not helped\n" in said
    status = json.loads((tmp_path / "status.json").read_text())
    assert status["state"] == "finished" and status["anomaly"]["kind"] == "data_wait"
    assert status["anomaly"]["what"] in said
    page = generate_latest(served[0].registry).decode()
    assert 'gaudi_training_anomalies_total{kind="data_wait"} 1.0' in page
    assert 'gaudi_training_anomalies_total{kind="straggler"} 0.0' in page


def lines_after(folder: Path, count: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "anomalies.jsonl").read_text().splitlines()[count:]]


class Module(pl.LightningModule):
    """Slower, in its forward pass, from a batch on."""

    def __init__(self, slow_from: int) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 1)
        self._slow_from = slow_from

    def training_step(self, batch: torch.Tensor, batch_idx: int) -> torch.Tensor:
        # Long enough that a machine which is busy with other things adds little to it.
        time.sleep(0.04 if self.trainer.global_step < self._slow_from else 0.2)
        loss: torch.Tensor = self.layer(batch).square().mean()
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


def test_the_callback_in_a_trainer_of_ones_own_names_a_slower_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = current()
    settings = {"step_time": 0.5, "data_wait": 0.9, "memory_creep": 9.0, "warmup_steps": 5, "actions": ["checkpoint"]}
    monitoring = MonitoringCallback(every=1, directory=tmp_path, **settings)
    checkpoint = GaudiCheckpoint(tmp_path / "checkpoints", every_n_steps=30, keep=10, job="one")
    trainer = pl.Trainer(
        accelerator="cpu", max_steps=80, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, default_root_dir=tmp_path, callbacks=[monitoring, checkpoint],
    )  # fmt: skip
    trainer.fit(Module(50), torch.utils.data.DataLoader(list(torch.rand(400, 4)), batch_size=4))  # type: ignore[arg-type]
    found = [anomaly for anomaly in monitoring.anomalies if anomaly.kind == "step_time"]
    assert len(found) == 1 and 45 <= found[0].since <= 54 and found[0].severity == "critical"
    assert 1.5 < found[0].after / found[0].before < 6 and found[0].after > 0.2
    assert f"anomaly at step {found[0].step}: the step time has risen from 0.0" in capsys.readouterr().out
    assert [line["event"] for line in lines(tmp_path)] == ["anomaly", "action"]
    assert (tmp_path / "checkpoints" / f"step-{found[0].step:08d}").exists()
    assert monitoring.contribute()["anomaly"]["kind"] == "step_time"
    assert current() is before


@pytest.mark.parametrize("first", [True, False])
def test_the_ledger_of_a_trainer_of_ones_own_has_the_steps_own_times(first: bool, tmp_path: Path) -> None:
    callbacks: list[pl.Callback] = [MonitoringCallback(every=2, directory=tmp_path), ThroughputCallback(2, tmp_path)]
    trainer = pl.Trainer(
        accelerator="cpu", max_steps=6, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, default_root_dir=tmp_path, callbacks=callbacks if first else callbacks[::-1],
    )  # fmt: skip
    trainer.fit(Module(50), torch.utils.data.DataLoader(list(torch.rand(400, 4)), batch_size=4))  # type: ignore[arg-type]
    said = [line["ranks"] for line in map(json.loads, (tmp_path / "goodput.jsonl").open()) if "ranks" in line]
    assert said[0]["steps"][0] == 0 and said[-1]["steps"][1] == 6
    assert sum(line["spent"] for line in said) > 0.05 * 10**9 and not (tmp_path / "ranks.json").exists()


def test_memory_is_freed_and_not_again_where_nothing_was() -> None:
    creep = Anomaly("memory_creep", 10, 1, "warning", 1e9, 2e9, "bytes", 0)
    freed = iter([(2**30, 2**29), (2**30, 2**30)])
    actions = Actions(["free_memory"], free_memory=lambda: next(freed))
    [line] = actions.take(creep)
    assert (line["before"], line["after"]) == (2**30, 2**29)
    assert sentence(line) == "garbage is collected and the cache emptied: 1,024.0 MiB in use before, 512.0 after"
    assert len(actions.take(creep)) == 1 and actions.take(creep) == []


def test_nothing_is_done_that_was_not_allowed() -> None:
    def never(*_: Any) -> Any:
        raise AssertionError

    actions = Actions((), Knob(never, never, 64), never, never)
    for kind in KINDS:
        assert actions.take(Anomaly(kind, 10, 1, "critical", 1.0, 2.0, "share")) == []
    assert Actions(["prefetch"], Knob(lambda: 0, never, 64)).take(
        Anomaly("data_wait", 10, 1, "warning", 0.0, 0.5, "share")
    ) == []  # fmt: skip


def test_a_straggler_explains_that_all_are_slower() -> None:
    monitor, found = PerformanceMonitor(hosts=["a", "a", "b", "b"], warmup_steps=0), []
    for step in range(1, 101):
        slow = 2.0 if step > 60 else 1.0
        ranks = [RankReading(0.5 * slow, 0.0, 0.1 * (slow if rank == 3 else 1), 0, 0, 0) for rank in range(4)]
        found += monitor.watch(combine(step, ranks))
    [anomaly] = found
    assert (anomaly.kind, anomaly.rank, anomaly.since, anomaly.severity) == ("straggler", 3, 61, "critical")
    assert anomaly.what == (
        "rank 3 (on b) takes 0.2 s for its own work and the others 0.1 s (+100 %) since about step 61"
    )


def test_checkpoints_are_left_out_unless_every_reading_has_one() -> None:
    def watched(disturbed: Any) -> list[str]:
        monitor, found = PerformanceMonitor(warmup_steps=0), []
        for step in range(1, 201):
            seconds = 1.0 if step < 100 else 1.5
            found += monitor.watch(
                StepReading(step, 3 * seconds if disturbed(step) else seconds, disturbed=disturbed(step))
            )
        return [anomaly.kind for anomaly in found]

    assert watched(lambda step: step % 2 == 0) == ["step_time"]
    assert watched(lambda step: True) == ["step_time"]


def test_waits_that_the_device_has_not_noticed_are_none() -> None:
    """The host waits for data while the device has work left, of which reading the loss then waits for the rest."""
    assert noticed(0.4, read=0.1, seconds=0.5) == 0.4
    assert noticed(0.4, read=0.6, seconds=0.5) == 0.0


def test_a_queue_grows_while_it_is_read() -> None:
    made: list[int] = []

    def make() -> Iterator[int]:
        for number in range(100):
            made.append(number)
            yield number

    items = Prefetched(make(), 2)
    taken = iter(items)
    assert next(taken) == 0
    items.resize(20)
    for _ in range(500):
        if len(made) >= 21:
            break
        time.sleep(0.01)
    assert 21 <= len(made) <= 23 and items.ahead == 20
    assert list(taken) == list(range(1, 100))


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match="data_wait"):
        PerformanceMonitor(data_wait=2)


def test_the_contract_has_the_metric() -> None:
    metric = next(each for each in yaml.safe_load(CONTRACT.read_text())["metrics"] if "anomalies" in each["name"])
    assert (metric["name"], metric["labels"]) == ("gaudi_training_anomalies_total", ["kind"])
