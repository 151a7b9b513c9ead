"""status.json, metrics.jsonl and the Prometheus endpoint, without a training around them."""

from __future__ import annotations

import json
import socket
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from gaudi3_scale.config import CostConfig, MetricsConfig
from gaudi3_scale.errors import TrainerError
from gaudi3_scale.job.fit import _serve_metrics
from gaudi3_scale.metrics import CostMetrics, TrainingMetrics
from gaudi3_scale.status import MetricsFile, Progress, StatusFile
from gaudi3_scale.throughput.goodput import PARTS, Goodput
from gaudi3_scale.throughput.meter import Reading


def progress() -> Progress:
    """Of a job of four processes on two nodes."""
    return Progress(max_steps=100, world_size=4, device="cpu", tokens_per_sample=16, samples_per_step=32)


def test_the_status_has_the_agreed_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INVOCATION_ID", "2f1d")
    status = StatusFile(tmp_path / "status.json")
    assert status.read() == {} and not status.finished(1)
    job = progress()
    job.advance()
    status.write("failed", job, "It broke.")
    assert list(status.read()) == [
        "schema",
        "state",
        "step",
        "max_steps",
        "loss",
        "first_loss",
        "gradient_norm",
        "skipped_steps",
        "validation_loss",
        "baseline_loss",
        "tokens_per_second",
        "tokens_per_second_stepping",
        "mfu",
        "goodput",
        "cost",
        "anomaly",
        "peak_memory_bytes",
        "batch",
        "tokens",
        "world_size",
        "device",
        "hardware_name",
        "simulated",
        "software",
        "precision",
        "weights",
        "checkpoint",
        "checkpoint_step",
        "checkpoint_error",
        "uploaded_step",
        "upload_error",
        "resumed_from_step",
        "interruption",
        "hang",
        "started_at",
        "updated_at",
        "invocation",
        "error",
    ]
    wanted = {"schema": 1, "state": "failed", "step": 1, "tokens": 512, "world_size": 4, "error": "It broke."}
    assert wanted.items() <= status.read().items()
    assert status.read()["invocation"] == "2f1d"
    assert [path.name for path in tmp_path.iterdir()] == ["status.json"]


def test_a_loss_that_is_no_number_is_null_in_json(tmp_path: Path) -> None:
    job = progress()
    job.loss = float("nan")
    StatusFile(tmp_path / "status.json").write("running", job)
    MetricsFile(tmp_path / "metrics.jsonl").append(job, 0.1, job.loss)
    assert '"loss": null' in (tmp_path / "status.json").read_text()
    assert '"loss": null' in (tmp_path / "metrics.jsonl").read_text()


def test_finished_means_as_many_steps_as_are_wanted_now(tmp_path: Path) -> None:
    status = StatusFile(tmp_path / "status.json")
    job = progress()
    job.step = 100
    status.write("running", job)
    assert not status.finished(100)
    status.write("finished", job)
    assert status.finished(100) and not status.finished(101)


def test_lines_after_the_resumed_step_and_torn_ones_are_dropped(tmp_path: Path) -> None:
    lines = MetricsFile(tmp_path / "metrics.jsonl")
    lines.truncate(5)
    job = progress()
    for _ in range(8):
        job.advance()
        lines.append(job, 0.1, 2.0)
    with lines.path.open("a") as file:
        file.write('{"step": 3, "lo')
    lines.truncate(5)
    assert [json.loads(line)["step"] for line in lines.path.read_text().splitlines()] == [1, 2, 3, 4, 5]


def test_a_node_serves_the_numbers_of_the_job_and_the_tokens_of_its_own_processes() -> None:
    job = progress()
    job.loss, job.baseline_loss, job.gradient_norm = 2.5, 3.25, 0.75
    metrics = TrainingMetrics(job, local_world_size=2)
    url = metrics.serve(MetricsConfig(port=0))
    metrics.stepped(7, 0.2)
    metrics.logged(job, 0.003)
    metrics.evaluated(2.75)
    metrics.checkpointed(0.5)
    metrics.stalled(0.05)
    metrics.uploaded(7, 2)
    metrics.uploaded(7, 3)
    metrics.reported(2)
    metrics.reported(5)
    text = urllib.request.urlopen(url).read().decode()
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert float(values.pop("gaudi_training_checkpoint_last_timestamp_seconds")) > 1.7e9
    assert values['gaudi_training_info{device="cpu",hardware="cpu",version="0.1.0"}'] == "1.0"
    wanted = {
        "gaudi_training_step": "7.0",
        "gaudi_training_max_steps": "100.0",
        "gaudi_training_loss": "2.5",
        "gaudi_training_validation_loss": "2.75",
        "gaudi_training_baseline_loss": "3.25",
        "gaudi_training_gradient_norm": "0.75",
        "gaudi_training_skipped_steps_total": "0.0",
        "gaudi_training_learning_rate": "0.003",
        "gaudi_training_tokens_total": "256.0",
        "gaudi_training_world_size": "4.0",
        "gaudi_training_step_seconds_count": "1.0",
        'gaudi_training_step_seconds_bucket{le="0.1"}': "0.0",
        'gaudi_training_step_seconds_bucket{le="0.25"}': "1.0",
        "gaudi_training_checkpoint_seconds_sum": "0.5",
        "gaudi_training_checkpoint_stall_seconds_sum": "0.05",
        "gaudi_training_checkpoint_uploaded_step": "7.0",
        "gaudi_training_report_write_failures_total": "5.0",
        "gaudi_training_checkpoint_upload_failures_total": "3.0",
    }
    assert wanted.items() <= values.items()
    assert all(name.startswith("gaudi_training_") for name in values)


def test_speed_and_goodput_are_served_and_an_unknown_mfu_is_not() -> None:
    metrics = TrainingMetrics(progress(), local_world_size=2)
    spent = dict.fromkeys(PARTS, 10**9)
    metrics.measured(Reading(tokens_per_second=50.0, tokens_per_second_stepping=60.0), Goodput(spent, runs=1))
    page = generate_latest(metrics.registry).decode()
    assert 'gaudi_training_tokens_per_second{window="wall"} 50.0' in page
    assert 'gaudi_training_tokens_per_second{window="stepping"} 60.0' in page
    assert "gaudi_training_mfu_ratio{" not in page
    spent["compute"] += 5 * 10**8
    metrics.measured(Reading(mfu=0.5, mfu_wall=0.25), Goodput(spent, runs=1))
    page = generate_latest(metrics.registry).decode()
    assert 'gaudi_training_mfu_ratio{window="stepping"} 0.5' in page
    assert 'gaudi_training_goodput_seconds_total{part="compute"} 1.5' in page
    for part in set(PARTS) - {"compute"}:
        assert f'gaudi_training_goodput_seconds_total{{part="{part}"}} 1.0' in page


KNOWN_AT_START = {"gaudi_training_world_size": 4.0, "gaudi_training_max_steps": 100.0, "gaudi_training_step": 40.0}


def gauges(registry: CollectorRegistry) -> dict[str, list[float]]:
    """Every gauge that is registered, with its samples; facts as labels are none."""
    found = {
        each.name: [sample.value for sample in each.samples] for each in registry.collect() if each.type == "gauge"
    }
    assert len(found) >= 10
    return found


def test_no_gauge_has_a_value_that_was_not_measured() -> None:
    job = progress()
    job.step = 40  # a job that was resumed
    metrics = TrainingMetrics(job, local_world_size=2)
    CostMetrics(CostConfig(), metrics.registry)
    metrics.measured(Reading(), Goodput(dict.fromkeys(PARTS, 0), runs=1))
    metrics.logged(job, None)
    metrics.uploaded(None, 0)
    found = gauges(metrics.registry)
    assert {name: values for name, values in found.items() if values} == {n: [v] for n, v in KNOWN_AT_START.items()}
    job.loss, job.baseline_loss, job.gradient_norm = 0.0, 3.25, 0.75
    metrics.logged(job, 0.003)
    assert gauges(metrics.registry)["gaudi_training_preference_reward"] == []
    job.figures = {"rewards/chosen": 0.25, "rewards/rejected": -0.5, "rewards/accuracies": 0.75}
    metrics.logged(job, 0.003)
    page = generate_latest(metrics.registry).decode()
    assert 'gaudi_training_preference_reward{answer="chosen"} 0.25\n' in page
    assert 'gaudi_training_preference_reward{answer="rejected"} -0.5\n' in page
    assert "gaudi_training_preference_accuracy_ratio 0.75\n" in page
    metrics.evaluated(2.75)
    metrics.uploaded(7, 0)
    metrics.checkpointed(0.5)
    found = gauges(metrics.registry)
    assert found["gaudi_training_loss"] == [0.0]  # one that was measured is shown, whatever it is
    assert {name for name, values in found.items() if not values} == {
        *("gaudi_training_tokens_per_second", "gaudi_training_mfu_ratio", "gaudi_training_phase_seconds"),
        *(name for name in found if name.startswith("gaudi_cost_")),
    }


def test_goodput_is_served_from_the_first_reading_on_with_what_earlier_processes_spent() -> None:
    said: list[str] = []
    run = SimpleNamespace(
        process_group=SimpleNamespace(leader=True, topology=SimpleNamespace(local_world_size=2)),
        config=SimpleNamespace(metrics=MetricsConfig(port=0)),
        progress=progress(),
        watch=SimpleNamespace(goodput=lambda: Goodput(dict.fromkeys(PARTS, 7 * 10**9), runs=2)),
        console=SimpleNamespace(log=said.append),
    )
    _serve_metrics(run)  # type: ignore[arg-type]
    page = urllib.request.urlopen(said[0].removeprefix("metrics at ")).read().decode()
    for part in PARTS:
        assert f'gaudi_training_goodput_seconds_total{{part="{part}"}} 7.0' in page


def test_a_taken_port_is_one_sentence() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(TrainerError) as error:
            TrainingMetrics(progress(), 1).serve(MetricsConfig(port=port))
    assert str(error.value) == (
        f"Metrics cannot be served at 127.0.0.1:{port} (Address already in use): set metrics.address and metrics.port "
        "to a free address of this node, or metrics.enabled to false."
    )
