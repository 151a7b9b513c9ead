"""`train.micro_batch_size=auto` on simulated cards of little memory: what is found, and that nothing else changes."""

from __future__ import annotations

import doctest
import importlib
import json
from pathlib import Path
from typing import Any

import interpreter
import pytest
from conftest import SIMULATOR, SMALL, Job, free_port, zygote

HERE = Path(__file__).parent
MEMORY = 40_000_000
HOST = 72_000_000
"""What it has left, for two cards."""
SETTINGS = ("device=hpu", "model.hidden_size=32", "model.intermediate_size=64", "model.sequence_length=128")
SETTINGS += ("train.precision=32-true", "train.mode=eager", "train.max_steps=3", "train.warmup_steps=1")
SETTINGS += ("train.log_every=1", "train.collective_timeout=60", "metrics.enabled=false")
on_cards = pytest.mark.skipif(not SIMULATOR.is_dir(), reason="the simulated hpu is not built: `make hpu` builds it")


def fit(folder: Path, text: Path, *settings: str, code: int = 0) -> str:
    """A job to its end, whose second card is crowded in the first trial; what it printed."""
    arguments = ["-m", "torch.distributed.run", "--nproc-per-node=2", "--rdzv-backend=c10d"]
    arguments += [
        "--rdzv-id=batch",
        f"--rdzv-endpoint=127.0.0.1:{free_port()}",
        str(HERE / "occupied_card_job.py"),
        "fit",
    ]
    environment = {"GAUDI3_HPU_SIMULATOR_HBM": str(MEMORY), "GAUDI3_HOST_ROOM": str(HOST)}
    arguments += [*SMALL, *SETTINGS, f"data.source={text}", f"output_dir={folder}", *settings]
    done = interpreter.run(zygote(cards=True), *arguments, **environment)
    said = done.stdout + done.stderr
    assert done.returncode == code, said
    return said


def lines(folder: Path) -> list[tuple[float, float]]:
    """Loss and gradient norm of each step."""
    read = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [(each["loss"], each["gradient_norm"]) for each in read if "gradient_norm" in each]


def status(folder: Path) -> dict[str, Any]:
    """Of a job."""
    read: dict[str, Any] = json.loads((folder / "status.json").read_text())
    return read


@on_cards
@pytest.mark.parametrize("strategy", ["habana_ddp", pytest.param("habana_fsdp", marks=pytest.mark.proof)])
def test_one_of_two_processes_out_of_memory_in_a_trial(strategy: str, text: Path, tmp_path: Path) -> None:
    """No process waits for it, both take the next answer, and the job is the one that is given the number."""
    output = fit(tmp_path / "auto", text, f"train.strategy={strategy}", "train.micro_batch_size=auto")
    found = status(tmp_path / "auto")["batch"]
    assert [each["fits"] for each in found["trials"]] == [False, True], output
    assert found["micro_batch_size"] == found["trials"][1]["batch"] < found["trials"][0]["batch"]
    assert found["measured_bytes"] <= found["limit_bytes"] == int(0.95 * HOST / 2) < 0.95 * MEMORY
    assert "within the 34 MiB that the host has left for each simulated card: a step of" in output
    number = f"train.micro_batch_size={found['micro_batch_size']}"
    fit(tmp_path / "given", text, f"train.strategy={strategy}", number)
    assert lines(tmp_path / "auto") == lines(tmp_path / "given")
    assert len(lines(tmp_path / "auto")) == 3


@on_cards
def test_a_batch_that_does_not_fit_ends_the_job_in_one_sentence(text: Path, tmp_path: Path) -> None:
    output = fit(tmp_path, text, "train.micro_batch_size=4096", code=1)
    said = status(tmp_path)["error"]
    assert said.startswith("Rank ") and " ran out of memory after step 0 (FATAL ERROR :: MODULE:PT_DEVMEM" in said
    assert "set train.micro_batch_size to auto or below 4096, or memory.activation_checkpointing to full" in said
    assert f"gaudi3-train: {said}" in output


def test_a_resumed_job_keeps_the_batch_of_its_checkpoint(text: Path, tmp_path: Path) -> None:
    job = Job(tmp_path / "job", text)
    settings = ("train.micro_batch_size=auto", "train.log_every=1", "train.warmup_steps=1", "train.mode=eager")
    job.run(*settings, "train.max_micro_batch_size=6", "train.max_steps=3")
    first = status(job.node())["batch"]
    assert (first["micro_batch_size"], first["trials"]) == (6, [])
    output = job.run(*settings, "train.max_micro_batch_size=4", "train.max_steps=5")
    assert "as in the checkpoint that the job goes on from" in output
    assert status(job.node())["batch"]["micro_batch_size"] == 6
    assert len(job.losses()) == 5


@pytest.mark.parametrize(
    "name", ["gaudi3_scale.batch.finder", "gaudi3_scale.batch.scaling", "gaudi3_scale.optimization"]
)
def test_the_examples_of_batches_run(name: str) -> None:
    ran = doctest.testmod(importlib.import_module(name))
    assert ran.failed == 0 and ran.attempted > 0
