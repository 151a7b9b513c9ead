"""What the ranks of the tests of OptimizedDDP do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from gaudi3_scale.hangs import ring
from gaudi3_scale.hangs.start import begin
from gaudi3_scale.integration.ddp.compression import Compression, Reduction

SPIKE, SMALL, ORDERS = 100.0, 0.01, 512
"""One coordinate has a gradient of +-SPIKE on the two ranks, which cancels; the others one of SMALL on average."""


def averaged(rank: int, compression: Compression) -> dict[str, Any]:
    """Means of the same random gradients by the hook, and plainly; what is owed, and what a NaN does."""
    made = _Given(3000)
    model = DistributedDataParallel(made, bucket_cap_mb=0.004)
    reduction = Reduction(compression, rank=2)
    reduction.register(model)
    steps = [torch.randn(3000, generator=torch.Generator().manual_seed(10 * n + rank)) for n in range(8)]
    plain = _reduced(model, reduction, steps[:2], False)
    compressed = _reduced(model, reduction, steps[2:], True)
    paid = _reduced(model, reduction, [torch.zeros(3000)], False)
    nothing = _reduced(model, reduction, [torch.zeros(3000)], False)
    bad = steps[0].clone()
    bad[5 if rank == 0 else 6] = float("nan")
    spoilt = _reduced(model, reduction, [bad], True)
    after = _reduced(model, reduction, steps[:1], True)
    return {"plain": plain, "compressed": compressed, "paid": paid, "nothing": nothing, "bad": spoilt, "after": after}


class _Given(nn.Module):
    """Its gradient is its input."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.parts = nn.ParameterList(nn.Parameter(torch.zeros(30, size // 60)) for _ in range(2))

    def forward(self, gradient: Tensor) -> Tensor:
        halves = gradient.chunk(2)
        return sum((p * half.view_as(p)).sum() for p, half in zip(self.parts, halves, strict=True))  # type: ignore


def _reduced(model: nn.Module, reduction: Reduction, gradients: list[Tensor], compressing: bool) -> list[Tensor]:
    results = []
    for gradient in gradients:
        model.zero_grad()
        reduction.compressing = compressing
        model(gradient).backward()
        results.append(torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]))
    return results


def descended(rank: int, error_feedback: bool, steps: int) -> float:
    """Distance from the minimum that is left, as a share of that at the start, where rounding hides every gradient."""
    weights = nn.Parameter(torch.ones(ORDERS))
    reduction = Reduction("int8", error_feedback=error_feedback)
    model = DistributedDataParallel(_Held(weights))
    reduction.register(model)
    optimizer = torch.optim.SGD([weights], lr=1.0)
    spike = torch.zeros(ORDERS)
    spike[::256] = SPIKE if rank == 0 else -SPIKE
    for step in range(steps + 2):
        optimizer.zero_grad()
        reduction.compressing = step >= 2
        model(spike).backward()
        if step >= 2:
            optimizer.step()
    return float((weights[1:256].norm() / torch.ones(255).norm()).item())


class _Held(nn.Module):
    def __init__(self, weights: nn.Parameter) -> None:
        super().__init__()
        self.weights = weights

    def forward(self, spike: Tensor) -> Tensor:
        return SMALL * self.weights.square().sum() / 2 + (spike * self.weights).sum()


def trained(rank: int, folder: str, options: dict[str, Any], steps: int, accumulate: list[int]) -> dict[str, Any]:
    """Weights, sentences and random state after a GaudiTrainer with OptimizedDDP has made steps."""
    import lightning.pytorch as pl
    from lightning.fabric.plugins.environments import TorchElasticEnvironment

    from gaudi3_scale import GaudiTrainer
    from gaudi3_scale.distributed import OptimizedDDP

    size = dist.get_world_size()
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(size), LOCAL_WORLD_SIZE=str(size))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="1", TORCHELASTIC_RUN_ID="x", GROUP_RANK="0")

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.net = nn.Sequential(nn.Linear(8, 1200), nn.Tanh(), nn.Linear(1200, 1200), nn.Linear(1200, 1))

        def training_step(self, batch: Tensor, batch_idx: int) -> Tensor:
            loss: Tensor = (self.net(batch) - batch.sum(1, keepdim=True)).pow(2).mean()
            return loss

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters(), lr=1e-4)

    total, before = sum(accumulate), sum(accumulate[:rank])
    batches = [torch.randn(4, 8, generator=torch.Generator().manual_seed(n)) for n in range(total * steps)]
    mine = [b for n, b in enumerate(batches) if before <= n % total < before + accumulate[rank]]
    said: list[str] = []
    strategy = OptimizedDDP(**options, folder=folder or None, log=said.append, rows=4)
    module = Module()
    trainer = GaudiTrainer(
        "cpu", strategy=strategy, devices=size, plugins=[TorchElasticEnvironment()], max_steps=steps, max_epochs=1,
        accumulate_grad_batches=accumulate[rank], logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, use_distributed_sampler=False,
    )  # fmt: skip
    torch.manual_seed(5)
    trainer.fit(module, torch.utils.data.DataLoader(mine, batch_size=None))
    weights = torch.cat([p.detach().flatten() for p in module.parameters()])
    return {"weights": weights, "said": said, "random": torch.get_rng_state(), "verdict": strategy.verdict}


def all_of(rank: int, folder: str) -> None:
    """Everything that the ordinary tests look at, in one pair of processes; into found-RANK.pt."""
    results: dict[str, Any] = {name: averaged(rank, name) for name in ("int8", "powersgd")}  # type: ignore[arg-type]
    results["with feedback"], results["without"] = (descended(rank, feedback, 120) for feedback in (True, False))
    even = [2, 2]
    os.environ[ring.FOLDER] = folder
    begin(rank, 2, 2)
    results["fixed"] = trained(rank, "", {"bucket_cap_mb": 25}, 4, even)
    noted = ring.read(Path(folder) / f"{rank}.ring")
    results["gradients"] = (
        []
        if noted is None
        else [(each.shape, each.state) for each in noted.entries if each.operation == ring.OPERATIONS[ring.GRADIENTS]]
    )
    results["measured"] = trained(rank, folder, {}, 4, even)
    results["again"] = trained(rank, folder, {}, 1, even)
    results["uneven"] = trained(rank, "", {"bucket_cap_mb": 25, "balance": [3, 1]}, 4, [3, 1])
    results["tried"] = trained(rank, "", {"bucket_cap_mb": 25, "compression": "int8"}, 20, [1, 1])
    torch.save(results, f"{folder}/found-{rank}.pt")
