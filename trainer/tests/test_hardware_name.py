"""A job on a device that has no hardware name says in every place that it is simulated."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import interpreter
import pytest
from conftest import SIMULATOR, zygote

from gaudi3_scale.console import Console
from gaudi3_scale.metrics import TrainingMetrics
from gaudi3_scale.status import Progress, StatusFile


def progress(device: str, hardware_name: str | None, simulated: bool | None) -> Progress:
    return Progress(
        max_steps=100,
        world_size=4,
        device=device,
        tokens_per_sample=16,
        samples_per_step=32,
        hardware_name=hardware_name,
        simulated=simulated,
        loss=2.5,
        baseline_loss=3.0,
        tokens_per_second=5120.0,
    )


CASES = [
    (progress("hpu", "GAUDI3", False), "GAUDI3"),
    (progress("hpu", None, True), "simulated hpu"),
    (progress("cpu", None, False), "cpu"),
    (progress("auto", None, None), "auto"),
]


@pytest.mark.parametrize(("job", "name"), CASES)
def test_the_console_the_status_and_the_metrics_name_the_device(
    job: Progress, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    console = Console(speaks=True, bar=False)
    console.logged(job)
    console.summary(job)
    logged, last = capsys.readouterr().out.splitlines()
    assert ("5,120 tokens/s (simulated)" in logged) is bool(job.simulated)
    assert f"with 4 process(es) on {name} in " in last
    status = StatusFile(tmp_path / "status.json")
    status.write("running", job)
    read = status.read()
    assert (read["device"], read["hardware_name"], read["simulated"]) == (job.device, job.hardware_name, job.simulated)
    labels = {"device": job.device, "hardware": name, "version": "0.1.0"}
    assert TrainingMetrics(job, 2).registry.get_sample_value("gaudi_training_info", labels) == 1


@pytest.mark.skipif(not SIMULATOR.is_dir(), reason="the simulated hpu is not built: `make hpu` builds it")
def test_a_job_on_the_simulated_card_says_so_from_its_first_line_to_its_last(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("It is simulated. " * 400)
    settings = {
        "output_dir": tmp_path / "job",
        "device": "hpu",
        "data.source": text,
        "model.hidden_size": 16,
        "model.intermediate_size": 32,
        "model.layers": 1,
        "model.heads": 2,
        "model.kv_heads": 1,
        "model.sequence_length": 16,
        "train.max_steps": 8,
        "train.log_every": 2,
        "train.threads": 1,
        "train.mode": "eager",
        "metrics.enabled": "false",
    }
    command = ("-m", "gaudi3_scale", "fit", *(f"{key}={value}" for key, value in settings.items()))
    done = interpreter.run(zygote(cards=True), *command, GAUDI3_HPU_SIMULATOR_CARDS=str(tmp_path / "cards"))
    assert done.returncode == 0, done.stderr
    cards = [path.read_bytes() for path in (tmp_path / "cards").iterdir()]
    assert [int.from_bytes(card[8:16], "little") for card in cards] == [0], "the card was given up in order"
    lines = done.stdout.splitlines()
    assert any(line.startswith("1 process(es) on simulated hpu, ") for line in lines), done.stdout
    speeds = [line for line in lines if "tokens/s" in line]
    assert speeds and all("tokens/s (simulated)" in line for line in speeds)
    finished, checkpoint = lines[-2:]
    assert " with 1 process(es) on simulated hpu in " in finished and checkpoint.startswith("checkpoint ")
    (found,) = (tmp_path / "job").rglob("status.json")
    status = json.loads(found.read_text())
    assert (status["device"], status["hardware_name"], status["simulated"]) == ("hpu", None, True)
    assert sorted(status["software"]) == ["lightning", "plugin", "python", "torch"]
    assert status["software"]["plugin"].endswith("+gaudi3.simulator")
    assert status["software"]["torch"] == version("torch")
