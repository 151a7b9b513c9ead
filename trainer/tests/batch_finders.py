"""The largest batch of one case on the simulated card, by this package's finder, by trying all, and by two others.

Prints JSON. The others are given what is theirs to know: Lightning's finder does not take an HPU's message for one of
memory, and is run once as it is and once with that mended.
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable
from typing import Any

import lightning.pytorch as pl
import torch
from accelerate.utils import find_executable_batch_size
from lightning.pytorch.tuner import Tuner, batch_size_scaling
from torch.utils.data import DataLoader

from gaudi3_scale import GaudiTrainer, host_memory
from gaudi3_scale.batch import AdaptiveBatchFinder
from gaudi3_scale.batch.scout import Scout
from gaudi3_scale.config import load
from gaudi3_scale.hpu.device import is_out_of_memory, resolve
from gaudi3_scale.models.build import build
from gaudi3_scale.models.objectives import training_loss

LENGTH = 64
START = 128
"""What a user gives accelerate's finder first: the number of its manual."""
case = json.loads(sys.argv[1])
config = load(None, [*case["settings"], f"model.sequence_length={LENGTH}"])
device = resolve("hpu", 0, 1)
runs = {"made": 0, "out of memory": 0}


def model() -> torch.nn.Module:
    torch.manual_seed(1)
    made = build(config.model)
    if case.get("recompute"):
        made.gradient_checkpointing_enable()
    return made


def tokens(size: int) -> torch.Tensor:
    return torch.randint(0, 250, (size, LENGTH + 1), generator=torch.Generator().manual_seed(0))


class Module(Scout):
    """With the loader that Lightning's finder wants to make."""

    batch_size = 1

    def train_dataloader(self) -> Any:
        return DataLoader(tokens(self.batch_size * 4), batch_size=self.batch_size)  # type: ignore[arg-type]


def trainer() -> pl.Trainer:
    return GaudiTrainer(
        accelerator="hpu",
        devices=1,
        precision=case["precision"],
        max_steps=2,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )


def train(size: int) -> int:
    """Two steps of a batch; the most bytes in use, of a card that has nothing else on it."""
    runs["made"] += 1
    device.reset_peak_memory()
    before = device.allocated()
    module = Module(model(), training_loss)
    module.batch_size = size
    try:
        trainer().fit(module)
    except RuntimeError as error:
        runs["out of memory"] += is_out_of_memory(error)
        raise
    return (device.peak_memory() or 0) - before


def clean() -> dict[str, int]:
    gc.collect()
    device.release_memory()
    seen = dict(runs)
    runs.update(dict.fromkeys(runs, 0))
    return seen


def fits(size: int, limit: int) -> bool:
    try:
        return train(size) <= limit
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        return False
    finally:
        gc.collect()
        device.release_memory()


def truth(limit: int, guess: int) -> int:
    """By real steps: at the guess and beyond it, and where that is not the answer by bisection."""
    if fits(guess, limit) and not fits(guess + 1, limit):
        return guess
    low, high = 0, 1
    while fits(high, limit):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle, limit) else (low, middle)
    return low


def told(find: Callable[[], int]) -> dict[str, Any]:
    clean()
    assert device.allocated() == 0, "the finder before it left something on the card"
    try:
        found: int | str = find()
    except RuntimeError as error:
        found = f"fails: {type(error).__name__}"
    return {"batch": found, **clean()}


def by_lightning() -> int:
    module = Module(model(), training_loss)
    steps = module.training_step

    def counted(batch: Any, batch_idx: int) -> Any:
        runs["made"] += batch_idx == 0
        try:
            return steps(batch, batch_idx)
        except RuntimeError as error:
            runs["out of memory"] += is_out_of_memory(error)
            raise

    module.training_step = counted  # type: ignore[method-assign]
    found = Tuner(trainer()).scale_batch_size(module, mode="binsearch", init_val=2, max_trials=25)
    return found or 0


def by_accelerate() -> int:
    def attempt(batch_size: int) -> int:
        train(batch_size)
        return batch_size

    return int(find_executable_batch_size(attempt, starting_batch_size=START)())


clean()
finder = AdaptiveBatchFinder(
    model(), precision=case["precision"], loss=training_loss, batch_of=tokens, accelerator="hpu", strategy="auto"
)
finder.find_optimal_batch_size()
found = finder.found
assert found is not None and found.limit is not None
result: dict[str, Any] = {
    "batch": found.batch,
    "trials": len(found.trials),
    "out of memory": sum(not each.fits for each in found.trials),
    "how": found.how,
    "true": truth(found.limit, found.batch),
}
host_memory.room = lambda: found.limit // 2  # type: ignore[assignment,misc,union-attr,operator]
finder.find_optimal_batch_size()
assert finder.found is not None
result["host"] = {"room": host_memory.room(), "measured": finder.found.measured, "how": finder.found.how}
if case["others"]:
    result["lightning"] = told(by_lightning)
    batch_size_scaling.is_oom_error = is_out_of_memory  # what it would do if it knew the message
    result["lightning mended"] = told(by_lightning)
    result["accelerate"] = told(by_accelerate)
print(json.dumps(result))
