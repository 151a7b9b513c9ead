"""Recomputation by budget: the least that fits, and it really fits."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from small_llama import allocated_peak, loss, samples, small_llama, spec
from torch import Tensor, nn

from gaudi3_scale import config as configuration
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.memory import plan_recompute, predict_step
from gaudi3_scale.memory.checkpointing import LEVELS, Level, checkpoint_blocks
from gaudi3_scale.models.blocks import repeated_blocks
from gaudi3_scale.models.build import build
from gaudi3_scale.models.objectives import example, training_loss

BATCH = 12


def peaks(model: nn.Module, step_loss: object, inputs: list[Tensor]) -> dict[tuple[Level, ...], int]:
    """Predicted peak of every assignment of levels to blocks."""
    names = [name for name, _ in repeated_blocks(model)]
    found = {}
    for levels in itertools.product(LEVELS, repeat=len(names)):
        checkpoint_blocks(model, dict(zip(names, levels, strict=True)))
        found[levels] = predict_step(model, step_loss, inputs).peak  # type: ignore[arg-type]
    checkpoint_blocks(model, dict.fromkeys(names, "none"))
    return found


class Wide(nn.Module):
    """A block that costs and keeps in proportion to its width."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(32, width, bias=False), nn.Linear(width, 32, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(torch.sigmoid(self.up(x)).square())


class Stack(nn.Module):
    """Blocks one after the other."""

    def __init__(self, *widths: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Wide(width) for width in widths])

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return x


def total(model: nn.Module, x: Tensor) -> Tensor:
    return model(x).sum()


def inputs(batch: int) -> list[Tensor]:
    return [torch.empty(batch, 32, device="meta")]


@pytest.mark.parametrize(
    ("make", "objective", "shape", "batch"),
    # in the first, logits are most of the peak; in the second it matters which block is recomputed
    [(lambda: small_llama(layers=2), loss, spec, BATCH), (lambda: Stack(256, 256, 256), total, inputs, 4096)],
)
def test_no_cheaper_assignment_fits(make: Any, objective: Any, shape: Any, batch: int) -> None:
    model = make()
    known = peaks(model, objective, shape(batch))
    assert len(known) in (9, 27) and len(set(known.values())) > 4

    def cost(levels: tuple[Level, ...]) -> tuple[int, int]:
        return levels.count("full"), len(levels) - levels.count("none")

    for limit in sorted(set(known.values()))[::3]:
        plan = plan_recompute(model, objective, shape, batch, limit, margin=0.0)
        chosen = tuple(plan.blocks.values())
        assert known[chosen] == plan.predicted_peak <= limit
        assert cost(chosen) == min(cost(levels) for levels, peak in known.items() if peak <= limit)


def test_uneven_blocks_take_back_what_is_superfluous() -> None:
    widths = [64, 512, 128, 512]
    model = Stack(*widths)
    known = peaks(model, total, inputs(4096))
    known = {levels: peak for levels, peak in known.items() if "selective" not in levels}
    none = known["none", "none", "none", "none"]
    for limit in (none, none - 1, int(none * 0.9), int(none * 0.7)):
        plan = plan_recompute(model, total, inputs, 4096, limit, margin=0.0, selective=False)
        chosen = tuple(plan.blocks.values())
        assert known[chosen] == plan.predicted_peak <= limit
        for place, level in enumerate(chosen):  # nothing of it can be left out
            if level == "full":
                assert known[(*chosen[:place], "none", *chosen[place + 1 :])] > limit
    assert plan.recompute_share == pytest.approx(
        sum(w for w, level in zip(widths, chosen, strict=True) if level == "full") / sum(widths) / 3
    )


def test_the_real_peak_keeps_to_the_budget() -> None:
    unlimited = allocated_peak(small_llama, samples(BATCH))
    budget = int(unlimited * 0.75)
    plan = plan_recompute(small_llama(), loss, spec, BATCH, budget)
    assert plan.count("none") < len(plan.blocks)

    def make() -> nn.Module:
        model = small_llama()
        plan.apply(model)
        return model

    real = allocated_peak(make, samples(BATCH))
    assert real <= budget < unlimited
    assert plan.predicted_peak == pytest.approx(real, rel=0.01)


def test_a_mixture_of_experts_is_planned() -> None:
    job = configuration.load(None, ("model.name=mixtral-tiny", "model.sequence_length=64"))
    model = build(job.model).train()

    def batches(batch: int) -> list[Tensor]:
        return [example(job.model, batch, "meta")]

    most = predict_step(model, training_loss, batches(8)).peak
    plan = plan_recompute(model, training_loss, batches, 8, int(0.63 * most), margin=0.0)
    assert plan.count("full") > 0 and plan.recompute_share > 0


def test_nothing_is_recomputed_where_all_fits() -> None:
    plan = plan_recompute(small_llama(), loss, spec, BATCH, 2**40)
    assert set(plan.blocks.values()) == {"none"} and plan.recompute_share == 0
    assert str(plan).startswith("0 of 3 blocks recomputed, 0 all but their products (+0.0% FLOPs)")


def test_refusal_names_the_batch_that_fits() -> None:
    model = small_llama()
    full = plan_recompute(model, loss, spec, 4, 2**40, selective=False)
    checkpoint_blocks(model, dict.fromkeys(full.blocks, "full"))
    budget = predict_step(model, loss, spec(5)).peak
    with pytest.raises(
        ConfigError, match=r"leaves .* after its margin of 0%: lower the micro-batch to 5, or raise the"
    ):
        plan_recompute(model, loss, spec, BATCH, budget, margin=0.0, selective=False)
    assert plan_recompute(model, loss, spec, 5, budget, margin=0.0, selective=False).count("full") > 0
    with pytest.raises(
        ConfigError, match=r"^A step of 12 sample\(s\) needs .* GiB, or shard the model over more devices"
    ):
        plan_recompute(model, loss, spec, BATCH, 1000)
    with pytest.raises(ConfigError, match=r"^The margin is 1: give the share of the budget to leave free"):
        plan_recompute(model, loss, spec, BATCH, 1000, margin=1)
    with pytest.raises(ConfigError, match=r"^Linear has no repeated blocks, so none can be recomputed"):
        plan_recompute(nn.Linear(2, 2), loss, spec, BATCH, 1000)
