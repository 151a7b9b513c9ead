"""What the device cannot do truthfully it refuses, in a sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from gaudi3_hpu_simulator.errors import NotSimulated

pytestmark = pytest.mark.usefixtures("clean")


def values() -> torch.Tensor:
    return torch.ones(2, 2, device="hpu")


def transformer_engine() -> Any:
    import habana_frameworks.torch.hpex.experimental.transformer_engine as engine

    return engine


def timed() -> float:
    start, end = torch.hpu.Event(enable_timing=True), torch.hpu.Event(enable_timing=True)
    start.record()
    end.record()
    return start.elapsed_time(end)


def timed_by_torch() -> float:
    start, end = (torch.Event("hpu", enable_timing=True) for _ in range(2))
    start.record()
    end.record()
    return start.elapsed_time(end)


@pytest.mark.parametrize(
    ("attempt", "sentence"),
    [
        (lambda: values().to(torch.float8_e4m3fn), "has no Float8_e4m3fn: Gaudi's fp8 arithmetic is not the CPU's"),
        (lambda: torch.empty(2, dtype=torch.float8_e5m2, device="hpu"), "has no Float8_e5m2"),
        (lambda: values().view(torch.uint8).view(torch.float8_e4m3fn) + 1, "has no Float8_e4m3fn"),
        (lambda: transformer_engine().Linear(2, 2), "has no fp8"),
        (lambda: transformer_engine().fp8_autocast(enabled=True), "has no fp8"),
        (lambda: transformer_engine().recipe.DelayedScaling(), "has no fp8"),
        (lambda: values().to_sparse(), "dense tensors only"),
        (lambda: torch.eye(2).to_sparse().to("hpu"), "dense tensors only"),
        (lambda: torch.quantize_per_tensor(values(), 0.1, 0, torch.qint8), "no quantized tensors"),
        (timed, "has no times, because no time it takes is a Gaudi's"),
        (timed_by_torch, "has no times, because no time it takes is a Gaudi's"),
        (lambda: torch.hpu.utilization(), "has no utilisation"),
        (lambda: torch.empty(1, device="hpu:8"), "habana active device: 8 != 0"),
        (lambda: torch.accelerator.set_device_index(11), "habana active device: 11 != 0"),
    ],
)
def test_refused(attempt: Callable[[], Any], sentence: str) -> None:
    with pytest.raises((NotImplementedError, RuntimeError), match=sentence):
        attempt()


def test_inductor_is_refused() -> None:
    linear = nn.Linear(2, 2).to("hpu")
    torch._dynamo.reset()
    with pytest.raises(Exception, match=r"has no code generation \(inductor\).*use backend='hpu_backend'"):
        torch.compile(linear)(values())
    torch._dynamo.reset()


def test_what_would_only_resemble_habanas_is_refused() -> None:
    from habana_frameworks.torch.hpex import kernels, optimizers

    weights = [nn.Parameter(values())]
    for name in ("FusedLamb", "FusedLars", "FusedResourceApplyMomentum"):
        with pytest.raises(NotSimulated, match=name):
            getattr(optimizers, name)(weights)
    for attempt in (kernels.CTCLoss, kernels.CTCLoss.apply):
        with pytest.raises(NotSimulated, match="CTCLoss"):
            attempt()
    with pytest.raises(NotSimulated, match="moments"):
        optimizers.FusedAdamW(weights, moments_dtype=(torch.float32, torch.float8_e5m2))
    with pytest.raises(NotSimulated, match="probabilities"):
        kernels.FusedSDPA.apply(
            *[values()[None, None]] * 3, None, 0.0, False, None, "None", None, None, "left", False, True
        )
