"""What `gaudi3-train` costs per step over a plain PyTorch loop, on one CUDA device. NOT YET RUN on any.

    python benchmarks/gpu_step.py                                # a 110-million-parameter Llama, bfloat16 autocast
    python benchmarks/gpu_step.py --layers 2 --rounds 9          # shorter steps: more overhead to be seen

The loops are those of `trainer_step.py`, on the device. The clocks are read after the device has done its work, so that
`wall` is the time that counts here, and `cpu` what the host needs to keep the device fed: where it is less than `wall`,
the device never waits for the host. The tokens per second of both loops follow, and the job's MFU where the device's
dense peak is known.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.trainer_step import SKIPPED, Bench, Times, now, per_step, summarise


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each loop")
    parser.add_argument("--steps", type=int, default=50, help="timed steps per round")
    parser.add_argument("--layers", type=int, default=12, help="decoder layers of width 768")
    parser.add_argument("--batch", type=int, default=16, help="samples of 1,024 tokens per step")
    parser.add_argument("--json", action="store_true", help="print one JSON object only")
    arguments = parser.parse_args()
    overrides = [
        f"model.layers={arguments.layers}",
        "model.hidden_size=768",
        "model.intermediate_size=2048",
        "model.heads=12",
        "model.kv_heads=12",
        "model.sequence_length=1024",
        "train.precision=bf16-mixed",
        f"train.micro_batch_size={arguments.batch}",
    ]
    runs: dict[str, list[Times]] = {"plain": [], "ours": []}
    with tempfile.TemporaryDirectory() as folder:
        bench = CudaBench(Path(folder), arguments.steps, overrides)
        bench.plain()
        for number in range(arguments.rounds):
            pair = [("plain", bench.plain), ("ours", bench.ours)]
            for name, loop in pair if number % 2 else reversed(pair):
                runs[name].append(loop())
        status = json.loads((Path(folder) / "status.json").read_text())
    result = summarise(runs) | {"parameters": bench.parameters, "device": bench.name, "mfu": status["mfu"]}
    for name in runs:
        result[f"{name}_tokens_per_second"] = arguments.batch * 1024 / (result["wall"][f"{name}_ms"] / 1000)
    print(json.dumps(result, indent=None if arguments.json else 2))


class CudaBench(Bench):
    """The two loops on the first CUDA device."""

    def __init__(self, folder: Path, steps: int, overrides: list[str]) -> None:
        import torch

        from gaudi3_scale.hpu.device import resolve

        super().__init__(folder, steps, [*overrides, "device=cuda"])
        self.device = resolve("cuda", 0, 1)
        self.name = torch.cuda.get_device_name()

    def now(self) -> Times:
        """The clocks, once the device is idle."""
        import torch

        torch.cuda.synchronize()
        return now()

    def plain(self) -> Times:
        """The loop one would write by hand."""
        import torch

        from gaudi3_scale.distributed.randomness import seed_all
        from gaudi3_scale.models.adamw import build_optimizer
        from gaudi3_scale.models.build import build
        from gaudi3_scale.models.learning_rate import learning_rate_scale
        from gaudi3_scale.models.objectives import sample_loss

        train, device = self.config.train, self.device.torch_device()
        seed_all(train.seed)
        model: Any = build(self.config.model).train().to(device)
        self.parameters = sum(parameter.numel() for parameter in model.parameters())
        optimizer = build_optimizer(model, train)
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: learning_rate_scale(step, train))
        began = self.now()
        for step, batch in enumerate(self.batches(), 1):
            with torch.autocast("cuda", torch.bfloat16):
                loss = sample_loss(model, batch.to(device))
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(parameters, train.gradient_clip)
            optimizer.step()
            schedule.step()
            if step % train.log_every == 0:
                loss.item()
            if step == SKIPPED:
                began = self.now()
            if step == SKIPPED + self.steps:
                break
        return per_step(began, self.now(), self.steps)


if __name__ == "__main__":
    main()
