"""Probes of several processes, one on each card."""

from __future__ import annotations

import importlib
import os
import signal
import time
from functools import partial
from typing import Any

from .base import Card, load, sleep_while_watched


def start(settings: dict[str, Any]) -> Card:
    """Take the card of this rank, and meet the others."""
    card = load(settings, first="distributed.hccl")  # its import chooses the card
    started = time.monotonic()
    card.torch.distributed.init_process_group("hccl")
    card.identity["met_in_seconds"] = round(time.monotonic() - started, 3)
    return card


def collective(card: Card) -> dict[str, Any]:
    """Whether an all-reduce sums, and how long the first and larger ones take."""
    torch, dist = card.torch, card.torch.distributed
    rank, size = dist.get_rank(), dist.get_world_size()
    values = torch.full((1024,), float(rank + 1), device=card.device)
    free = card.free()
    first = card.seconds(lambda: dist.all_reduce(values))
    expected = size * (size + 1) / 2
    wrong = int((values.cpu() != expected).sum())
    times = {}
    for elements in (1 << 10, 1 << 20, 1 << 26):
        count = card.size(elements)
        tensor = torch.ones(count, device=card.device)
        times[str(count * 4)] = card.best(partial(dist.all_reduce, tensor), 5)
    return {
        "rank": rank,
        "world_size": size,
        "wrong": wrong,
        "first_seconds": first,
        "seconds_by_bytes": times,
        "free_bytes": {"before": free, "after": card.free()},
    }


def sharded(card: Card) -> dict[str, Any]:
    """Losses of three steps with parameters sharded (FSDP2) and with copies (DDP), from the same start."""
    found = {name: _losses(card, name) for name in ("ddp", "fsdp")}
    worst = max(abs(a - b) for a, b in zip(found["ddp"]["losses"], found["fsdp"]["losses"]))
    return {**found, "largest_difference": worst}


def compiled_sharded(card: Card) -> dict[str, Any]:
    """Three sharded steps with each block compiled with hpu_backend, as a module and by its forward; numbers of graphs.

    In torch 2.13 on CPUs, FSDP2's hooks leave a block that is compiled as a module without any graph.
    """
    dynamo = importlib.import_module("torch._dynamo")
    counters = importlib.import_module("torch._dynamo.utils").counters
    found = {}
    for form in ("module", "forward"):
        dynamo.reset()
        counters.clear()
        found[form] = _losses(card, "fsdp", form)
        found[form]["graphs"] = dict(counters["stats"])
    return found


def killed_peer(card: Card) -> dict[str, Any]:
    """What a collective says, and when, after its peer was killed."""
    return _without_peer(card, lambda: os.kill(os.getpid(), signal.SIGKILL))


def stopped_peer(card: Card) -> dict[str, Any]:
    """What a collective says, and when, while its peer does not take part; the one that starts this ends it."""
    return _without_peer(card, sleep_while_watched)


def _without_peer(card: Card, leave: Any) -> dict[str, Any]:
    dist = card.torch.distributed
    values = card.torch.ones(1 << 16, device=card.device)
    dist.all_reduce(values)
    card.wait()
    if dist.get_rank() == 1:
        leave()
    time.sleep(1)
    started = time.monotonic()
    try:
        dist.all_reduce(values)
        card.wait()
        said = f"no error, sum {float(values[0].cpu()):g}"
    except Exception as error:  # what a collective without its peer says is what this probe is for
        said = f"{type(error).__name__}: {error}"
    return {"said": said[:3000], "after_seconds": round(time.monotonic() - started, 2)}


def _losses(card: Card, kind: str, compiled: str = "") -> dict[str, Any]:
    torch = card.torch
    width = card.size(1024, 32)
    torch.manual_seed(5)
    blocks = [torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.GELU()) for _ in range(3)]
    model = torch.nn.Sequential(*blocks).to(card.device)
    if kind == "ddp":
        model = torch.nn.parallel.DistributedDataParallel(model)
    else:
        fully_shard = importlib.import_module("torch.distributed.fsdp").fully_shard
        mesh = importlib.import_module("torch.distributed.device_mesh").init_device_mesh(
            "hpu", (torch.distributed.get_world_size(),)
        )
        for part in model if compiled else ():
            if compiled == "module":
                part.compile(backend="hpu_backend")
            else:
                part.forward = torch.compile(part.forward, backend="hpu_backend")
        for part in (*model, model):
            # HCCL has no average; the same sum on every card makes the same gradients.
            fully_shard(part, mesh=mesh).set_force_sum_reduction_for_comms(True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(6 + torch.distributed.get_rank())
    batch = torch.randn(8, width, generator=generator).to(card.device)
    losses, seconds = [], []
    for _ in range(3):
        started = time.perf_counter()
        loss = (model(batch) - batch).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss.detach().cpu()))
        seconds.append(round(time.perf_counter() - started, 4))
    return {"losses": losses, "seconds": seconds}
