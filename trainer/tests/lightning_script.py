"""A user's own module with Lightning's own Trainer, as documented there: `lightning_script.py LIGHTNING OUT`."""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn

pl: Any = importlib.import_module(sys.argv[1])
callbacks: Any = importlib.import_module(f"{sys.argv[1]}.callbacks")

from gaudi3_scale import GaudiAccelerator  # noqa: E402  (after the user's Lightning, as in a user's file)

out = Path(sys.argv[2])
seen: dict[str, Any] = {"dtypes": [], "validated": 0}


class Module(pl.LightningModule):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.net(batch)
        return output

    def training_step(self, batch: torch.Tensor, batch_idx: int) -> torch.Tensor:
        output = self.net(batch)
        seen["dtypes"].append(str(output.dtype))
        loss = (output - batch.sum(1, keepdim=True)).pow(2).mean()
        self.log("loss", loss)
        return loss

    def validation_step(self, batch: torch.Tensor, batch_idx: int) -> None:
        seen["validated"] += 1
        self.log("val", self.net(batch).mean(), sync_dist=True)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


def trainer(steps: int, strategy: str) -> Any:
    return pl.Trainer(
        accelerator=GaudiAccelerator("cpu"),
        devices=2,
        precision="bf16-mixed",
        strategy=strategy,
        max_epochs=-1,
        max_steps=steps,
        accumulate_grad_batches=2,
        gradient_clip_val=0.5,
        default_root_dir=out,
        callbacks=[callbacks.ModelCheckpoint(dirpath=out / strategy, every_n_train_steps=2, save_top_k=-1)],
        val_check_interval=2,
        check_val_every_n_epoch=None,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )


torch.set_num_threads(1)
data = torch.utils.data.DataLoader(torch.rand(32, 8, generator=torch.Generator().manual_seed(5)), batch_size=4)
for strategy in ("habana_ddp", "habana_fsdp"):
    first = Module()
    trainer(4, strategy).fit(first, data, data)
    saved = next(path for path in (out / strategy).iterdir() if "step=4" in path.name)
    module = Module()
    resumed = trainer(6, strategy)
    resumed.fit(module, data, data, ckpt_path=saved)
    state = module.state_dict()
    whole = [p.full_tensor() if hasattr(p, "full_tensor") else p for p in state.values()]
    gathered = resumed.strategy.all_gather(torch.stack([p.detach().double().sum() for p in whole]))
    seen[strategy] = {
        "step": resumed.global_step,
        "ranks agree": bool(torch.equal(gathered[0], gathered[1])),
        "weights": str(whole[0].dtype),
        "sharded": hasattr(state["net.0.weight"], "full_tensor"),
        "predictions": len(resumed.predict(module, data) or []) if strategy == "habana_ddp" else None,
    }
    if resumed.is_global_zero:
        (out / "seen.json").write_text(json.dumps({**seen, "dtypes": sorted(set(seen["dtypes"]))}))
torch.distributed.barrier()
os._exit(0)  # gloo's threads now and then abort a process whose peer leaves first
