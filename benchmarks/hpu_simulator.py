"""CPU time of a training step on the simulated `hpu` device against the same step on plain CPU.

    PYTHONPATH=.cache/hpu python benchmarks/hpu_simulator.py

Both run in one process on one thread, a step of the one after a step of the other, on Llama shapes with the same
weights and tokens; after the last step the float32 losses must be equal, or the comparison is refused. The figure is
what the simulation costs. It says nothing about the speed of a Gaudi.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

SHAPES = {
    "64 wide, 2 layers": {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2},
    "256 wide, 4 layers": {"hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 4},
}
BATCH = {"64 wide, 2 layers": (2, 32), "256 wide, 4 layers": (4, 128)}
SKIPPED = 3  # steps before the clock counts


class Side:
    """One device's model, and a step on it."""

    def __init__(self, shape: str, device: str, autocast: bool) -> None:
        import torch
        from transformers import LlamaConfig, LlamaForCausalLM

        torch.manual_seed(0)
        config = LlamaConfig(vocab_size=256, num_attention_heads=4, num_key_value_heads=2, **SHAPES[shape])
        self.device, self.autocast, self.shape = device, autocast, BATCH[shape]
        self.model: Any = LlamaForCausalLM(config).to(device).train()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.tokens = torch.Generator().manual_seed(1)

    def step(self) -> tuple[float, float]:
        """CPU seconds of a step, and its loss."""
        import torch

        batch = torch.randint(0, 256, self.shape, generator=self.tokens)
        start = time.process_time()
        tokens = batch.to(self.device)
        with torch.autocast(self.device, torch.bfloat16, enabled=self.autocast):
            loss = self.model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        value = loss.item()
        return time.process_time() - start, value


def compare(shape: str, autocast: bool, steps: int) -> dict[str, Any]:
    """Both devices in turn; milliseconds are lower quartiles over the steps."""
    sides = {device: Side(shape, device, autocast) for device in ("cpu", "hpu")}
    times: dict[str, list[float]] = {"cpu": [], "hpu": []}
    losses = {"cpu": 0.0, "hpu": 0.0}
    for number in range(SKIPPED + steps):
        for device in ("cpu", "hpu") if number % 2 else ("hpu", "cpu"):
            seconds, losses[device] = sides[device].step()
            if number >= SKIPPED:
                times[device].append(seconds)
    if not autocast and losses["cpu"] != losses["hpu"]:
        raise SystemExit(f"{shape}: the losses differ ({losses}), so the two did not do the same work.")
    quartile = {device: statistics.quantiles(times[device])[0] for device in times}
    return {
        "model": shape,
        "precision": "bfloat16 autocast" if autocast else "float32",
        "cpu_ms": round(quartile["cpu"] * 1e3, 2),
        "hpu_ms": round(quartile["hpu"] * 1e3, 2),
        "ratio": round(quartile["hpu"] / quartile["cpu"], 3),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=40, help="timed steps of each")
    parser.add_argument("--json", action="store_true", help="print one JSON list only")
    arguments = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    if not hasattr(torch, "hpu"):
        raise SystemExit("The simulated device is not on PYTHONPATH: run 'make hpu', then with PYTHONPATH=.cache/hpu.")
    found = [compare(shape, autocast, arguments.steps) for shape in SHAPES for autocast in (False, True)]
    if arguments.json:
        print(json.dumps(found))
        return
    for row in found:
        times = f"CPU {row['cpu_ms']:>8} ms   hpu {row['hpu_ms']:>8} ms"
        print(f"{row['model']:<20}{row['precision']:<20}{times}   ratio {row['ratio']}")


if __name__ == "__main__":
    main()
