"""Start a program with what this machine lacks, and put down the losses that its trainer logs.

    python started.py LOSSES STEPS PROGRAM OPTION ...

A wheel of torchvision expects a torch with CUDA: with a torch for the CPU its compiled operators are missing, and its
import ends in an error. None of the programs uses one of them, so that declaring those that the import asks for
is enough. Whatever the program says, its trainer stops after STEPS steps, logs each of
them, and drops nothing out.
"""

from __future__ import annotations

import importlib.util
import json
import runpy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch


def main() -> None:
    """Run the program as if it had been started itself."""
    losses, steps, program = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    sys.argv = sys.argv[3:]
    sys.path[0] = str(Path(program).parent)
    from habana_frameworks.torch import hpu
    from habana_frameworks.torch.hpex import kernels

    operators = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        operators.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    # optimum-habana takes torch's loss where the vendor's is not there; the simulated device refuses to guess it.
    vars(kernels).pop("CTCLoss", None)
    # sentence-transformers records a graph of a model that it evaluates, which is refused as well: it calls the model.
    hpu.wrap_in_hpu_graph = lambda model, **_settings: model
    if importlib.util.find_spec("sentence_transformers") and importlib.util.find_spec("sentence_transformers.base"):
        draw_as_before()
    torch.manual_seed(1)  # what a program draws before its trainer has set a seed
    watch(losses, steps)
    runpy.run_path(program, run_name="__main__")


def draw_as_before() -> None:
    """Have sentence-transformers 6 draw batches without duplicates as 3.3 does, which reads the rows in their order."""
    from sentence_transformers.base.sampler import NoDuplicatesBatchSampler

    def one_pass(
        sampler: Any, values: Callable[[int], set[str]], overlap: Callable[[set[str], set[str]], bool]
    ) -> Iterator[list[int]]:
        left = list(range(len(sampler.dataset)))
        while left:
            seen: set[str] = set()
            batch: list[int] = []
            for row in left:
                if overlap(values(row), seen):
                    continue
                batch.append(row)
                seen |= values(row)
                if len(batch) == sampler.batch_size:
                    break
            if len(batch) == sampler.batch_size or not sampler.drop_last:
                yield batch
            left = [row for row in left if row not in batch]

    NoDuplicatesBatchSampler._iter_one_pass = one_pass


def watch(losses: Path, steps: int) -> None:
    """Have each trainer of this process stop early, and write what it logged; a second trainer adds nothing."""
    # Only now, as it imports torchvision.
    from transformers import TrainerCallback, trainer_callback

    logged: list[float] = []

    class Watch(TrainerCallback):  # type: ignore[misc]
        def on_init_end(self, args: Any, state: Any, control: Any, **_more: Any) -> None:
            args.max_steps, args.logging_steps, args.logging_strategy = steps, 1, "steps"
            args.save_strategy = args.eval_strategy = "no"
            args.logging_first_step = False

        def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_more: Any) -> None:
            for module in model.modules():
                if isinstance(module, torch.nn.Dropout):
                    module.p = 0.0
            # Low-rank adapters are drawn after the model is read, which draws other numbers in each version.
            draw = torch.Generator().manual_seed(7)
            for name, parameter in model.named_parameters():
                if "lora_A" in name or "lora_embedding_A" in name:
                    numbers = torch.randn(parameter.shape, generator=draw) * 0.02
                    parameter.data.copy_(numbers)

        def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_more: Any) -> None:
            if logs and "loss" in logs and len(logged) < steps:
                logged.append(float(logs["loss"]))
                losses.write_text(json.dumps(logged))

    before = trainer_callback.CallbackHandler.__init__

    def init(self: Any, callbacks: list[Any], *rest: Any, **named: Any) -> None:
        before(self, [*callbacks, Watch()], *rest, **named)

    trainer_callback.CallbackHandler.__init__ = init


if __name__ == "__main__":
    main()
