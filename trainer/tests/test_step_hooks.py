"""What Lightning calls in a step of a job: the hooks that somebody wrote, and those of the module that are needed."""

from __future__ import annotations

import lightning.pytorch as pl
import pytest
import torch
from lightning.pytorch.demos.boring_classes import BoringModel

from gaudi3_scale.integration.strategies import GaudiSingleStrategy
from gaudi3_scale.job.trainer import STEP_HOOKS, leave_out_empty_hooks


class Counting(pl.Callback):
    def __init__(self) -> None:
        self.steps = 0

    def on_before_optimizer_step(self, *given: object) -> None:
        self.steps += 1


def fit(strategy: GaudiSingleStrategy, module: pl.LightningModule, callbacks: list[pl.Callback], folder: str) -> None:
    trainer = pl.Trainer(
        strategy=strategy, callbacks=callbacks, max_steps=3, default_root_dir=folder, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, limit_val_batches=0,
    )  # fmt: skip
    trainer.fit(module)


@pytest.mark.filterwarnings("ignore")
def test_a_hook_that_is_written_is_called_and_one_that_is_not_is_left_out(tmp_path: object) -> None:
    written = Counting()
    leave_out_empty_hooks([written])
    left_out = [hook for hook in STEP_HOOKS if getattr(written, hook) is None]
    assert left_out == [hook for hook in STEP_HOOKS if hook != "on_before_optimizer_step"]
    fit(GaudiSingleStrategy(), BoringModel(), [written], str(tmp_path))
    assert written.steps == 3


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("plain", "asked"), [(False, 3), (True, 0)])
def test_a_module_moves_its_batches_unless_they_are_plain(plain: bool, asked: int, tmp_path: object) -> None:
    class Moving(BoringModel):
        moved = 0

        def transfer_batch_to_device(self, batch: torch.Tensor, device: torch.device, index: int) -> torch.Tensor:
            self.moved += 1
            return batch.to(device)

    strategy, module = GaudiSingleStrategy(), Moving()
    strategy.plain_batches = plain
    fit(strategy, module, [], str(tmp_path))
    assert module.moved == asked


def test_a_name_of_text_can_still_not_replace_a_weight() -> None:
    from gaudi3_scale.step.module import LanguageModule

    module = LanguageModule.__new__(LanguageModule)
    pl.LightningModule.__init__(module)
    module.weight = torch.nn.Parameter(torch.zeros(1))
    with pytest.raises(TypeError, match="cannot assign 'str' as parameter"):
        module.weight = "text"
    module.weight = None
    assert dict(module.named_parameters()) == {} and "weight" in module._parameters
