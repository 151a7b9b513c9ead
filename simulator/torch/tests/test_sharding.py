"""Sharded tensors, by mode."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
SHARD = """
import torch, torch.distributed as dist
import habana_frameworks.torch.core
dist.init_process_group("hccl", store=dist.FileStore("{store}", 1), rank=0, world_size=1)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard, distribute_tensor
mesh = init_device_mesh("hpu", (1,))
{action}
print("sharded")
"""
ACTIONS = [
    'fully_shard(torch.nn.Linear(4, 4).to("hpu"), mesh=mesh)',
    'distribute_tensor(torch.ones(6, device="hpu"), mesh, [Shard(0)])',
]


@pytest.mark.parametrize("action", ACTIONS)
def test_lazy_mode_has_no_sharded_tensors(run: Run, tmp_path: Path, action: str) -> None:
    done = run(SHARD.format(store=tmp_path / "store", action=action), PT_HPU_LAZY_MODE="1")
    assert done.returncode == 1, done.stdout
    assert "The simulated HPU has no sharded tensors (DTensor) in lazy mode, nor has Gaudi: set" in done.stderr


@pytest.mark.parametrize("action", ACTIONS)
def test_eager_mode_has_sharded_tensors(run: Run, tmp_path: Path, action: str) -> None:
    done = run(SHARD.format(store=tmp_path / "store", action=action))
    assert (done.returncode, done.stdout) == (0, "sharded\n"), done.stderr
