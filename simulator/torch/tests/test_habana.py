"""The habana_frameworks tree: names at their places, and the arithmetic behind them."""

from __future__ import annotations

import importlib
import json
import math
from pathlib import Path

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


@pytest.mark.parametrize(("batch", "heads", "length"), [(1, 1, 1), (2, 3, 5)])
def test_rotary_embeddings_turn_by_halves_and_by_pairs(batch: int, heads: int, length: int, clean: None) -> None:
    from habana_frameworks.torch.hpex import kernels

    angle = torch.rand(7, 2)  # of each position
    positions = torch.randint(0, 7, (batch, length))
    turn = torch.polar(torch.ones(7, 2), angle)
    values = torch.randn(batch, heads, length, 4)
    by_halves = torch.view_as_real(torch.complex(values[..., :2], values[..., 2:]) * turn[positions].unsqueeze(1))
    expected = torch.cat((by_halves[..., 0], by_halves[..., 1]), -1)
    twice = torch.cat((angle, angle), -1).to("hpu")
    tables = (values.to("hpu"), twice.cos()[None, None], twice.sin()[None, None])
    for apply in (kernels.RotaryPosEmbeddingHelperV2.apply, kernels.apply_rotary_pos_emb):
        torch.testing.assert_close(apply(*tables, positions.to("hpu")).cpu(), expected)
    # An offset leaves out columns of the tables.
    shifted = [torch.cat((torch.rand(1, 1, 7, 3), table.cpu()), -1).to("hpu") for table in tables[1:]]
    plain = kernels.RotaryPosEmbeddingHelperV1.apply(tables[0][:, :, :1], *(table[:, :, :1] for table in tables[1:]), 0)
    offset = kernels.RotaryPosEmbeddingHelperV1.apply(tables[0][:, :, :1], *(table[:, :, :1] for table in shifted), 3)
    torch.testing.assert_close(plain, offset)
    by_pairs = torch.view_as_real(torch.view_as_complex(values.unflatten(-1, (2, 2))) * turn[positions].unsqueeze(1))
    pairs = angle.repeat_interleave(2, -1)[positions].unsqueeze(1).to("hpu")
    mode = kernels.RotaryPosEmbeddingMode.PAIRWISE
    result = kernels.apply_rotary_pos_emb(values.to("hpu"), pairs.cos(), pairs.sin(), None, 0, mode)
    torch.testing.assert_close(result.cpu(), by_pairs.flatten(-2))


@pytest.mark.parametrize(("length", "pairs", "width"), [(2, 2, 4), (5, 3, 10)])
def test_rotary_embeddings_take_chatglms_cache(length: int, pairs: int, width: int, clean: None) -> None:
    from habana_frameworks.torch.hpex import kernels

    values = torch.randn(length, 3, 2, width)
    angle = torch.rand(length + 4, pairs)
    cache = torch.stack((angle.cos(), angle.sin()), -1).to("hpu")
    turn = torch.polar(torch.ones(length, pairs), angle[:length])[:, None, None]
    first = torch.view_as_complex(values[..., : 2 * pairs].unflatten(-1, (pairs, 2)).contiguous())
    expected = torch.cat((torch.view_as_real(first * turn).flatten(-2), values[..., 2 * pairs :]), -1)
    for apply in (kernels.RotaryPosEmbeddingHelperV3.apply, kernels.apply_rotary_pos_emb):
        torch.testing.assert_close(apply(values.to("hpu"), cache).cpu(), expected)


def test_rotary_embeddings_are_float32_where_anything_is(clean: None) -> None:
    from habana_frameworks.torch.hpex.kernels import apply_rotary_pos_emb

    values, table = torch.ones(1, 1, 2, 4, device="hpu"), torch.ones(1, 1, 2, 4, device="hpu")
    assert apply_rotary_pos_emb(values.bfloat16(), table, table).dtype == torch.float32
    assert apply_rotary_pos_emb(values.bfloat16(), table.half(), table.half()).dtype == torch.bfloat16


@pytest.mark.parametrize("padding", ["left", "right"])
def test_fused_attention_leaves_padding_out(padding: str, clean: None) -> None:
    from habana_frameworks.torch.hpex.kernels import FusedSDPA

    query, key, value = (torch.randn(2, 2, 6, 4) for _ in range(3))
    lengths = torch.tensor([4, 6])
    on_card = [part.to("hpu") for part in (query, key, value)]
    result = FusedSDPA.apply(*on_card, None, 0.0, True, None, "fast", None, lengths.to("hpu"), padding).cpu()
    for index, length in enumerate(lengths.tolist()):
        part = slice(6 - length, 6) if padding == "left" else slice(length)
        alone = [each[index : index + 1, :, part] for each in (query, key, value)]
        expected = nn.functional.scaled_dot_product_attention(*alone, is_causal=True)
        torch.testing.assert_close(result[index : index + 1, :, part], expected)


def test_fused_attention_takes_its_arguments_by_position(clean: None) -> None:
    from habana_frameworks.torch.hpex.kernels import FusedSDPA

    values = torch.randn(1, 2, 3, 4, device="hpu", requires_grad=True)
    with pytest.raises(TypeError, match="positional-only"):
        FusedSDPA.apply(values, values, values, is_causal=True)
    with pytest.raises(AssertionError, match="fast softmax for causal attention only"):
        FusedSDPA.apply(values, values, values, None, 0.0, False, None, "fast", True)


def test_ema_follows_the_weights(clean: None) -> None:
    from habana_frameworks.torch.hpex.movingavrg import FusedEMA

    model = nn.Linear(3, 2, device="hpu")
    average = FusedEMA(model, decay=0.9)
    expected = model.weight.detach().cpu().clone()
    for step in (1, 2):
        with torch.no_grad():
            model.weight.add_(1)
        average.update(model)
        share = 0.9 * (1 - math.exp(-step / 2000))
        expected = share * expected + (1 - share) * model.weight.detach().cpu()
        torch.testing.assert_close(average.ema.weight.cpu(), expected)


def test_the_bridges_variables_have_getters(monkeypatch: pytest.MonkeyPatch) -> None:
    from habana_frameworks.torch.internal import bridge_config

    assert bridge_config.get_pt_hpu_enable_lazy_collectives() is False
    monkeypatch.setenv("PT_HPU_ENABLE_LAZY_COLLECTIVES", "true")
    assert bridge_config.get_pt_hpu_enable_lazy_collectives() is True
    with bridge_config.env_setting("PT_COMPILE_ONLY_MODE", True):
        assert bridge_config.get_pt_compile_only_mode() is True
    assert bridge_config.get_pt_compile_only_mode() is False
    for name in ("get_pt_no_such_flag", "set_pt_hpu_gpu_migration"):
        with pytest.raises(AttributeError, match=name):
            getattr(bridge_config, name)


def test_metrics_count_nothing_and_go_to_a_file(tmp_path: Path) -> None:
    from habana_frameworks.torch.hpu import metrics

    with metrics.metric_localcontext("graph_compilation") as metric:
        assert dict(metric.stats()) == {"TotalNumber": 0, "TotalTime": 0, "AvgTime": 0}
    assert metrics.metric_global("nothing") is None
    with pytest.raises(metrics.MetricNotFound, match="nothing"), metrics.metric_localcontext("nothing"):
        pass
    metrics.metrics_dump(str(tmp_path / "metrics.json"))
    names = [row["metric_name"] for row in json.loads((tmp_path / "metrics.json").read_text())]
    assert names == ["graph_compilation", "cpu_fallback", "memory_defragmentation"]


def test_what_is_asked_of_experimental() -> None:
    from habana_frameworks.torch.utils import experimental

    assert experimental._is_fp16_supported() is True
    assert experimental.hpu is torch.hpu
    values = torch.ones(2, device="hpu")
    assert (experimental._data_ptr(values), experimental._data_ptr(values[:0])) == (values.data_ptr(), 0)
    loader = experimental.const_shape_dataloader([torch.ones(2), torch.ones(3), torch.ones(2)], 2)
    assert [batch.shape for batch in loader] == [(2,), (2,)]


def test_distributed_environment_of_both_launchers(monkeypatch: pytest.MonkeyPatch) -> None:
    from habana_frameworks.torch.distributed.hccl import initialize_distributed_hpu

    for name in ("WORLD_SIZE", "RANK", "LOCAL_RANK", "HLS_MODULE_ID", "MASTER_PORT", "MASTER_ADDR"):
        monkeypatch.setenv(name, "")  # put back at the end
        monkeypatch.delenv(name)
    assert initialize_distributed_hpu() == (1, -1, -1)
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "16")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "11")
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_RANK", "3")
    assert initialize_distributed_hpu() == (16, 11, 3)
    import os

    assert (os.environ["HLS_MODULE_ID"], os.environ["MASTER_PORT"]) == ("3", "12345")
