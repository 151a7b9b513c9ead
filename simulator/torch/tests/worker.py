"""One of two processes: collectives, and training with DDP and FSDP2, on hpu with hccl and on CPU with gloo."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import shapes
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel

import habana_frameworks.torch.distributed.hccl  # noqa: F401


def refused(action: Any) -> str:
    try:
        action()
    except RuntimeError as error:
        return str(error).splitlines()[0]
    return ""


def collectives(rank: int) -> dict[str, Any]:
    device = torch.device("hpu", 0)
    own = torch.full((2,), float(rank + 1), device=device)
    seen: dict[str, Any] = {}
    total = own.clone()
    dist.all_reduce(total)
    seen["all_reduce"] = total.tolist()
    listed = [torch.empty(2, device=device) for _ in range(2)]
    dist.all_gather(listed, own)
    seen["all_gather"] = [part.tolist() for part in listed]
    whole = torch.empty(4, device=device)
    dist.all_gather_into_tensor(whole, own)
    seen["all_gather_into_tensor"] = whole.tolist()
    half = torch.empty(2, device=device)
    dist.reduce_scatter_tensor(half, torch.arange(4.0, device=device))
    seen["reduce_scatter_tensor"] = half.tolist()
    dist.scatter(half, [own, own * 5] if rank == 0 else None, src=0)
    seen["scatter"] = half.tolist()
    dist.broadcast(half, src=1)
    seen["broadcast"] = half.tolist()
    swapped = torch.empty(2, device=device)
    dist.all_to_all_single(swapped, torch.tensor([10.0 * rank, 10.0 * rank + 1], device=device))
    seen["all_to_all"] = swapped.tolist()
    if rank == 0:
        dist.send(own, 1)
    else:
        dist.recv(half, 0)
    seen["recv"] = half.tolist()
    dist.barrier(device_ids=[dist.get_rank()])  # as accelerate does: the card has index 0 all the same
    objects: list[Any] = [None, None]
    dist.all_gather_object(objects, {"rank": rank})
    seen["objects"] = objects
    work = dist.all_reduce(own.clone(), async_op=True)
    seen["future"] = [str(value.device) for value in work.get_future().wait()]
    seen["bfloat16"] = _sum(own.bfloat16())
    seen["average"] = refused(lambda: dist.all_reduce(own, op=dist.ReduceOp.AVG))
    seen["mixed"] = refused(lambda: dist.all_gather([torch.empty(2), torch.empty(2)], own))
    large, part = torch.ones(100_000, device=device), torch.empty(50_000, device=device)
    torch.hpu.reset_peak_memory_stats(device)
    before = torch.hpu.memory_allocated(device)
    dist.reduce_scatter_tensor(part, large)  # of which gloo makes copies
    dist.all_gather([large[:50_000], large[50_000:]], part)
    seen["charged"] = torch.hpu.max_memory_allocated(device) - before
    return seen


def _sum(tensor: torch.Tensor) -> list[float]:
    dist.all_reduce(tensor)
    return tensor.float().tolist()


def trained(strategy: str, device: torch.device, family: str, reduced: bool = False) -> dict[str, torch.Tensor]:
    model = shapes.build(family).to(device).train()
    model.config.use_cache = False
    if strategy == "ddp":
        shapes.train(DistributedDataParallel(model), device, steps=4, seed=1 + dist.get_rank())
    else:
        mesh = init_device_mesh(device.type, (2,))
        policy = MixedPrecisionPolicy(torch.bfloat16, torch.float32) if reduced else MixedPrecisionPolicy()
        blocks = model.bert.encoder.layer if family == "bert" else model.model.layers
        for part in (*blocks, model):
            fully_shard(part, mesh=mesh, mp_policy=policy)
        for part in model.modules():
            if isinstance(part, FSDPModule):
                part.set_force_sum_reduction_for_comms(True)
        shapes.train(model, device, steps=4, seed=1 + dist.get_rank())
    return shapes.weights(model)


def checkpointed(rank: int, folder: Path) -> bool:
    """Sharded weights through torch.distributed.checkpoint and back."""
    import torch.distributed.checkpoint as dcp
    from torch.distributed.tensor import DTensor, Shard, distribute_tensor

    mesh = init_device_mesh("hpu", (2,))
    wanted = torch.arange(8.0, device=torch.device("hpu", 0))
    dcp.save({"weight": distribute_tensor(wanted, mesh, [Shard(0)])}, checkpoint_id=folder)
    state = {"weight": distribute_tensor(torch.zeros_like(wanted), mesh, [Shard(0)])}
    dcp.load(state, checkpoint_id=folder)
    loaded = state["weight"]
    assert isinstance(loaded, DTensor)
    return loaded.to_local().device.type == "hpu" and torch.equal(loaded.full_tensor(), wanted)


def main(rank: int, folder: Path) -> None:
    torch.set_num_threads(1)
    torch.hpu.init()
    dist.init_process_group(
        "cpu:gloo,hpu:hccl", store=dist.FileStore(str(folder / "store"), 2), rank=rank, world_size=2
    )
    seen = collectives(rank)
    seen["checkpoint"] = checkpointed(rank, folder / "checkpoint")
    for strategy in ("ddp", "fsdp"):
        for family in shapes.FAMILIES:
            cpu = trained(strategy, torch.device("cpu"), family)
            card = trained(strategy, torch.device("hpu", 0), family)
            seen[f"{strategy} {family}"] = shapes.different(cpu, card)
    bfloat16 = trained("fsdp", torch.device("hpu", 0), "llama", reduced=True)
    seen["fsdp bfloat16"] = all(bool(value.isfinite().all()) for value in bfloat16.values())
    (folder / f"seen-{rank}.json").write_text(json.dumps(seen))
    dist.barrier()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
