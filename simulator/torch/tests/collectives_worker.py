"""One of two processes that try what HCCL allows, refuses and ignores. The second ends in the midst of it."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import habana_frameworks.torch.distributed.hccl  # noqa: F401

TIMEOUT = 2.0
"""Seconds that the group is given, and that Work.wait is given at most."""


def refused(action: Callable[[], Any]) -> str:
    try:
        action()
    except RuntimeError as error:
        return str(error).splitlines()[0]
    return ""


def numbers(*shape: int, start: float = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    values = torch.arange(start, start + torch.Size(shape).numel(), dtype=torch.float32)
    return values.reshape(shape).to(dtype).to("hpu")


def gathered(rank: int, shape: tuple[int, ...], whole: tuple[int, ...], dtype: torch.dtype) -> list[float]:
    output = torch.empty(whole, dtype=dtype, device="hpu")
    work = dist.all_gather_into_tensor(output, numbers(*shape, start=rank * 100, dtype=dtype), async_op=True)
    [result] = work.get_future().wait()
    assert result.shape == whole == output.shape
    return output.flatten().tolist()


def scattered(whole: tuple[int, ...], shape: tuple[int, ...], dtype: torch.dtype) -> list[float]:
    output = torch.empty(shape, dtype=dtype, device="hpu")
    dist.reduce_scatter_tensor(output, numbers(*whole, dtype=dtype))
    return output.flatten().tolist()


def shapes(rank: int) -> dict[str, Any]:
    return {
        "gathered": {
            f"{shape} to {whole} of {dtype}": gathered(rank, shape, whole, dtype)
            for shape, whole, dtype in (
                ((3, 4), (24,), torch.float32),
                ((3, 4), (2, 3, 4), torch.bfloat16),
                ((), (2,), torch.float32),
                ((5, 2), (4, 5), torch.int64),
            )
        },
        "scattered": {
            f"{whole} to {shape} of {dtype}": scattered(whole, shape, dtype)
            for whole, shape, dtype in (
                ((24,), (3, 4), torch.float32),
                ((2, 3, 4), (3, 4), torch.bfloat16),
                ((2, 3), (3, 1), torch.int32),
            )
        },
        "several": several(rank),
        "listed": listed(rank),
        "unequal": unequal(rank),
        "exchanged": exchanged(rank),
        "sizes": [
            refused(lambda: dist.all_gather_into_tensor(torch.empty(7, device="hpu"), numbers(3))),
            refused(lambda: dist.reduce_scatter_tensor(torch.empty(3, device="hpu"), numbers(7))),
            refused(lambda: dist.all_gather_into_tensor(torch.empty(6, device="hpu"), numbers(3).long())),
        ],
    }


def several(rank: int) -> list[list[float]]:
    outputs = [torch.empty(2, 3, device="hpu"), torch.empty(4, device="hpu")]
    group = dist.group.WORLD
    group.allgather_into_tensor_coalesced(outputs, [numbers(3, start=rank * 10), numbers(2, 1, start=rank)]).wait()
    return [output.flatten().tolist() for output in outputs]


def listed(rank: int) -> list[list[float]]:
    parts = [torch.empty(2, 2, device="hpu"), torch.empty(4, device="hpu")[:4].view(2, 2)]
    dist.all_gather(parts, numbers(2, 2, start=rank * 10))
    return [part.flatten().tolist() for part in parts]


def unequal(rank: int) -> list[list[float]]:
    parts = [torch.empty(1, device="hpu"), torch.empty(2, 2, device="hpu")]
    dist.all_gather(parts, numbers(1, start=7) if rank == 0 else numbers(2, 2))
    return [part.flatten().tolist() for part in parts]


def exchanged(rank: int) -> list[list[float]]:
    parts = [torch.empty(2, 1, device="hpu") for _ in range(2)]
    dist.all_to_all(parts, [numbers(2, 1, start=10 * rank), numbers(2, 1, start=10 * rank + 5)])
    whole = torch.empty(2, 2, device="hpu")
    dist.all_to_all_single(whole, numbers(4, start=10 * rank))
    return [*(part.flatten().tolist() for part in parts), whole.flatten().tolist()]


def refusals() -> dict[str, str]:
    group = dist.group.WORLD
    return {
        **{
            name: refused(lambda name=name: dist.all_reduce(numbers(4).int(), op=getattr(dist.ReduceOp, name)))
            for name in ("BAND", "BOR", "BXOR", "AVG")
        },
        "int16": refused(lambda: dist.all_reduce(numbers(4).short())),
        "complex64": refused(lambda: group.broadcast(numbers(2).to(torch.complex64), 0).wait()),
        "any source": refused(lambda: group.recv_anysource([numbers(2)], 0)),
        "coalesced lists": refused(lambda: group.allgather_coalesced([[numbers(2), numbers(2)]], [numbers(2)])),
    }


def reductions() -> dict[str, Any]:
    """Sums of what float32 holds and of what it does not."""
    whole = torch.tensor([2**24, 3, -5], device="hpu")
    whole[0] += dist.get_rank()  # 2^25 + 1 in all
    sums: dict[str, Any] = {}
    for dtype in (torch.int64, torch.int32, torch.float64):
        values = whole.clone().to(dtype)
        dist.all_reduce(values)
        sums[str(dtype)] = (str(values.dtype), values.tolist())
    part = torch.empty(1, dtype=torch.int64, device="hpu")
    dist.reduce_scatter_tensor(part, whole[:1].repeat(2))
    sums["scattered"] = part.tolist()
    return sums


def coalesced(rank: int) -> dict[str, Any]:
    from torch.distributed.distributed_c10d import _coalescing_manager

    device = torch.device("hpu")
    first, second = numbers(2, start=rank), numbers(3, start=rank)
    with _coalescing_manager(device=device):
        dist.all_reduce(first)
        dist.all_reduce(second)
    outputs = [torch.empty(2, 2, device="hpu"), torch.empty(6, device="hpu")]
    with _coalescing_manager(device=device, async_ops=True) as manager:
        dist.all_gather_into_tensor(outputs[0], numbers(2, start=rank))
        dist.all_gather_into_tensor(outputs[1], numbers(3, start=rank))
    manager.wait()
    # What has no joint form goes one by one between the back end's own start and end.
    group = dist.group.WORLD
    given = numbers(2, start=10 * rank)
    group._start_coalescing(device)
    nested = refused(lambda: group._start_coalescing(device))
    group.broadcast(given, 1)
    work = group._end_coalescing(device)
    work.wait()
    return {
        "sums": [first.tolist(), second.tolist()],
        "gathered": [output.flatten().tolist() for output in outputs],
        "broadcast": given.tolist(),
        "nested": nested,
        "unstarted": refused(lambda: group._end_coalescing(device)),
    }


def late(rank: int) -> dict[str, Any]:
    """Rank 1 comes later than the group's time and than the time that its partner waits."""
    seen = {}
    values = numbers(2)
    for name in ("group", "wait"):
        dist.barrier()
        if rank == 1:
            time.sleep(TIMEOUT * 1.5)
        started = time.monotonic()
        if name == "group":
            seen[name] = refused(lambda: dist.all_reduce(values))
        else:
            work = dist.all_reduce(values, async_op=True)
            seen[name] = refused(partial(work.wait, timedelta(seconds=0.5)))
            dist.distributed_c10d._set_pg_timeout(timedelta(seconds=0.5))
        seen[f"{name} took"] = time.monotonic() - started
    return {**seen, "values": values.tolist()}


def lost(rank: int) -> dict[str, Any]:
    """Rank 1 ends without a word."""
    dist.barrier()
    if rank == 1:
        os._exit(0)
    return {
        "all_reduce": refused(lambda: dist.all_reduce(numbers(2))),
        "recv": refused(lambda: dist.recv(numbers(2), 1)),
        "future": refused(lambda: dist.all_reduce(numbers(2), async_op=True).get_future().wait()),
    }


def main(rank: int, folder: Path) -> None:
    torch.set_num_threads(1)
    dist.init_process_group(
        "cpu:gloo,hpu:hccl", store=dist.FileStore(str(folder / "store"), 2), rank=rank, world_size=2,
        timeout=timedelta(seconds=TIMEOUT) if len(sys.argv) > 3 else None,
    )  # fmt: skip
    seen: dict[str, Any] = {}

    def part(name: str, what: Callable[[], Any]) -> None:
        try:
            seen[name] = what()
        except Exception as error:  # the other parts count too
            seen[name] = {"failed": f"{type(error).__name__}: {error}"}
        (folder / f"seen-{rank}.json").write_text(json.dumps(seen))

    if len(sys.argv) > 3:
        part("late", lambda: late(rank))
        part("lost", lambda: lost(rank))
        os._exit(0)
    for name in (shapes, coalesced):
        part(name.__name__, lambda name=name: name(rank))
    for name in (refusals, reductions):
        part(name.__name__, name)
    dist.barrier()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
