"""A run whose loss or gradients are not finite: it stops in a sentence, and none of it is in a checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import objects
import pytest
import ranks
import torch
from conftest import QUIET
from forked import ForkedJob
from torch import nn
from torch.utils.data import DataLoader
from zygote import Client

from gaudi3_scale.checkpoint import GaudiCheckpoint
from gaudi3_scale.errors import TrainerError
from gaudi3_scale.finite import FiniteSteps, gradient_norm, is_state_finite

DIVERGES = ("train.learning_rate=1e30", "train.gradient_clip=0", "train.max_steps=20", "train.log_every=10")


def assert_finite(job: ForkedJob) -> None:
    """All tensors of all committed checkpoints."""
    for step in job.steps():
        for name, tensor in job.state(step)["tensors"].items():
            assert torch.isfinite(tensor).all(), f"{name} in step {step}"


def poison(kind: str, *steps: int, rank: int = 0) -> dict[str, str]:
    """For `ForkedJob.fit`; see nan_job.py."""
    return {"POISON": kind, "POISON_STEPS": ",".join(map(str, steps)), "POISON_RANK": str(rank)}


def test_a_run_that_diverges_fails_and_its_good_checkpoints_stay(warm: Client, text: Path, tmp_path: Path) -> None:
    job = ForkedJob(warm, tmp_path / "job", text)
    job.fit("train.max_steps=10")
    assert job.steps() == [5, 10]
    output = job.fit(*DIVERGES, code=1)
    status = job.status()
    assert status["state"] == "failed"
    assert status["error"].startswith("The loss or the gradient norm of step 1")
    assert output.splitlines()[-1] == f"gaudi3-train: {status['error']}"
    assert job.steps() == [5, 10]
    assert_finite(job)
    assert "resuming from step 10" in job.fit("train.max_steps=20"), "it goes on from before, with a sane rate"
    assert job.status()["state"] == "finished"


def test_the_sentence_names_the_step_and_what_to_do(warm: Client, text: Path, tmp_path: Path) -> None:
    job = ForkedJob(warm, tmp_path / "job", text)
    output = job.fit("train.max_steps=20", "train.log_every=10", code=1, environment=poison("loss", 8))
    assert output.splitlines()[-1] == (
        "gaudi3-train: The loss or the gradient norm of step 8 is not finite: no checkpoint has that step, and started "
        "again, the job resumes from its newest checkpoint: lower train.learning_rate, lengthen train.warmup_steps or "
        "tighten train.gradient_clip, or set train.on_non_finite to skip to leave out single steps."
    )
    assert job.status()["error"] in output and job.status()["state"] == "failed"
    assert job.steps() == [5]


def test_a_state_that_is_not_finite_is_never_saved(warm: Client, text: Path, tmp_path: Path) -> None:
    """The last step's loss and gradients were finite; only its update was not."""
    job = ForkedJob(warm, tmp_path / "job", text)
    job.fit("train.max_steps=10", code=1, environment=poison("weights", 10))
    assert job.status()["error"].startswith("The weights or the optimizer's state are not finite after step 10")
    assert job.steps() == [5]


@pytest.mark.parametrize("strategy", ["habana_ddp", "habana_fsdp"])
@pytest.mark.parametrize("kind", ["loss", "report", "weights"])
def test_all_ranks_stop_at_what_one_has(kind: str, strategy: str, warm: Client, text: Path, tmp_path: Path) -> None:
    job = ForkedJob(warm, tmp_path / "job", text, processes=2)
    settings = ("train.max_steps=20", "train.log_every=20", "train.micro_batch_size=6", f"train.strategy={strategy}")
    output = job.fit(*settings, code=1, environment=poison(kind, 8, rank=1))
    assert "lost contact" not in output and "Traceback" not in output.replace("Traceback : To enable", "")
    error = job.status()["error"]
    # The weight is that of a byte that the text does not have: no loss shows it.
    wanted = "weights or the optimizer's state are not finite after step 10"
    assert error.startswith(
        f"The {wanted if kind == 'weights' else 'loss or the gradient norm of step 8 is not finite'}"
    )
    assert job.steps() == [5]
    assert_finite(job)


@pytest.mark.parametrize("kind", ["loss", "weights"])
def test_a_job_that_is_told_to_leave_saves_no_bad_state(kind: str, warm: Client, text: Path, tmp_path: Path) -> None:
    job = ForkedJob(warm, tmp_path / "job", text)
    environment = {**poison(kind, 8), "POISON_LEAVE": "9"}
    job.fit("train.max_steps=500", "train.log_every=500", "checkpoint.every=500", code=1, environment=environment)
    assert job.status()["state"] == "failed" and "not finite" in job.status()["error"]
    assert job.steps() == []


def lines(job: ForkedJob) -> list[dict[str, Any]]:
    """Of metrics.jsonl."""
    return [json.loads(line) for line in (job.node() / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("kind", ["loss", "report"])
def test_single_steps_can_be_skipped(kind: str, processes: int, warm: Client, text: Path, tmp_path: Path) -> None:
    job = ForkedJob(warm, tmp_path / "job", text, processes=processes)
    settings = ("train.max_steps=20", "train.log_every=1", "train.on_non_finite=skip", "checkpoint.keep=9")
    settings += (f"train.micro_batch_size={12 // processes}",)
    output = job.fit(*settings, environment=poison(kind, 5, 8, rank=processes - 1))
    assert "step 8 is skipped" in output
    assert job.status()["state"] == "finished" and job.status()["skipped_steps"] == 2
    assert_finite(job)
    seen = lines(job)
    assert [line["step"] for line in seen if line["loss"] is None] == [5, 8]
    assert all(line["gradient_norm"] > 0 for line in seen if line["step"] not in (5, 8))
    before, after = (job.state(step)["tensors"] for step in (5, 10))
    steps = {float(t) for name, t in before.items() if name.endswith(".step")}
    assert steps == {4.0}, "the optimizer made no step"
    assert any(not torch.equal(before[name], after[name]) for name in before if name.startswith("model."))


def test_skipping_has_an_end(warm: Client, text: Path, tmp_path: Path) -> None:
    job = ForkedJob(warm, tmp_path / "job", text)
    settings = ("train.max_steps=40", "train.on_non_finite=skip", "train.max_skipped_steps=3")
    job.fit(*settings, code=1, environment=poison("loss", *range(7, 40)))
    assert job.status()["error"].startswith("4 steps in a row, 7 to 10, had a loss or a gradient norm that is not fin")
    assert job.steps() == [5]


def test_the_gradient_norm_is_published(warm: Client, text: Path, tmp_path: Path) -> None:
    clipped, free = (ForkedJob(warm, tmp_path / name, text) for name in ("clipped", "free"))
    clipped.fit("train.max_steps=3", "train.warmup_steps=3", "train.log_every=1", "train.gradient_clip=1e9")
    free.fit("train.max_steps=3", "train.warmup_steps=3", "train.log_every=1", "train.gradient_clip=0")
    norms = [line["gradient_norm"] for line in lines(clipped)]
    assert len(norms) == 3 and all(norm > 0 for norm in norms)
    assert norms == pytest.approx([line["gradient_norm"] for line in lines(free)])
    assert clipped.status()["gradient_norm"] == norms[-1]


def test_noting_a_step_reads_nothing_from_the_device() -> None:
    """A tensor on `meta` has no value to be read: `item()` and conditions on it raise."""
    device = torch.device("meta")
    parameter = nn.Parameter(torch.empty(4, 4, device=device))
    parameter.grad = torch.empty(4, 4, device=device)
    steps = FiniteSteps(device)
    for clip in (0.0, 1.0):
        steps.note(gradient_norm([parameter], clip))
    with pytest.raises(RuntimeError, match="meta"):
        steps.finite.item()


@pytest.mark.parametrize("bad", ["nan", "inf"])
@pytest.mark.parametrize("where", ["weight", "state"])
def test_a_large_state_is_finite_and_an_infinite_one_is_not(where: str, bad: str) -> None:
    weight = nn.Parameter(torch.full((4,), 1e30))  # whose sum of squares is not
    optimizer = torch.optim.AdamW([weight])
    assert is_state_finite([optimizer]) == 1, "before the first step"
    weight.grad = torch.ones(4)
    optimizer.step()
    assert is_state_finite([optimizer]) == 1 and is_state_finite([]) == 1
    (weight.data if where == "weight" else optimizer.state[weight]["exp_avg"])[2] = float(bad)
    assert is_state_finite([optimizer]) == 0


class Diverges(pl.LightningModule):
    """A user's module; its loss, or its weights only, become NaN."""

    def __init__(self, at: int, weights: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(4, 1)
        self.register_buffer("mask", torch.full((2, 2), float("-inf")))
        self.at, self.weights = at, weights

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        loss: torch.Tensor = self.layer(batch).square().mean()
        return loss * float("nan") if self.global_step + 1 == self.at and not self.weights else loss

    def on_train_batch_end(self, *arguments: Any) -> None:
        if self.global_step == self.at and self.weights:
            with torch.no_grad():
                self.layer.weight[0, 0] = float("nan")

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=0.01)


class Spoils(pl.Callback):
    """Before GaudiCheckpoint, as a user's callback could."""

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule, *arguments: Any) -> None:
        assert isinstance(pl_module, Diverges)
        pl_module.on_train_batch_end()


def own_fit(folder: Path, at: int, weights: bool, **options: Any) -> GaudiCheckpoint:
    """Twenty steps of a user's Trainer."""
    checkpoint = GaudiCheckpoint(folder, every_n_steps=4, asynchronous=False, **options)
    trainer = pl.Trainer(
        accelerator="cpu",
        max_steps=20,
        max_epochs=-1,
        callbacks=[Spoils(), checkpoint],
        **QUIET,
    )
    trainer.fit(Diverges(at, weights), DataLoader(torch.ones(80, 4), batch_size=4))
    return checkpoint


def saved(folder: Path) -> list[int]:
    """Steps of the checkpoints."""
    return sorted(int(path.name.removeprefix("step-")) for path in folder.glob("step-*"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("weights", [False, True], ids=["loss", "weights"])
def test_ones_own_trainer_stops_too(weights: bool, tmp_path: Path) -> None:
    with pytest.raises(
        TrainerError, match=r"^The (loss of|weights or the optimizer's state are not finite after) step "
    ):
        own_fit(tmp_path, at=10, weights=weights)
    assert saved(tmp_path) == [4, 8]


@pytest.mark.filterwarnings("ignore")
def test_the_check_of_ones_own_trainer_can_be_switched_off(tmp_path: Path) -> None:
    own_fit(tmp_path, at=10, weights=True, check_finite=False)
    assert saved(tmp_path) == [16, 20]


def two_ranks(rank: int, folder: Path) -> str:
    """A user's DDP; the loss of rank 1 is NaN in its report only."""
    import os
    import warnings

    warnings.simplefilter("ignore")
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", LOCAL_WORLD_SIZE="2", GROUP_RANK="0")
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="1")
    from lightning.fabric.plugins.environments import TorchElasticEnvironment
    from lightning.pytorch.strategies import DDPStrategy

    class Reports(Diverges):
        """Its gradients are fine."""

        def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
            loss: torch.Tensor = self.layer(batch).square().mean()
            return loss + float("nan") if self.global_step + 1 == self.at and rank == 1 else loss

    objects.allow()  # Lightning's own strategy broadcasts with them
    checkpoint = GaudiCheckpoint(folder, every_n_steps=4)
    trainer = pl.Trainer(
        accelerator="cpu",
        devices=2,
        strategy=DDPStrategy(process_group_backend="gloo"),
        plugins=[TorchElasticEnvironment()],
        max_steps=12,
        max_epochs=-1,
        callbacks=[checkpoint],
        **QUIET,
        use_distributed_sampler=False,
    )
    try:
        trainer.fit(Reports(6, False), DataLoader(torch.ones(80, 4), batch_size=4))
    except TrainerError as error:
        return str(error)
    return "finished"


def test_all_ranks_of_ones_own_trainer_stop_together(tmp_path: Path) -> None:
    first, second = ranks.run(2, tmp_path, two_ranks, tmp_path / "checkpoints")
    assert first == second and first.startswith("The loss of step 6 is not finite on rank 1")
    assert saved(tmp_path / "checkpoints") == [4]
