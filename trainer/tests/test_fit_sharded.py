"""A sharded job on two nodes: killed, a disk lost, resumed exactly."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from conftest import Job, assert_same

SETTINGS = ("train.strategy=habana_fsdp", "train.micro_batch_size=6", "train.max_steps=18", "train.log_every=1")
TINY = ("model.hidden_size=32", "model.intermediate_size=64", "model.layers=2", "model.sequence_length=16")
SHARDED_BYTES = 3 * 4 * 34_976
"""Of weights and AdamW's two moments in float32: two layers of 9,280 parameters, embedding and head of 256 x 32, and
a norm."""


def test_a_sharded_job_resumes_exactly_though_a_node_lost_its_disk(text: Path, tmp_path: Path) -> None:
    whole, broken = Job(tmp_path / "whole", text, nodes=2), Job(tmp_path / "broken", text, nodes=2)
    whole.run(*SETTINGS)
    files = sorted(path.name for path in (whole.node(1) / "checkpoints" / "step-00000018").iterdir())
    assert files == [".metadata", "__0_0.distcp", "__1_0.distcp", "manifest.json", "state.safetensors"]
    with broken.running(*SETTINGS, lines=12, saved=10):
        pass
    shutil.rmtree(broken.node(0))
    output = broken.run(*SETTINGS)
    assert f"resuming from step {broken.status(0)['resumed_from_step']}\n" in output
    assert broken.status(0)["resumed_from_step"] >= 10
    for node in (0, 1):
        assert broken.losses(node) == whole.losses(node)
        assert_same(broken.state(18, node), whole.state(18, 0))


@pytest.mark.proof
def test_a_job_of_two_copies_resumes_exactly_and_on_half_the_processes(text: Path, tmp_path: Path) -> None:
    job = Job(tmp_path / "job", text, processes=4)
    settings = ("train.strategy=habana_fsdp", "train.micro_batch_size=3", "train.log_every=1", "checkpoint.keep=3")
    settings += ("checkpoint.every=2", "train.collective_timeout=60", *TINY)
    job.run(*settings, "train.max_steps=4", "train.replicas=2")
    whole, state = job.losses(), job.state(4)
    folder = job.node() / "checkpoints" / "step-00000004"
    assert sum(path.stat().st_size for path in folder.glob("*.distcp")) < 1.5 * SHARDED_BYTES  # a copy is saved once
    shutil.rmtree(folder)
    output = job.run(*settings, "train.max_steps=4", "train.replicas=2")
    assert "resuming from step 2\n" in output
    assert job.losses() == whole
    assert_same(job.state(4), state)
    job.processes = 2
    output = job.run(*settings, "train.max_steps=6")
    assert "resuming from step 4\n" in output and "accumulating 2 micro-batches instead of 1" in output
    assert job.losses()[:4] == whole and [step for step, _ in job.losses()] == [1, 2, 3, 4, 5, 6]
    job.processes = 3
    assert "train.replicas is 2, and there are 3 process(es), which cannot be divided into that many groups" in job.run(
        *settings, "train.replicas=2", code=1
    )


def test_deferred_weights_go_on_in_one_process(text: Path, tmp_path: Path) -> None:
    job = Job(tmp_path / "job", text, processes=2)
    settings = ("train.strategy=habana_fsdp", "model.deferred=true", "train.log_every=1", "train.warmup_steps=1")
    settings = (*settings, "train.collective_timeout=60")
    job.run(*settings, *TINY, "train.max_steps=2")
    alone = Job(tmp_path / "alone", text)
    alone.run(*settings, *TINY, "train.max_steps=2", "train.micro_batch_size=24")
    assert [loss for _, loss in alone.losses()] == pytest.approx([loss for _, loss in job.losses()], rel=1e-5)
    job.processes = 1
    output = job.run(*settings, *TINY, "train.max_steps=3")
    assert "resuming from step 2\n" in output and [step for step, _ in job.losses()] == [1, 2, 3]
