"""A script with split matrices on the simulated device, which writes its peak: SIZE, then settings of `fit`."""

from __future__ import annotations

import json
import os
import sys

import gaudi3_scale.integration.strategies as strategies
from gaudi3_scale.config import load
from gaudi3_scale.hpu.torch_import import import_torch_for

size, settings = int(sys.argv[1]), load(None, sys.argv[2:])
os.environ["PT_HPU_LAZY_MODE"] = "0"
import_torch_for(settings)
strategies.check_numbers_once = lambda device: None  # as in measured.py

import lightning.pytorch as pl  # noqa: E402  after `import_torch_for`, as in a job
import torch  # noqa: E402

from gaudi3_scale import GaudiTrainer  # noqa: E402
from gaudi3_scale.models.build import build  # noqa: E402
from gaudi3_scale.models.objectives import training_loss  # noqa: E402


class Module(pl.LightningModule):
    """The model of the settings."""

    def __init__(self) -> None:
        super().__init__()
        self.model = build(settings.model).train()

    def training_step(self, batch: list[torch.Tensor], batch_idx: int) -> torch.Tensor:
        """Loss of the tokens."""
        return training_loss(self.model, batch[0])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """One weight at a time: the weights are on two meshes."""
        return torch.optim.AdamW(self.parameters(), foreach=False)


processes, batch = int(os.environ["WORLD_SIZE"]), settings.train.micro_batch_size
tokens = torch.randint(200, (3 * batch * processes, settings.model.sequence_length + 1))
GaudiTrainer(
    "hpu",
    strategy=strategies.HabanaFSDPStrategy(tensor_parallel_size=size),
    devices=processes,
    precision=settings.train.precision,
    max_steps=3,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
).fit(Module(), torch.utils.data.DataLoader(torch.utils.data.TensorDataset(tokens), batch_size=batch))
settings.output_dir.mkdir(exist_ok=True)
peak = torch.hpu.memory_stats()["MaxInUse"]  # type: ignore[attr-defined]
(settings.output_dir / f"peak-{os.environ['RANK']}.json").write_text(json.dumps({"peak": peak}))
sys.stdout.flush()
