"""lightning-Habana: its accelerator sees the cards, and Lightning's Trainer takes three steps on one."""

from __future__ import annotations

import lightning
import torch
from lightning_habana import HPUAccelerator, SingleHPUStrategy


class Line(lightning.LightningModule):
    """A straight line through points."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(7, 1)
        self.seen: list[str] = []

    def training_step(self, batch: torch.Tensor) -> torch.Tensor:
        self.seen.append(batch.device.type)
        return self.layer(batch).pow(2).mean()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main() -> None:
    """Count, then train."""
    assert HPUAccelerator.is_available()
    assert HPUAccelerator.auto_device_count() == 8, HPUAccelerator.auto_device_count()
    assert "3" in HPUAccelerator.get_device_name(), HPUAccelerator.get_device_name()
    trainer = lightning.Trainer(
        accelerator=HPUAccelerator(), strategy=SingleHPUStrategy(), devices=1, max_steps=3, logger=False,
        enable_checkpointing=False, enable_progress_bar=False,
    )  # fmt: skip
    model = Line()
    trainer.fit(model, torch.utils.data.DataLoader(torch.ones(12, 7), batch_size=4))
    assert model.seen == ["hpu"] * 3, model.seen
    print("trained on hpu")


if __name__ == "__main__":
    main()
