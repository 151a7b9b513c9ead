"""`MemoryOptimizer`, `AdvancedMemoryManager` and the job's `memory` section: each option's effect, or its reason."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest
import torch
from small_llama import Operations, gradients, loss, samples, small_llama, spec
from torch import Tensor, nn

from gaudi3_scale import config as configuration
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.hpu import kernels
from gaudi3_scale.hpu.device import Device
from gaudi3_scale.memory import AdvancedMemoryManager, MemoryOptimizer, MicroBatches, apply, predict_step
from gaudi3_scale.memory.checkpointing import levels_of
from gaudi3_scale.models.build import build
from gaudi3_scale.models.objectives import training_loss

CPU = Device("cpu", 0, "gloo")


def test_micro_batches_accumulate_the_gradient_of_the_whole_batch() -> None:
    optimizer = MemoryOptimizer(enable_gradient_checkpointing=True, micro_batch_size=3, accumulation_steps=4)
    model = optimizer.optimize_model(small_llama())
    assert set(levels_of(model).values()) == {"full"}
    assert optimizer.report() == {
        "enable_gradient_checkpointing": "3 blocks are recomputed in backward",
        "enable_hpu_graphs": "off",
        "micro_batch_size": (
            "micro_batches splits batches of up to 12 samples into 4 x 3, with the gradient of the whole"
        ),
    }
    micro_batches, batch = optimizer.micro_batches, samples(11)  # the last micro-batch has two samples
    assert micro_batches is not None and [len(part) for part in micro_batches.split(batch)] == [3, 3, 3, 2]
    value = micro_batches.backward(lambda part: loss(model, part), batch)
    reference = small_llama()
    expected = gradients(reference, batch)
    assert value == pytest.approx(loss(reference, batch).item(), rel=1e-6)
    for name, parameter in model.named_parameters():
        assert torch.allclose(parameter.grad, expected[name], atol=1e-7), name


def test_micro_batches_weigh_by_tokens_where_the_loss_does() -> None:
    weight = torch.ones(4, requires_grad=True)
    batch = {"x": torch.arange(16.0).view(4, 4), "labels": torch.tensor([[1, 1, 1, 1], [1, -100, -100, -100]] * 2)}

    def mean(part: dict[str, Tensor]) -> Tensor:
        return (part["x"] * weight)[part["labels"] != -100].mean()

    def tokens(part: dict[str, Tensor]) -> Tensor:
        return (part["labels"] != -100).sum()

    MicroBatches(1, 4).backward(mean, batch, tokens)
    found, weight.grad = weight.grad, None
    mean(batch).backward()
    assert torch.allclose(found, weight.grad)


def test_micro_batch_refusals() -> None:
    with pytest.raises(ConfigError, match=r"9 samples, more than micro_batch_size 4 x accumulation_steps 2 = 8: raise"):
        list(MicroBatches(4, 2).split(torch.ones(9)))
    with pytest.raises(ConfigError, match=r"tensors of \[2, 3\] samples: all must have as many"):
        list(MicroBatches(4).split([torch.ones(2), torch.ones(3)]))
    with pytest.raises(ConfigError, match=r"^micro_batch_size is 0 and accumulation_steps 1: both must be at least 1"):
        MicroBatches(0)
    with pytest.raises(ConfigError, match=r"^accumulation_steps is 4 without a micro_batch_size: give both"):
        MemoryOptimizer(accumulation_steps=4)


def test_hpu_graphs_wrap_inference_in_lazy_mode_or_say_why_not(monkeypatch: pytest.MonkeyPatch) -> None:
    optimizer = MemoryOptimizer(enable_hpu_graphs=True)
    model = nn.Linear(2, 2)

    def effect() -> str:
        optimizer.optimize_model(model)
        return optimizer.report()["enable_hpu_graphs"]

    assert effect() == "no effect: HPU graphs need an HPU"
    monkeypatch.setitem(kernels._GRAPHS, "cpu", kernels._GRAPHS["hpu"])  # what an HPU would get
    monkeypatch.setenv("PT_HPU_LAZY_MODE", "0")
    assert effect() == "no effect: HPU graphs exist in lazy mode only, and PT_HPU_LAZY_MODE is not 1"
    monkeypatch.setenv("PT_HPU_LAZY_MODE", "1")
    hpu = ModuleType("habana_frameworks.torch.hpu")
    hpu.wrap_in_hpu_graph = nn.Sequential  # type: ignore[attr-defined]
    for name in ("habana_frameworks", "habana_frameworks.torch"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, hpu.__name__, hpu)
    assert effect().startswith("no effect: a graph replays inference, and the model is in training mode")
    wrapped = optimizer.optimize_model(model.eval())
    assert isinstance(wrapped, nn.Sequential) and wrapped[0] is model


def test_checkpointing_starts_above_a_size() -> None:
    size = sum(parameter.numel() for parameter in small_llama().parameters())
    for options, level in (
        ({"checkpoint_above_parameters": size}, "none"),
        ({"checkpoint_above_parameters": size - 1}, "full"),
        ({"checkpoint_above_bytes": 4 * size}, "none"),
        ({"checkpoint_above_bytes": 4 * size - 1}, "full"),
        ({}, "none"),
    ):
        manager = AdvancedMemoryManager(**options)  # type: ignore[arg-type]
        assert set(levels_of(manager.prepare_model(small_llama())).values()) == {level}
    assert manager.report()["checkpointing"] == "off: no size was given"
    with pytest.raises(ConfigError, match="give one of the two"):
        AdvancedMemoryManager(checkpoint_above_parameters=1, checkpoint_above_bytes=1)


def test_buckets_make_few_shapes_and_leave_the_loss() -> None:
    manager = AdvancedMemoryManager(sequence_buckets=[16, 32])
    model = small_llama()
    for length in (5, 9, 16, 17, 30):
        tokens = samples(2, length)
        batch = {"input_ids": tokens[:, :-1], "labels": tokens[:, 1:]}
        padded = manager.prepare_batch(batch)
        assert padded["input_ids"].shape == padded["attention_mask"].shape == (2, 16 if length <= 16 else 32)
        assert padded["attention_mask"].sum() == 2 * length and (padded["labels"][:, length:] == -100).all()

        def value(part: dict[str, Tensor]) -> Tensor:
            logits = model(
                input_ids=part["input_ids"], attention_mask=part.get("attention_mask"), use_cache=False
            ).logits
            return nn.functional.cross_entropy(logits.flatten(0, 1), part["labels"].flatten())

        assert torch.allclose(value(padded), value(batch), atol=1e-6)
    padding = manager.padding()
    assert padding is not None and (padding.lengths, padding.shapes) == (5, 2)
    assert padding.waste == pytest.approx(1 - (5 + 9 + 16 + 17 + 30) / (3 * 16 + 2 * 32))
    assert len(manager.shapes.signatures) == 2
    with pytest.raises(
        ConfigError, match=r"^A sequence of 33 tokens is longer than the largest bucket, 32: cut it, or"
    ):
        manager.prepare_batch({"input_ids": samples(1, 32)})


def test_loaders_pin_memory_where_the_device_gains() -> None:
    manager = AdvancedMemoryManager()
    data = torch.utils.data.TensorDataset(torch.ones(4, 1))
    assert manager.loader(data, "cpu", batch_size=2).pin_memory is False
    assert manager.report()["pin_memory"] == "no effect: batches are in host memory already"
    assert manager.loader(data, "hpu", batch_size=2).pin_memory is True
    assert manager.report()["pin_memory"] == "batches in page-locked memory, copied unawaited"
    assert AdvancedMemoryManager(pin_memory=False).loader(data, "hpu").pin_memory is False


SMALL = ("model.hidden_size=64", "model.intermediate_size=128", "model.layers=3", "model.sequence_length=64")


def test_the_job_applies_its_memory_section() -> None:
    model = small_llama("eager")
    settings = (*SMALL, "memory.attention=flash", "memory.fused_rope=true", "memory.activation_checkpointing=selective")
    done = apply(model, loss, configuration.load(None, settings), CPU)
    assert list(done) == ["attention", "fused_rope", "activation_checkpointing"]
    assert done["activation_checkpointing"] == "selective on 3 blocks"
    with Operations() as operations:
        loss(model, samples(2)).backward()
    assert operations.names["_scaled_dot_product_flash_attention_for_cpu"] == 3
    assert operations.names["silu"] == 6
    assert done["fused_rope"] == "no effect: only an HPU has a rotary kernel of its own"
    untouched = small_llama("eager")
    assert apply(untouched, loss, configuration.load(None, SMALL), CPU) == {}
    assert set(levels_of(untouched).values()) == {"none"}


def test_experts_on_an_hpu_are_computed_without_grouped_products() -> None:
    config = configuration.load(None, ("model.name=mixtral-tiny", "model.sequence_length=16"))
    for device, way, said in (
        (CPU, "grouped_mm", {}),
        (
            Device("hpu", 0, "hccl"),
            "eager",
            {"experts": "one after the other, as no public list of the bridge's operations has grouped products"},
        ),
    ):
        model: Any = build(config.model)
        done = apply(model, loss, config, device)
        done.pop("attention", None)  # there is no kernel of Habana's here
        assert (done, model.config._experts_implementation) == (said, way)


def test_the_job_plans_by_its_budget() -> None:
    budget = ("memory.activation_checkpointing=budget", "memory.margin=0")
    model = small_llama()
    with pytest.raises(ConfigError, match=r"device cpu has no memory of its own .*: set memory.budget_gib\.$"):
        apply(model, loss, configuration.load(None, (*SMALL, *budget)), CPU)
    done = apply(model, loss, configuration.load(None, (*SMALL, *budget, "memory.budget_gib=1")), CPU)
    assert done["activation_checkpointing"].startswith("0 of 3 blocks recomputed, 0 all but their products")
    most = predict_step(model, loss, spec(8)).peak / 2**30
    apply(model, loss, configuration.load(None, (*SMALL, *budget, f"memory.budget_gib={0.95 * most}")), CPU)
    assert "none" in levels_of(model).values() and set(levels_of(model).values()) != {"none"}
    with pytest.raises(
        ConfigError, match=r"^A step of 8 sample\(s\) needs .* lower the micro-batch to \d, or raise the"
    ):
        apply(model, loss, configuration.load(None, (*SMALL, *budget, f"memory.budget_gib={0.35 * most}")), CPU)
    with pytest.raises(
        ConfigError, match=r"memory: budget_gib is 4, which nothing uses while activation_checkpointing"
    ):
        configuration.load(None, ("memory.budget_gib=4",))
    with pytest.raises(ConfigError, match=r"memory.budget_gib is 0, but it should be greater than 0\.$"):
        configuration.load(None, (*budget, "memory.budget_gib=0"))


def test_the_plan_by_a_budget_knows_the_mask_of_documents() -> None:
    """It is as large as the square of a sample, and there through all blocks."""
    model, lines = small_llama(), torch.zeros((8, 3, 64), dtype=torch.int64, device="meta")
    plain, masked = (predict_step(model, training_loss, [each]).peak for each in (*spec(8), lines))
    assert masked > plain + 8 * 64 * 64
    settings = [*SMALL, "train.micro_batch_size=8", "memory.activation_checkpointing=budget", "memory.margin=0"]
    settings.append(f"memory.budget_gib={(plain + 16384) / 2**30:.9f}")
    done = apply(model, training_loss, configuration.load(None, settings), CPU)
    assert done["activation_checkpointing"].startswith("0 of 3 blocks recomputed, 0 all but their products")
    done = apply(model, training_loss, configuration.load(None, [*settings, "data.documents=true"]), CPU)
    assert not done["activation_checkpointing"].startswith("0 of 3 blocks recomputed, 0 all but their products")
