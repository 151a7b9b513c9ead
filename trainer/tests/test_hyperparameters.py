"""What is configured is what trains: a resumed run takes new hyperparameters, reports them, and says what changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
import torch
from conftest import QUIET
from forked import ForkedJob
from torch import nn
from torch.utils.data import TensorDataset
from torchdata.stateful_dataloader import StatefulDataLoader
from zygote import Client

from gaudi3_scale.checkpoint import GaudiCheckpoint, hyperparameters


def groups(job: ForkedJob, step: int) -> list[dict[str, Any]]:
    """Of the optimizer in a checkpoint."""
    found: list[dict[str, Any]] = job.state(step)["training"]["groups"][0]
    return found


def rates(job: ForkedJob) -> dict[int, float]:
    """That metrics.jsonl reports."""
    lines = [json.loads(line) for line in (job.node() / "metrics.jsonl").read_text().splitlines()]
    return {line["step"]: line["learning_rate"] for line in lines}


def test_a_resumed_job_trains_with_what_is_configured_now(warm: Client, text: Path, tmp_path: Path) -> None:
    job = ForkedJob(warm, tmp_path / "job", text)
    constant = ("train.log_every=1", "train.schedule=constant", "train.warmup_steps=0")
    job.fit("train.max_steps=6", *constant)
    new = ("train.learning_rate=1e-9", "train.weight_decay=0", "train.betas=[0.8,0.9]", "train.epsilon=1e-6")
    output = job.fit("train.max_steps=8", *constant, *new)
    assert (
        "resuming with train.learning_rate 1e-09 instead of 0.003, train.betas (0.8, 0.9) instead of (0.9, 0.95), "
        "train.epsilon 1e-06 instead of 1e-08, train.weight_decay 0.0 instead of 0.1\n"
    ) in output
    for group in groups(job, 8):
        assert group["lr"] == group["initial_lr"] == 1e-9
        assert group["weight_decay"] == 0 and tuple(group["betas"]) == (0.8, 0.9) and group["eps"] == 1e-6
    assert rates(job)[6] == 0.003 and rates(job)[7] == rates(job)[8] == 1e-9
    before, after = (job.state(step)["tensors"] for step in (6, 8))
    for name in before:
        if name.startswith("model."):
            assert torch.allclose(before[name], after[name], atol=1e-7), "a rate of 1e-9 moves nothing"


def test_the_schedule_goes_on_at_its_position(warm: Client, text: Path, tmp_path: Path) -> None:
    whole, parts = (ForkedJob(warm, tmp_path / name, text) for name in ("whole", "parts"))
    fall = ("train.log_every=1", "train.schedule=linear", "train.warmup_steps=2", "train.max_steps=10")
    whole.fit(*fall, "train.learning_rate=0.002")
    parts.fit(
        *fall,
        "train.learning_rate=0.001",
        code=1,
        environment={"POISON": "loss", "POISON_STEPS": "7", "POISON_RANK": "0"},
    )
    output = parts.fit(*fall, "train.learning_rate=0.002", "train.schedule=linear")
    assert "resuming with train.learning_rate 0.002 instead of 0.001\n" in output
    assert {step: rate for step, rate in rates(parts).items() if step > 5} == {
        step: rate for step, rate in rates(whole).items() if step > 5
    }
    assert json.dumps(parts.state(10)["scheduler"]) == '{"last_epoch": 10}'


class Module(pl.LightningModule):
    """A user's module with the optimizer and the schedule that a test asks for."""

    def __init__(self, kind: str, rate: float, **options: Any) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(4, 1)
        self.kind, self.rate, self.options = kind, rate, options
        self.rates: list[float] = []
        self.momenta: list[float] = []

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        group = self.trainer.optimizers[0].param_groups[0]
        self.rates.append(group["lr"])
        self.momenta.append(group["betas"][0])
        loss: torch.Tensor = self.layer(batch[0]).square().mean()
        return loss

    def configure_optimizers(self) -> Any:
        decay = self.options.get("weight_decay", 0.01)
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.rate, weight_decay=decay)
        if self.kind == "none":
            return optimizer
        schedulers = torch.optim.lr_scheduler
        made: Any = {
            "step": lambda: schedulers.StepLR(optimizer, 3, self.options.get("gamma", 0.5)),
            "cosine": lambda: schedulers.CosineAnnealingLR(optimizer, 20, 1e-4),
            "cycle": lambda: schedulers.OneCycleLR(optimizer, self.rate, total_steps=20),
        }[self.kind]()
        return [optimizer], [{"scheduler": made, "interval": "step"}]


def own(folder: Path, steps: int, kind: str, rate: float, **options: Any) -> Module:
    """Train with a Trainer of the user's, up to a step."""
    module = Module(kind, rate, **options)
    data = TensorDataset(torch.randn(80, 4, generator=torch.Generator().manual_seed(2)))
    loader = StatefulDataLoader(data, batch_size=4)
    trainer = pl.Trainer(
        accelerator="cpu",
        max_steps=steps,
        max_epochs=-1,
        callbacks=[GaudiCheckpoint(folder, every_n_steps=6)],
        **QUIET,
    )
    trainer.fit(module, loader)
    return module


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["none", "step", "cosine", "cycle"])
def test_ones_own_trainer_goes_on_with_the_new_rate(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As if the whole run had been made with it, as far as the schedule goes."""
    old, new = (own(tmp_path / name, 12, kind, rate) for name, rate in (("old", 0.01), ("new", 0.02)))
    own(tmp_path / "same", 6, kind, 0.01)
    same = own(tmp_path / "same", 12, kind, 0.01)
    assert same.rates == old.rates[6:] and same.momenta == old.momenta[6:], "nothing changed"
    assert "instead of" not in capsys.readouterr().err
    own(tmp_path / "changed", 6, kind, 0.01)
    changed = own(tmp_path / "changed", 12, kind, 0.02)
    assert changed.rates == pytest.approx(new.rates[6:]) and changed.momenta == pytest.approx(new.momenta[6:])
    assert "lr 0.02 instead of 0.01" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore")
def test_ones_own_trainer_takes_a_new_decay_and_a_new_schedule(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = own(tmp_path / "whole", 12, "step", 0.01, gamma=0.1)
    own(tmp_path / "changed", 6, "step", 0.01, gamma=0.5)
    changed = own(tmp_path / "changed", 12, "step", 0.01, gamma=0.1, weight_decay=0.5)
    assert changed.rates == pytest.approx(whole.rates[6:])
    said = capsys.readouterr().err
    assert "resuming with weight_decay 0.5 instead of 0.01, StepLR.gamma 0.1 instead of 0.5\n" in said
    assert changed.trainer.optimizers[0].param_groups[0]["weight_decay"] == 0.5


class CountingSGD(torch.optim.SGD):
    """Counts its steps in its groups, as Habana's AdamW does, and goes by the count."""

    def step(self, closure: Any = None) -> Any:
        for group in self.param_groups:
            group["step"] = group.get("step", 0) + 1
            with torch.no_grad():
                for parameter in group["params"]:
                    parameter.add_(1e-3 / group["step"])
        return super().step(closure)


@pytest.mark.filterwarnings("ignore")
def test_what_an_optimizer_counts_in_its_groups_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.optim, "AdamW", lambda weights, lr, weight_decay: CountingSGD(weights, lr, 0.9))
    monkeypatch.setattr(Module, "training_step", lambda self, batch, _: self.layer(batch[0]).square().mean())
    whole = own(tmp_path / "whole", 12, "none", 0.01)
    own(tmp_path / "parts", 6, "none", 0.01)
    parts = own(tmp_path / "parts", 12, "none", 0.01)
    assert parts.trainer.optimizers[0].param_groups[0]["step"] == 12
    assert torch.equal(parts.layer.weight, whole.layer.weight)


def plateau(rate: float, patience: int = 0) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.ReduceLROnPlateau]:
    """A rate that is halved whenever the loss does not fall."""
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(2))], lr=rate, momentum=0.9)
    return optimizer, torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=patience)


@pytest.mark.parametrize("known", [True, False], ids=["", "an older checkpoint"])
@pytest.mark.parametrize(("rate", "patience", "goes_on"), [(0.4, 0, 0.1), (0.8, 0, 0.2), (0.4, 3, 0.1)])
def test_a_rate_that_was_reduced_stays_reduced(rate: float, patience: int, goes_on: float, known: bool) -> None:
    optimizer, scheduler = plateau(0.4)
    before = hyperparameters.configured([optimizer], [scheduler])
    for loss in (1.0, 1.0, 1.0):
        scheduler.step(loss)
    optimizer.param_groups[0]["momentum"] = 0.5  # as a user's callback may
    saved = hyperparameters.configured([optimizer], [scheduler])
    fresh, again = plateau(rate, patience)
    now = hyperparameters.configured([fresh], [again])
    changes = hyperparameters.resume([fresh], [again], now, before if known else None, saved)
    group = fresh.param_groups[0]
    if known:
        assert group["lr"] == pytest.approx(goes_on) and group["momentum"] == 0.5
        new = [f"lr {rate} instead of 0.4"] * (rate != 0.4)
        assert changes == new + [f"ReduceLROnPlateau.patience {patience} instead of 0"] * (patience != 0)
        assert again.best == 1.0 and again.patience == patience
    else:  # nobody knows how its run was configured: what is configured now counts
        assert group["lr"] == rate and group["momentum"] == 0.9
        assert changes == [f"lr {rate} instead of 0.1", "momentum 0.9 instead of 0.5"]
