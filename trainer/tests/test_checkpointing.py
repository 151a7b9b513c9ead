"""Activation checkpointing: the same gradients, and a second computation of just what the level says."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from small_llama import Operations, gradients, loss, samples, small_llama
from torch import nn
from torch.distributed.checkpoint.state_dict import get_model_state_dict
from torch.distributed.fsdp import fully_shard

from gaudi3_scale.errors import ConfigError
from gaudi3_scale.memory.checkpointing import checkpoint_all, checkpoint_blocks, levels_of
from gaudi3_scale.models.blocks import repeated_blocks


@pytest.mark.parametrize("level", ["selective", "full"])
@pytest.mark.parametrize("mixed", [False, True])
def test_gradients_are_equal_with_dropout(level: str, mixed: bool) -> None:
    model, batch = small_llama("eager", dropout=0.2), samples(3)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=mixed):
        expected = gradients(model, batch)
        checkpoint_all(model, level)
        found = gradients(model, batch)
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_levels_recompute_what_they_say() -> None:
    model, batch = small_llama(), samples(2)
    counts = {}
    for level in ("none", "selective", "full"):
        checkpoint_all(model, level)
        with Operations() as operations:
            loss(model, batch).backward()
        counts[level] = operations.names
    products, silus = counts["none"]["mm"], counts["none"]["silu"]
    assert silus == 3  # one per block
    assert (counts["selective"]["mm"], counts["selective"]["silu"]) == (products, 2 * silus)
    # of a block's 7 projections all but the last, whose result nothing in backward needs
    assert (counts["full"]["mm"], counts["full"]["silu"]) == (products + 3 * 6, 2 * silus)


def test_names_classes_and_state_stay() -> None:
    model = small_llama()
    names, kinds = list(model.state_dict()), [type(module) for module in model.modules()]
    checkpoint_all(model, "full")
    assert list(model.state_dict()) == names == [name for name, _ in model.named_parameters()]
    assert [type(module) for module in model.modules()] == kinds


def test_levels_can_be_changed_and_taken_back() -> None:
    model = small_llama()
    checkpoint_all(model, "full")
    checkpoint_blocks(model, {"model.layers.1": "selective", "model.layers.2": "none"})
    assert list(levels_of(model).values()) == ["full", "selective", "none"]
    assert "forward" not in model.model.layers[2].__dict__


def test_copy_recomputes_its_own_weights() -> None:
    model, batch = small_llama(), samples(2)
    checkpoint_all(model, "full")
    twin = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    expected = gradients(small_llama(), batch)
    assert all(torch.equal(gradient, expected[name]) for name, gradient in gradients(twin, batch).items())


def test_evaluation_is_not_checkpointed() -> None:
    model = small_llama()
    checkpoint_all(model, "selective")
    with torch.no_grad(), Operations() as operations:
        loss(model, samples(2))
    assert operations.names["silu"] == 3


def test_refusals() -> None:
    with pytest.raises(ConfigError, match=r"^'model.layers.9' is no repeated block of this LlamaForCausalLM: give one"):
        checkpoint_blocks(small_llama(), {"model.layers.9": "full"})
    with pytest.raises(ConfigError, match=r"'model.layers.0' is 'half': give none, selective or full\.$"):
        checkpoint_blocks(small_llama(), {"model.layers.0": "half"})  # type: ignore[dict-item]
    with pytest.raises(ConfigError, match=r"^Linear has no list of at least two blocks of one class"):
        checkpoint_all(nn.Linear(2, 2), "full")


def test_sharded_blocks_have_equal_gradients_and_names(tmp_path: Path) -> None:
    expected = gradients(small_llama(), samples(2))
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        for level in ("selective", "full"):
            model = small_llama()
            checkpoint_all(model, level)  # before sharding, as the job does
            for _, block in repeated_blocks(model):
                fully_shard(block)
            fully_shard(model)
            found = gradients(model, samples(2))
            assert all(torch.equal(found[name].full_tensor(), expected[name]) for name in expected)
            assert list(get_model_state_dict(model)) == list(expected)
            with Operations() as operations:
                loss(model, samples(2)).backward()
            assert operations.names["silu"] == 6
    finally:
        dist.destroy_process_group()
