"""DeepSpeed trains three steps on the cards at one ZeRO stage: `deepspeed_zero.py STAGE [bf16]`."""

from __future__ import annotations

import os
import sys

import deepspeed
import torch
from deepspeed.accelerator import get_accelerator

# Of torchrun where there is more than one card.
ALONE = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}


def main(stage: int, precision: str) -> None:
    """Initialize, train, look at the loss."""
    if "RANK" not in os.environ:
        os.environ.update(ALONE)
    torch.manual_seed(0)
    assert get_accelerator().device_name() == "hpu", f"DeepSpeed chose {get_accelerator().device_name()}"
    model = torch.nn.Sequential(torch.nn.Linear(17, 33), torch.nn.GELU(), torch.nn.Linear(33, 5))
    config = {
        "train_micro_batch_size_per_gpu": 4,
        "optimizer": {"type": "Adam", "params": {"lr": 1e-2, "torch_adam": True}},
        "zero_optimization": {"stage": stage},
        "bf16": {"enabled": precision == "bf16"},
    }
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    losses = []
    for _ in range(3):
        inputs = torch.ones(4, 17, device=engine.device, dtype=dtype)
        loss = (engine(inputs) - 1).float().pow(2).mean()
        engine.backward(loss)
        engine.step()
        losses.append(loss.item())
    assert engine.device.type == "hpu", engine.device
    assert losses[2] < losses[0], losses
    print(f"stage {stage}: losses {losses}")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")
