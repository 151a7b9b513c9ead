"""Prediction of a step's memory against what torch's CPU allocator gives out."""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from functools import partial
from typing import Any

import pytest
import torch
from small_llama import allocated_peak, loss, samples, small_llama, spec
from torch import nn

from gaudi3_scale import config as configuration
from gaudi3_scale.memory import predict_step
from gaudi3_scale.memory.checkpointing import checkpoint_all, levels_of
from gaudi3_scale.memory.tracker import StorageTracker, fake_mode
from gaudi3_scale.models.build import build
from gaudi3_scale.models.objectives import example, training_loss

MIXED = partial(torch.autocast, "cpu", dtype=torch.bfloat16)


@pytest.mark.parametrize(
    ("attention", "level", "precision"),
    [
        ("sdpa", "none", nullcontext),
        ("eager", "none", MIXED),
        ("sdpa", "selective", MIXED),
        ("eager", "selective", nullcontext),
        ("sdpa", "full", nullcontext),
        ("eager", "full", MIXED),
    ],
)
def test_prediction_is_within_one_percent_of_the_allocator(attention: str, level: Any, precision: Any) -> None:
    def make() -> nn.Module:
        model = small_llama(attention)
        checkpoint_all(model, level)
        return model

    predicted = predict_step(make(), loss, spec(12), precision=precision).peak
    assert predicted == pytest.approx(allocated_peak(make, samples(12), precision), rel=0.01)


@pytest.mark.parametrize("name", ["mixtral-tiny", "bert-tiny"])
def test_prediction_holds_for_experts_and_for_masked_models(name: str) -> None:
    job = configuration.load(None, (f"model.name={name}", "model.sequence_length=64"))

    def make() -> nn.Module:
        torch.manual_seed(7)
        return build(job.model).train()

    inputs = example(job.model, 8)
    predicted = predict_step(make(), training_loss, [inputs]).peak
    assert predicted == pytest.approx(allocated_peak(make, inputs, objective=training_loss), rel=0.01)


def test_static_bytes_are_exact() -> None:
    model = small_llama()
    size = sum(parameter.numel() for parameter in model.parameters())
    count = len(list(model.parameters()))
    step = predict_step(model, loss, spec(2))
    assert (step.parameters, step.gradients) == (4 * size, 4 * size)
    assert step.optimizer_state == 8 * size + 4 * count  # two moments, and a step counter each
    assert step.peak == max(step.forward, step.backward, step.optimizer)
    assert step.optimizer >= step.static
    half = predict_step(small_llama().to(torch.bfloat16), loss, spec(2), optimizer=None)
    assert (half.parameters, half.gradients, half.optimizer_state) == (2 * size, 2 * size, 0)


def test_activations_are_linear_in_the_batch_and_the_rest_does_not_move() -> None:
    one, two, three = (predict_step(small_llama(), loss, spec(batch)) for batch in (8, 16, 24))
    assert one.static == two.static == three.static
    assert three.activations - two.activations == two.activations - one.activations > 0


def test_kept_gradients_count_during_all_passes() -> None:
    model = small_llama()
    size = sum(4 * parameter.numel() for parameter in model.parameters())
    once = predict_step(model, loss, spec(8))
    buckets = predict_step(model, loss, spec(8), gradient_buckets=True)
    accumulated = predict_step(model, loss, spec(8), accumulation=4)
    assert once.forward == buckets.forward == accumulated.forward  # Lightning frees gradients after the forward pass
    assert buckets.backward > once.backward and accumulated.backward > once.backward
    assert buckets.backward - once.backward <= size


def test_the_model_is_not_touched() -> None:
    model = small_llama()
    checkpoint_all(model, "full")
    before = {name: (id(p), p.clone()) for name, p in model.named_parameters()}
    random = torch.get_rng_state()
    predict_step(model, loss, spec(4), precision=MIXED, accumulation=2)
    assert all(id(p) == before[name][0] and torch.equal(p, before[name][1]) for name, p in model.named_parameters())
    assert all(p.grad is None for p in model.parameters())
    assert torch.equal(torch.get_rng_state(), random)
    assert set(levels_of(model).values()) == {"full"}


def test_a_model_too_large_for_this_machine_can_be_predicted() -> None:
    with torch.device("meta"):
        model = small_llama(layers=2, width=16384)
    step = predict_step(model, loss, spec(1))
    assert step.parameters == sum(4 * parameter.numel() for parameter in model.parameters()) > 8e9


def test_storages_are_counted_once_resized_and_freed() -> None:
    with fake_mode(), StorageTracker() as tracker:
        whole = torch.empty(1000, dtype=torch.float32)
        view = whole[:10].view(2, 5)
        assert tracker.live == 4000
        whole.untyped_storage().resize_(0)
        assert tracker.live == 0
        whole.untyped_storage().resize_(4000)
        assert (tracker.live, tracker.peak) == (4000, 4000)
        del whole
        assert tracker.live == 4000  # the view holds it
        del view
        assert tracker.live == 0


def test_sharded_parameters_are_counted_by_their_local_shards() -> None:
    import torch.distributed as dist
    from torch.distributed.fsdp import fully_shard

    from gaudi3_scale.planning.world import fake_world

    with ExitStack() as stack:
        stack.enter_context(fake_world(4))
        mesh = dist.init_device_mesh("cpu", (4,))
        stack.enter_context(fake_mode())
        tracker = stack.enter_context(StorageTracker())
        model = nn.Sequential(*(nn.Linear(256, 256, bias=False) for _ in range(8)))
        for block in model:
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)
        whole, shards = 8 * 256 * 256 * 4, 2 * 256 * 256 * 4
        model(torch.empty(1, 256)).sum().backward()
        tracker.reset_peak()
        gathered = model(torch.empty(1, 256)).sum()
        assert shards * 2 <= tracker.reset_peak() < whole  # shards, their gradients and a layer or two
        del gathered
