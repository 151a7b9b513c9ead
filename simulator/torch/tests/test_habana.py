"""The habana_frameworks tree: names at their places, and the arithmetic behind them."""

from __future__ import annotations

import importlib

import pytest
import torch
from torch import nn

NAMES = {
    "torch.core": "mark_step is_lazy hpu_set_env hpu_initialize hpu hpu_set_inference_env hpu_inference_initialize "
    "hpu_teardown_inference_env quantization",
    "torch.hpu": "is_available device_count get_device_name synchronize current_device set_device is_initialized "
    "memory_stats memory_allocated max_memory_allocated memory_reserved max_memory_reserved memory_summary "
    "memory_usage mem_get_info reset_peak_memory_stats reset_accumulated_memory_stats utilization stream Stream "
    "default_stream current_stream HPUGraph ModuleCacher wrap_in_hpu_graph random sdp_kernel is_autocast_hpu_enabled "
    "get_autocast_hpu_dtype enable_dynamic_shape disable_dynamic_shape",
    "torch.hpu.graphs": "input_hash copy_to CachedParams",
    "torch.hpex.optimizers": "FusedAdamW FusedAdagrad FusedLamb FusedLars FusedResourceApplyMomentum FusedSGD",
    "torch.hpex.optimizers.distributed": "FusedAdamW",
    "torch.hpex.normalization": "FusedClipNorm FusedRMSNorm",
    "torch.hpex.kernels": "FusedSDPA RotaryPosEmbeddingHelperV2 RotaryPosEmbeddingHelperV3 RotaryPosEmbeddingMode "
    "apply_rotary_pos_emb CTCLoss Fp8Ops",
    "torch.hpex.experimental.transformer_engine": "recipe",
    "torch.distributed.hccl": "initialize_distributed_hpu",
    "torch.utils.library_loader": "is_habana_available",
    "torch.utils.experimental": "_get_device_type synDeviceType",
}


@pytest.mark.parametrize("place", NAMES)
def test_names_are_where_libraries_look(place: str) -> None:
    module = importlib.import_module(f"habana_frameworks.{place}")
    assert [name for name in NAMES[place].split() if not hasattr(module, name)] == []


def test_torch_hpu_is_habanas_module() -> None:
    module = importlib.import_module("habana_frameworks.torch.hpu")
    assert torch.hpu is module is importlib.import_module("torch.hpu")
    assert (torch.hpu.is_available(), torch.hpu.get_device_name()) == (True, "GAUDI3")
    experimental = importlib.import_module("habana_frameworks.torch.utils.experimental")
    assert experimental._get_device_type() is experimental.synDeviceType.synDeviceGaudi3


def test_marks_do_nothing_in_eager_mode_and_say_so() -> None:
    import habana_frameworks.torch.core as htcore

    assert not htcore.is_lazy()
    with pytest.warns(UserWarning, match="no effect in eager mode"):
        htcore.mark_step()
    assert htcore.marked_steps() == 0


@pytest.mark.parametrize("bias_correction", [True, False])
def test_fused_adamw_follows_the_formula(bias_correction: bool, clean: None) -> None:
    from habana_frameworks.torch.hpex.optimizers import FusedAdamW

    weight = nn.Parameter(torch.tensor([1.0, -2.0], device="hpu"))
    optimizer = FusedAdamW([weight], lr=0.1, weight_decay=0.5, bias_correction=bias_correction)
    expected, moment, square = torch.tensor([1.0, -2.0]), torch.zeros(2), torch.zeros(2)
    for step in (1, 2, 3):
        gradient = torch.tensor([0.5, 3.0]) / step
        weight.grad = gradient.to("hpu")
        optimizer.step()
        moment = 0.9 * moment + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        first, second = (1 - 0.9**step, 1 - 0.999**step) if bias_correction else (1, 1)
        expected = expected * (1 - 0.1 * 0.5)
        expected = expected - 0.1 * (moment / first) / ((square / second).sqrt() + 1e-6)
        torch.testing.assert_close(weight.detach().cpu(), expected)
    assert {value.device.type for value in optimizer.state[weight].values() if value.dim()} == {"hpu"}
    again = FusedAdamW([weight], lr=0.1, weight_decay=0.5, bias_correction=bias_correction)
    again.load_state_dict(optimizer.state_dict())
    assert again.param_groups[0]["bias_correction"] == bias_correction


def test_fused_clip_norm_clips_to_the_norm(clean: None) -> None:
    from habana_frameworks.torch.hpex.normalization import FusedClipNorm

    weights = [nn.Parameter(torch.zeros(1, device="hpu")) for _ in range(2)]
    for weight, gradient in zip(weights, (3.0, 4.0), strict=True):
        weight.grad = torch.full((1,), gradient, device="hpu")
    assert FusedClipNorm(weights, 1.0).clip_norm(weights).item() == 5
    assert [weight.grad.item() for weight in weights] == pytest.approx([0.6, 0.8], rel=1e-5)


def test_fused_rms_norm_is_torchs(clean: None) -> None:
    from habana_frameworks.torch.hpex.normalization import FusedRMSNorm

    values, weight = torch.randn(2, 3, 8, device="hpu"), torch.rand(8, device="hpu")
    torch.testing.assert_close(
        FusedRMSNorm.apply(values, weight, 1e-6), nn.functional.rms_norm(values, (8,), weight, 1e-6)
    )
    assert FusedRMSNorm.apply(values.bfloat16(), weight.bfloat16(), 1e-6).dtype == torch.bfloat16


def test_fused_attention_is_attention(clean: None) -> None:
    from habana_frameworks.torch.hpex.kernels import FusedSDPA

    query, key, value = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 5, 8), torch.randn(2, 2, 5, 8)
    scores = query @ key.repeat_interleave(2, 1).transpose(-1, -2) * 0.3
    scores += torch.full((5, 5), -torch.inf).triu(1)
    expected = scores.softmax(-1) @ value.repeat_interleave(2, 1)
    result = FusedSDPA.apply(*(part.to("hpu") for part in (query, key, value)), None, 0.0, True, 0.3, "fast", None)
    torch.testing.assert_close(result.cpu(), expected)


def test_rotary_embeddings_turn_by_halves_and_by_pairs(clean: None) -> None:
    from habana_frameworks.torch.hpex import kernels

    angle = torch.tensor([0.1, 0.7])
    turn = torch.polar(torch.ones(2), angle)
    values = torch.randn(1, 1, 1, 4)
    by_halves = torch.view_as_real(torch.complex(values[..., :2], values[..., 2:]) * turn)
    expected = torch.cat((by_halves[..., 0], by_halves[..., 1]), -1)
    angles = torch.cat((angle, angle)).to("hpu")
    position = torch.zeros(1, 1, dtype=torch.long, device="hpu")
    for apply in (kernels.RotaryPosEmbeddingHelperV2.apply, kernels.apply_rotary_pos_emb):
        result = apply(values.to("hpu"), angles.cos()[None], angles.sin()[None], position)
        torch.testing.assert_close(result.cpu(), expected)
    by_pairs = torch.view_as_real(torch.view_as_complex(values.view(1, 1, 1, 2, 2)) * turn).flatten(-2)
    angles = angle.repeat_interleave(2).to("hpu")
    result = kernels.RotaryPosEmbeddingHelperV3.apply(
        values.to("hpu"), angles.cos()[None], angles.sin()[None], position
    )
    torch.testing.assert_close(result.cpu(), by_pairs)


def test_distributed_environment_of_both_launchers(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    from habana_frameworks.torch.distributed.hccl import initialize_distributed_hpu

    for name in ("WORLD_SIZE", "RANK", "LOCAL_RANK", "HLS_MODULE_ID", "MASTER_PORT", "MASTER_ADDR", "ID"):
        monkeypatch.setenv(name, "")  # put back at the end
        monkeypatch.delenv(name)
    monkeypatch.delenv("HABANA_VISIBLE_MODULES", raising=False)
    assert initialize_distributed_hpu() == (1, -1, -1)
    assert "HLS_MODULE_ID" not in os.environ and "ID" not in os.environ
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "16")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "11")
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_RANK", "3")
    assert initialize_distributed_hpu() == (16, 11, 3)
    assert (os.environ["HLS_MODULE_ID"], os.environ["MASTER_PORT"], os.environ["ID"]) == ("3", "12345", "11")
    assert initialize_distributed_hpu(8, 5, 1) == (8, 5, 1)
    assert os.environ["HLS_MODULE_ID"] == "3", "what is set stays"
    for visible, local, module in (("2,3", 1, "3"), ("5,7,4,6", 2, "4")):
        monkeypatch.delenv("HLS_MODULE_ID")
        monkeypatch.setenv("HABANA_VISIBLE_MODULES", visible)
        assert initialize_distributed_hpu(8, 5, local) == (8, 5, local)
        assert os.environ["HLS_MODULE_ID"] == module
