"""FusedAdamW against its formula, written out here: [bridge] 1.19, hpu_ops/backend/optimizer_adamw_gen.cpp."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from gaudi3_hpu_simulator.errors import NotSimulated
from habana_frameworks.torch.hpex.optimizers import FusedAdamW, distributed

KEYS = {"lr", "betas", "eps", "weight_decay", "bias_correction", "step", "params"}


def expected_after(
    steps: int, weights: torch.Tensor, gradient: torch.Tensor, decay: float, corrected: bool, eps: float
) -> torch.Tensor:
    weights, moment, square = weights.double(), torch.zeros(()), torch.zeros(())
    gradient = gradient.double()
    for step in range(1, steps + 1):
        now = gradient / step
        moment = 0.9 * moment + 0.1 * now
        square = 0.999 * square + 0.001 * now**2
        factor = (1 - 0.999**step) ** 0.5 / (1 - 0.9**step) if corrected else 1.0
        weights = weights * (1 - decay * 0.01) - 0.01 * factor * moment / (square.sqrt() + eps)
    return weights.float()


@pytest.mark.parametrize("size", [1.0, 1e-6])
@pytest.mark.parametrize("decay", [0.0, 0.5])
@pytest.mark.parametrize("corrected", [True, False])
def test_fused_adamw_follows_the_formula(size: float, decay: float, corrected: bool, clean: None) -> None:
    start, gradient = torch.tensor([1.0, -2.0, 0.5]), torch.tensor([1.0, -3.0, 0.2]) * size
    parameter = nn.Parameter(start.to("hpu"))
    optimizer = FusedAdamW([parameter], lr=0.01, weight_decay=decay, bias_correction=corrected)
    for step in range(1, 4):
        parameter.grad = (gradient / step).to("hpu")
        optimizer.step()
        expected = expected_after(step, start, gradient, decay, corrected, 1e-6)
        torch.testing.assert_close(parameter.detach().cpu(), expected, rtol=2e-6, atol=1e-7)
    group = optimizer.param_groups[0]
    assert set(group) == KEYS
    assert (group["step"], optimizer.state[parameter]["step"]) == (3, 0)
    assert set(optimizer.state[parameter]) == {"step", "exp_avg", "exp_avg_sq"}
    assert optimizer.state[parameter]["exp_avg"].device.type == "hpu"


def test_the_count_of_steps_survives_a_sharded_checkpoint(tmp_path: Path, clean: None) -> None:
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict, set_optimizer_state_dict

    def made() -> tuple[nn.Module, FusedAdamW]:
        torch.manual_seed(0)
        model = nn.Linear(3, 2).to("hpu")
        return model, FusedAdamW(model.parameters(), lr=0.01, weight_decay=0.1)

    def trained(model: nn.Module, optimizer: FusedAdamW, steps: int) -> None:
        for _ in range(steps):
            optimizer.zero_grad()
            model(torch.ones(1, 3, device="hpu")).sum().backward()
            optimizer.step()

    whole = made()
    trained(*whole, 5)
    model, optimizer = made()
    trained(model, optimizer, 2)
    dcp.save(
        {"model": model.state_dict(), "optimizer": get_optimizer_state_dict(model, optimizer)}, checkpoint_id=tmp_path
    )
    again, resumed = made()
    trained(again, resumed, 1)  # gives it a state to load into
    state: dict[str, Any] = {"model": again.state_dict(), "optimizer": get_optimizer_state_dict(again, resumed)}
    dcp.load(state, checkpoint_id=tmp_path)
    again.load_state_dict(state["model"])
    set_optimizer_state_dict(again, resumed, state["optimizer"])
    assert [group["step"] for group in resumed.param_groups] == [2]
    trained(again, resumed, 3)
    for one, other in zip(whole[0].parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)
    other_form = made()[1]
    other_form.load_state_dict(optimizer.state_dict())
    assert other_form.param_groups[0]["step"] == 2


@pytest.mark.parametrize("kinds", [torch.bfloat16, (torch.float32, torch.bfloat16)])
def test_moments_can_be_bfloat16(kinds: Any, clean: None) -> None:
    parameter = nn.Parameter(torch.ones(3, device="hpu"))
    optimizer = FusedAdamW([parameter], lr=0.01, moments_dtype=kinds)
    parameter.grad = torch.full((3,), 0.3, device="hpu")
    optimizer.step()
    first, second = kinds if isinstance(kinds, tuple) else (kinds, kinds)
    state = optimizer.state[parameter]
    assert (state["exp_avg"].dtype, state["exp_avg_sq"].dtype) == (first, second)
    # The update is computed before the moments are rounded.
    expected = expected_after(1, torch.ones(3), torch.full((3,), 0.3), 0.0, True, 1e-6)
    torch.testing.assert_close(parameter.detach().cpu(), expected, rtol=2e-6, atol=1e-7)


def test_a_small_decay_is_lost_in_bfloat16_weights(clean: None) -> None:
    parameter = nn.Parameter(torch.ones(2, device="hpu", dtype=torch.bfloat16))
    parameter.grad = torch.zeros_like(parameter)
    FusedAdamW([parameter], lr=0.01, weight_decay=0.1).step()
    assert parameter.tolist() == [1, 1]
    FusedAdamW([parameter], lr=0.1, weight_decay=0.5).step()
    assert parameter.tolist() == [0.94921875] * 2  # 0.95 in bfloat16


def test_the_distributed_one_takes_gradients_and_is_no_optimizer(clean: None) -> None:
    start, gradient = torch.tensor([1.0, -2.0]), torch.tensor([0.5, 1e-6])
    parameters = [start.to("hpu"), torch.ones(1, device="hpu")]
    optimizer = distributed.FusedAdamW(parameters, lr=0.01, weight_decay=0.5)
    assert not isinstance(optimizer, torch.optim.Optimizer)
    for step in (1, 2):
        optimizer.step([(gradient / step).to("hpu"), None])
    expected = expected_after(2, start, gradient, 0.5, True, 1e-6)
    torch.testing.assert_close(parameters[0].cpu(), expected, rtol=2e-6, atol=1e-7)
    assert parameters[1].item() == 1
    assert optimizer.state[parameters[0]]["step"].item() == 2
    with pytest.raises(ValueError, match="2 parameters and 1 gradients"):
        optimizer.step([gradient.to("hpu")])
    with pytest.raises(RuntimeError, match="no step_param"):
        optimizer.step_param(parameters[0], gradient)


@pytest.mark.parametrize("wrong", [{"lr": -1.0}, {"eps": -1e-8}, {"betas": (1.0, 0.9)}, {"betas": (0.9, -0.1)}])
def test_settings_that_no_adamw_has(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"have to be|has to be"):
        FusedAdamW([nn.Parameter(torch.ones(1))], **wrong)


def test_fp8_moments_are_refused() -> None:
    for kinds in (torch.float8_e4m3fn, (torch.bfloat16, torch.float8_e5m2)):
        with pytest.raises(NotSimulated, match=r"FusedAdamW with moments in torch.float8"):
            FusedAdamW([nn.Parameter(torch.ones(1))], moments_dtype=kinds)
