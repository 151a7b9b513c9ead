"""Sharded tensors, by mode."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

Run = Callable[..., subprocess.CompletedProcess[str]]
SHARD = """
import torch, torch.distributed as dist
import habana_frameworks.torch.core
dist.init_process_group("hccl", store=dist.FileStore("{store}", 1), rank=0, world_size=1)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard, distribute_tensor
mesh = init_device_mesh("hpu", (1,))
for action in (
    lambda: fully_shard(torch.nn.Linear(4, 4).to("hpu"), mesh=mesh),
    lambda: distribute_tensor(torch.ones(6, device="hpu"), mesh, [Shard(0)]),
):
    try:
        action()
    except NotImplementedError as error:
        print(error)
    else:
        print("sharded")
"""


def test_lazy_mode_has_no_sharded_tensors(run: Run, tmp_path: Path) -> None:
    done = run(SHARD.format(store=tmp_path / "store"), PT_HPU_LAZY_MODE="1")
    sentence = "The simulated HPU has no sharded tensors (DTensor) in lazy mode, nor has Gaudi: set PT_HPU_LAZY_MODE=0."
    assert (done.returncode, done.stdout.splitlines()) == (0, [sentence] * 2), done.stderr


def test_eager_mode_has_sharded_tensors(run: Run, tmp_path: Path) -> None:
    done = run(SHARD.format(store=tmp_path / "store"))
    assert (done.returncode, done.stdout) == (0, "sharded\nsharded\n"), done.stderr
