"""A sharded job on two nodes: killed, a disk lost, resumed exactly."""

from __future__ import annotations

import shutil
from pathlib import Path

from conftest import Job, assert_same

SETTINGS = ("train.strategy=habana_fsdp", "train.micro_batch_size=6", "train.max_steps=18", "train.log_every=1")


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
