"""float32 on one thread: every weight equals the CPU's to the last bit."""

from __future__ import annotations

import copy

import pytest
import shapes
import torch
from torch import nn


@pytest.mark.parametrize("family", shapes.FAMILIES)
def test_training_equals_the_cpus(family: str, clean: None) -> None:
    result = {}
    for device in ("cpu", "hpu"):
        model = shapes.build(family).to(device).train()
        losses = shapes.train(model, torch.device(device), steps=8)
        result[device] = (losses, shapes.weights(model))
    assert result["hpu"][0] == result["cpu"][0]
    assert shapes.different(result["hpu"][1], result["cpu"][1]) == []


def gradients(model: nn.Module, inputs: torch.Tensor, device: str) -> list[torch.Tensor]:
    model = copy.deepcopy(model).to(device)
    torch.manual_seed(4)
    output = model(inputs.to(device))
    loss = (output[0] if isinstance(output, tuple) else output).pow(2).mean()
    loss.backward()
    return [loss.detach().cpu(), *(p.grad.cpu() for p in model.parameters() if p.grad is not None)]


def test_layers_that_torch_gives_accelerators_other_kernels_for_equal_the_cpus(clean: None) -> None:
    torch.manual_seed(3)
    layers = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.SiLU(), nn.Dropout(0.3))
    images = torch.randn(2, 3, 8, 8)
    assert all(map(torch.equal, gradients(layers, images, "hpu"), gradients(layers, images, "cpu")))


def test_recurrent_layers_are_near_the_cpus_which_fuses_them(clean: None) -> None:
    torch.manual_seed(3)
    layers, words = nn.LSTM(6, 5, num_layers=2, dropout=0.2), torch.randn(2, 4, 6)
    torch.testing.assert_close(gradients(layers, words, "hpu"), gradients(layers, words, "cpu"))


def test_activation_checkpointing_restores_the_cards_random_numbers(clean: None) -> None:
    from torch.utils.checkpoint import checkpoint

    linear = nn.Linear(16, 16).to("hpu")
    values = torch.randn(4, 16, device="hpu")

    def gradient(recompute: str) -> torch.Tensor:
        torch.manual_seed(7)
        wanted = values.clone().requires_grad_()

        def block(x: torch.Tensor) -> torch.Tensor:
            return nn.functional.dropout(linear(x), 0.5)

        if recompute == "none":
            block(wanted).sum().backward()
        else:
            checkpoint(block, wanted, use_reentrant=recompute == "reentrant").sum().backward()
        assert wanted.grad is not None
        return wanted.grad.cpu()

    assert torch.equal(gradient("reentrant"), gradient("none"))
    assert torch.equal(gradient("non-reentrant"), gradient("none"))
