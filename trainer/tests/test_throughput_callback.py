"""ThroughputCallback in a Trainer of one's own: what it logs, and the account it keeps over two fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.profilers import SimpleProfiler
from torch.utils.data import DataLoader
from transformers import LlamaConfig, LlamaForCausalLM

from gaudi3_scale.hpu import device as devices
from gaudi3_scale.throughput import meter as meters
from gaudi3_scale.throughput.callback import ThroughputCallback, input_tokens
from gaudi3_scale.throughput.flops import count
from gaudi3_scale.throughput.goodput import FILE, Account, read
from gaudi3_scale.throughput.ledger import current

B, T = 2, 16


class Module(pl.LightningModule):
    """As a user would write it."""

    def __init__(self) -> None:
        super().__init__()
        self.model = LlamaForCausalLM(
            LlamaConfig(
                vocab_size=32,
                hidden_size=16,
                intermediate_size=32,
                num_hidden_layers=2,
                num_attention_heads=2,
                max_position_embeddings=T,
                use_cache=False,
            )
        )

    def training_step(self, batch: dict[str, torch.Tensor], batch_idx: int) -> torch.Tensor:
        loss: torch.Tensor = self.model(input_ids=batch["input_ids"], labels=batch["input_ids"]).loss
        return loss

    def validation_step(self, batch: dict[str, torch.Tensor], batch_idx: int) -> None:
        self.training_step(batch, batch_idx)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


class Seen(pl.Callback):
    """What was logged, and the tokens that the meter was told of."""

    def __init__(self) -> None:
        self.values: list[dict[str, float]] = []

    def on_train_batch_end(self, trainer: pl.Trainer, *_: Any) -> None:
        self.values.append({name: float(value) for name, value in trainer.callback_metrics.items()})


def loader() -> DataLoader[Any]:
    """Twelve batches."""
    ids = torch.randint(0, 32, (12 * B, T), generator=torch.Generator().manual_seed(1))
    return DataLoader([{"input_ids": row} for row in ids], batch_size=B)  # type: ignore[arg-type]


def fit(folder: Path, steps: int, resume: Path | None = None, **more: Any) -> tuple[Seen, pl.Trainer]:
    """Train with accumulation, evaluation and checkpoints."""
    seen = Seen()
    trainer = pl.Trainer(
        accelerator="cpu",
        max_steps=steps,
        accumulate_grad_batches=2,
        val_check_interval=6,
        limit_val_batches=2,
        num_sanity_val_steps=1,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
        callbacks=[
            ThroughputCallback(every=2, directory=folder),
            seen,
            ModelCheckpoint(folder / "saved", every_n_train_steps=3, save_top_k=-1, filename="{step}"),
        ],
        **more,
    )
    trainer.fit(Module(), loader(), loader(), ckpt_path=resume, weights_only=False if resume else None)
    return seen, trainer


def test_speed_and_goodput_are_logged_and_a_second_fit_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens: list[int] = []
    step = meters.Meter.step
    monkeypatch.setattr(
        meters.Meter, "step", lambda self, counted, now: (tokens.append(counted), step(self, counted, now))[1]
    )
    before = current()
    profiler = SimpleProfiler()
    seen, trainer = fit(tmp_path, 8, profiler=profiler)
    assert tokens == [2 * B * T] * 8  # both micro-batches of each step
    first = next(values for values in seen.values if values)
    assert set(first) == {"goodput"}  # after step 2 the meter still warms up
    assert set(seen.values[-1]) == {"goodput", "tokens_per_second", "tokens_per_second_stepping"}
    assert seen.values[-1]["tokens_per_second_stepping"] > seen.values[-1]["tokens_per_second"] > 0
    assert trainer.profiler is profiler and current() is before
    assert any(name.endswith("train_dataloader_next") for name in profiler.recorded_durations)
    assert "save_checkpoint" not in vars(trainer)
    spent = Account(read(tmp_path / FILE)).goodput().nanoseconds
    assert min(spent[part] for part in ("compute", "data_wait", "checkpoint_stall", "evaluation")) > 0

    fit(tmp_path, 9, resume=tmp_path / "saved" / "step=3.ckpt")
    found = Account(read(tmp_path / FILE)).goodput()
    assert found.runs == 2
    assert found.nanoseconds["restart_loss"] > 0  # steps 4 to 8 were done again
    assert found.nanoseconds["checkpoint_stall"] > 0


def test_mfu_is_logged_where_the_peak_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "hardware_name", lambda device: "GAUDI3")
    values = fit(tmp_path, 6, precision="bf16-mixed")[0].values[-1]
    expected = values["tokens_per_second_stepping"] * count(Module().model).per_token(T) / 1835e12
    assert values["mfu"] == values["hfu"] == pytest.approx(expected, rel=1e-5)


def test_a_batch_without_tokens_is_refused() -> None:
    ids = torch.zeros(2, 3, dtype=torch.long)
    assert input_tokens(ids) is input_tokens({"input_ids": ids}) is input_tokens((ids, ids)) is ids
    with pytest.raises(TypeError, match="cannot find token ids in a batch of type str: give it tokens="):
        input_tokens("text")
