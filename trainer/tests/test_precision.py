"""Each option of the precision plugin, by what it changes in the operations that run."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import lightning.pytorch as pl
import pytest
import torch
from conftest import QUIET
from small_llama import Operations, gradients, loss, samples, small_llama
from torch import Tensor, nn

from gaudi3_scale.errors import ConfigError
from gaudi3_scale.hpu.device import Device
from gaudi3_scale.memory.checkpointing import checkpoint_all
from gaudi3_scale.precision import GaudiMixedPrecision, build_precision

BF16, FP32 = torch.bfloat16, torch.float32
OFF = {"use_fused_rope": False, "use_flash_attention_v2": False}


def run(plugin: GaudiMixedPrecision, model: nn.Module, passes: int = 1) -> tuple[Operations, dict[str, Tensor]]:
    """The operations of a step and its gradients."""
    model = plugin.convert_module(model)
    with Operations() as operations:
        for _ in range(passes):
            with plugin.forward_context():
                value = loss(model, samples(2))
            value.backward()
    plugin.drop_cache()
    return operations, {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


def test_each_precision_computes_in_its_dtype() -> None:
    products = {}
    for name in ("32-true", "bf16-mixed", "bf16-true"):
        model = small_llama()
        operations, _ = run(GaudiMixedPrecision(name, **OFF), model)
        products[name] = {dtype for (op, dtype) in operations.dtypes if op == "mm"}
        assert next(model.parameters()).dtype == (BF16 if name == "bf16-true" else FP32)
    assert products == {"32-true": {FP32}, "bf16-mixed": {BF16}, "bf16-true": {BF16}}
    assert (
        GaudiMixedPrecision("bf16-true").convert_input([torch.ones(1), torch.ones(1, dtype=torch.int64)])[0].dtype
        == BF16
    )


@pytest.mark.parametrize("level", ["none", "full"])
@pytest.mark.parametrize("precision", ["bf16-mixed", "bf16-true"])
def test_optimize_bmm_decides_the_dtype_of_batched_products(precision: str, level: Any) -> None:
    found = {}
    for wanted in (True, False):
        model = small_llama("eager")
        checkpoint_all(model, level)  # also when a block is computed again, outside of the forward context
        operations, _ = run(GaudiMixedPrecision(precision, optimize_bmm=wanted, **OFF), model)
        found[wanted] = {dtype for (op, dtype) in operations.dtypes if op == "bmm"}
        assert {dtype for (op, dtype) in operations.dtypes if op == "mm"} == {BF16}
    assert found == {True: {BF16}, False: {FP32}}


def test_flash_attention_is_chosen_and_equals_eager() -> None:
    plugin = GaudiMixedPrecision("32-true", use_fused_rope=False)
    operations, found = run(plugin, small_llama("eager"))
    assert operations.names["_scaled_dot_product_flash_attention_for_cpu"] == 3 and operations.names["bmm"] == 0
    assert plugin.report()["use_flash_attention_v2"].endswith("flash or memory-efficient where it can instead of eager")
    left, expected = run(GaudiMixedPrecision("32-true", **OFF), small_llama("eager"))
    assert left.names["_scaled_dot_product_flash_attention_for_cpu"] == 0 and left.names["bmm"] > 0
    assert all(torch.allclose(found[name], expected[name], atol=1e-6) for name in expected)


def test_flash_attention_heeds_a_mask() -> None:
    tokens, mask = samples(2)[:, :16], torch.ones(2, 16, dtype=torch.int64)
    mask[1, 10:] = 0
    eager, flash = small_llama("eager"), small_llama("eager")
    GaudiMixedPrecision("32-true", use_fused_rope=False).convert_module(flash)
    one, other = (model(input_ids=tokens, attention_mask=mask).logits[mask == 1] for model in (eager, flash))
    assert torch.allclose(one, other, atol=1e-5)


def test_cached_weights_are_cast_once_per_step_with_equal_gradients() -> None:
    casts, grads = {}, {}
    for wanted in (True, False):
        operations, grads[wanted] = run(GaudiMixedPrecision(cache_fp32_weights=wanted, **OFF), small_llama(), passes=3)
        casts[wanted] = operations.dtypes["_to_copy", BF16]
    weights = 3 * 7 + 1  # of the blocks' projections, and the head
    assert casts[False] - casts[True] == 2 * weights
    assert all(torch.equal(grads[True][name], grads[False][name]) for name in grads[True])


class Module(pl.LightningModule):
    """Trains a small Llama on one batch, which a user's module would do much like this."""

    def __init__(self) -> None:
        super().__init__()
        self.model = small_llama("eager", layers=2)
        self.losses: list[float] = []

    def training_step(self, batch: Tensor, batch_idx: int) -> Tensor:
        value = loss(self.model, batch)
        self.losses.append(value.item())
        return value

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


def fit(plugin: GaudiMixedPrecision, accumulation: int) -> Module:
    module = Module()
    trainer = pl.Trainer(
        accelerator="cpu",
        plugins=[plugin],
        max_steps=3,
        accumulate_grad_batches=accumulation,
        **QUIET,
    )
    trainer.fit(module, torch.utils.data.DataLoader(samples(12), batch_size=2))
    return module


def test_in_a_trainer_no_cast_outlives_the_optimizer_step() -> None:
    cached, cast_anew = (fit(GaudiMixedPrecision(cache_fp32_weights=on), 2) for on in (True, False))
    assert len(cached.losses) == 6
    assert cached.losses == cast_anew.losses  # a stale cast would show from the third pass on
    assert torch.is_autocast_cache_enabled() and torch.autocast_decrement_nesting() == -1
    torch.autocast_increment_nesting()


def test_report_says_why_an_option_does_nothing() -> None:
    plain = GaudiMixedPrecision("32-true")
    plain.convert_module(nn.Linear(2, 2))
    assert plain.report() == {
        "precision": "32-true",
        "optimize_bmm": "no effect: 32-true computes everything in float32",
        "use_fused_rope": "no effect: only an HPU has a rotary kernel of its own",
        "use_flash_attention_v2": "Linear is no transformers model, so its attention stays as it is written",
        "cache_fp32_weights": "no effect: 32-true computes everything in float32",
    }
    with pytest.raises(ConfigError, match=r"^precision is '16-mixed': give one of 32-true, bf16-mixed, bf16-true\.$"):
        GaudiMixedPrecision("16-mixed")


def test_the_jobs_plugin_leaves_the_model_alone() -> None:
    model = small_llama("eager")
    plugin = build_precision("bf16-mixed", Device("cpu", 0, "gloo"))
    operations, _ = run(plugin, model)
    assert operations.names["addcmul_"] == 0 and operations.names["bmm"] > 0
    assert operations.dtypes["mm", BF16] > 0


def test_hpu_kernels_are_called_as_habana_has_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls: list[Any] = []

    class FusedSDPA:
        @staticmethod
        def apply(q: Tensor, k: Tensor, v: Tensor, mask: Any, *rest: Any) -> Tensor:
            calls.append(("sdpa", q.shape, k.shape, mask, rest))
            return nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=rest[1], scale=rest[2], enable_gqa=True
            )

    class RotaryPosEmbeddingHelperV2:
        @staticmethod
        def apply(x: Tensor, cos: Tensor, sin: Tensor, positions: Tensor) -> Tensor:
            calls.append(("rope", x.shape, cos.shape, positions.shape))
            half = x.shape[-1] // 2
            return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin

    kernels = ModuleType("habana_frameworks.torch.hpex.kernels")
    kernels.FusedSDPA, kernels.RotaryPosEmbeddingHelperV2 = FusedSDPA, RotaryPosEmbeddingHelperV2  # type: ignore[attr-defined]
    for name in ("habana_frameworks", "habana_frameworks.torch", "habana_frameworks.torch.hpex"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, kernels.__name__, kernels)
    from transformers.models.llama import modeling_llama

    from gaudi3_scale.hpu import kernels as ours
    from gaudi3_scale.memory import attention

    # operations run on the CPU; the table is asked for what an HPU would get
    monkeypatch.setitem(ours._ATTENTION, "cpu", ours._ATTENTION["hpu"])
    monkeypatch.setitem(ours._ROTARY, "cpu", ours._ROTARY["hpu"])
    plugin = GaudiMixedPrecision("32-true", device="hpu")
    monkeypatch.setattr(attention, "_KERNELS", {})  # those of the tests before this one
    monkeypatch.setattr(modeling_llama, "apply_rotary_pos_emb", modeling_llama.apply_rotary_pos_emb)
    _, found = run(plugin, small_llama("eager"))
    assert calls[0] == ("rope", (2, 4, 64, 16), (1, 1, 64, 16), (1, 64))
    attended = next(call for call in calls if call[0] == "sdpa")
    # no dropout, causal, scale 1/sqrt(16), default softmax, recomputed in backward
    assert attended == ("sdpa", (2, 4, 64, 16), (2, 2, 64, 16), None, (0.0, True, 0.25, "None", True))
    expected = gradients(small_llama("eager"), samples(2))
    assert all(torch.allclose(found[name], expected[name], atol=1e-6) for name in expected)
    assert plugin.report()["use_flash_attention_v2"] == "Habana's FusedSDPA with recomputed softmax instead of eager"

    operations = tmp_path / "bf16.txt"
    operations.write_text("linear\nmatmul\n")
    monkeypatch.setenv(ours.LOWER_LIST, str(operations))
    assert GaudiMixedPrecision(device="hpu").report()["optimize_bmm"] == (
        f"no effect: the file that {ours.LOWER_LIST} names replaces Habana's list and has no bmm"
    )
    operations.write_text("linear\nbmm\n")
    assert GaudiMixedPrecision(device="hpu").report()["optimize_bmm"].startswith("batched products in bfloat16")


def test_options_see_the_device_that_the_trainer_moves_the_module_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lightning converts a module before it moves it, so its parameters still name the CPU."""
    from gaudi3_scale.memory import attention, rotary

    seen: list[tuple[str, str]] = []
    monkeypatch.setattr(attention, "use_attention", lambda module, kind, device: seen.append(("sdpa", device)) or "")
    monkeypatch.setattr(rotary, "use_fused_rotary", lambda module, device: seen.append(("rope", device)) or "")
    module: Any = pl.LightningModule()
    module.model = nn.Linear(2, 2)
    plugin = GaudiMixedPrecision()
    plugin.convert_module(module)
    assert seen == [("sdpa", "cpu"), ("rope", "cpu")]  # outside of a trainer: where the parameters are
    seen.clear()
    module._trainer = SimpleNamespace(
        strategy=SimpleNamespace(root_device=torch.device("hpu", 0)), accumulate_grad_batches=1
    )
    plugin.convert_module(module)
    assert seen == [("sdpa", "hpu"), ("rope", "hpu")]
    assert plugin.device_type == "hpu"
