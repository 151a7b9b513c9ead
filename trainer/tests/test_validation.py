"""The loss on held-out samples: batches of one shape, whatever the number of samples and ranks."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gaudi3_scale.callbacks.warm_up_callback import WarmUpCallback
from gaudi3_scale.config import load
from gaudi3_scale.data import Samples, collect
from gaudi3_scale.hpu.device import Device
from gaudi3_scale.models.build import build
from gaudi3_scale.run import JobPlan
from gaudi3_scale.step import validation
from gaudi3_scale.step.module import LanguageModule

CPU = Device("cpu", 0, "gloo")
SMALL = ("model.hidden_size=16", "model.layers=1", "model.intermediate_size=32", "model.sequence_length=16")


@pytest.fixture
def config(tmp_path: Path, text: Path) -> Any:
    settings = [f"output_dir={tmp_path}", f"data.source={text}", "data.validation_samples=11"]
    return load(None, [*SMALL, *settings, "train.micro_batch_size=4"])


def test_every_batch_of_an_evaluation_has_one_shape(
    config: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = Samples(collect(config.data, tmp_path / "data"), config.data, 16, 1)
    model = build(config.model)
    held_out = samples.fetch(samples.order.validation(11))
    assert len(held_out) == 11
    original, shapes = validation.sample_loss, []

    def recorded(model: Any, batch: Any, *more: Any) -> Any:
        shapes.append((batch.shape[0], batch.shape[-1] - (batch.ndim == 2)))  # what the model is called with
        return original(model, batch, *more)

    monkeypatch.setattr(validation, "sample_loss", recorded)
    sums: list[torch.Tensor] = []

    def kept(totals: torch.Tensor) -> torch.Tensor:
        sums.append(totals)
        return totals

    for rank in range(3):
        process_group: Any = SimpleNamespace(topology=SimpleNamespace(rank=rank, world_size=3), sum=kept)
        validation.validate(model, samples, config, CPU, process_group)
    assert set(shapes) == {(4, 16)} and len(shapes) == 3
    total, count = torch.stack(sums).sum(0).tolist()
    assert count == 11
    with torch.no_grad():
        assert total / count == pytest.approx(original(model.eval(), held_out).item(), rel=1e-6)


@pytest.mark.parametrize(("strategy", "passes"), [("habana_ddp", 2), ("habana_fsdp", 0)])
def test_only_gradient_buckets_are_settled_before_the_first_step(config: Any, strategy: str, passes: int) -> None:
    config = config.model_copy(update={"train": config.train.model_copy(update={"strategy": strategy})})
    module, calls = LanguageModule(config, CPU), []

    def training_step(samples: Any, index: int) -> Any:
        calls.append(samples.shape)
        return module.training_step(samples, index)

    trainer: Any = SimpleNamespace(strategy=SimpleNamespace(training_step=training_step))
    run: Any = SimpleNamespace(config=config, plan=JobPlan.of(config), device=CPU, world_size=2, rank=0)
    WarmUpCallback(run, None).on_train_start(trainer, module)
    assert len(calls) == passes
