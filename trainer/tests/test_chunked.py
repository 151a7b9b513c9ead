"""The loss in chunks: the same number, the same gradients, and no logits of all tokens."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import ranks
import torch
from test_memory_hpu import on_hpu
from test_memory_hpu import pytestmark as with_the_device
from torch import nn

from gaudi3_scale.config import load
from gaudi3_scale.memory import predict_step
from gaudi3_scale.memory.checkpointing import checkpoint_all
from gaudi3_scale.models.build import build
from gaudi3_scale.models.chunked import CHUNK_BYTES, chunks_for
from gaudi3_scale.models.objectives import example, losses, training_loss

GIB = 2**30


def made(*settings: str) -> tuple[nn.Module, Any]:
    config = load(None, ("model.sequence_length=32", *settings)).model
    torch.manual_seed(5)
    return build(config).train(), config


def learnt(model: nn.Module, samples: torch.Tensor, chunks: int) -> tuple[torch.Tensor, list[torch.Tensor]]:
    model.zero_grad()
    torch.manual_seed(6)  # for dropout
    loss = training_loss(model, samples, chunks)
    loss.backward()
    return loss.detach(), [p.grad.clone() for p in model.parameters() if p.grad is not None]


@pytest.mark.parametrize(
    "settings",
    [
        ("model.name=llama-tiny",),
        ("model.name=llama-tiny", "model.config.tie_word_embeddings=true"),
        ("model.name=llama-tiny", "model.lora.rank=4"),
        ("model.name=mixtral-tiny",),
        ("model.name=bert-tiny",),
    ],
    ids=["llama", "tied", "lora", "mixtral", "bert"],
)
def test_loss_and_gradients_are_those_of_the_whole(settings: tuple[str, ...]) -> None:
    model, config = made(*settings)
    samples = torch.randint(0, 200, example(config, 3).shape)
    if samples.ndim == 3:
        samples[:, 1, ::3] = -100  # not every token is guessed
    whole, wanted = learnt(model, samples, 1)
    chunked, found = learnt(model, samples, 7)  # which does not divide the 96 tokens
    assert chunked.item() == pytest.approx(whole.item(), rel=1e-5)
    assert len(found) == len(wanted) > 0
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5 * theirs.abs().max().item())
    assert losses(model.eval(), samples, 7)[0].item() == pytest.approx(losses(model, samples, 1)[0].item(), rel=1e-5)


def test_logits_that_are_changed_after_the_output_layer_are_computed_whole(tmp_path: Any) -> None:
    from transformers import AutoConfig

    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "vocab_size": 300, "head_dim": 8}
    AutoConfig.for_model(
        "gemma2", **sizes, num_attention_heads=2, num_key_value_heads=1, architectures=["Gemma2ForCausalLM"]
    ).save_pretrained(tmp_path)
    model, config = made(f"model.name={tmp_path}", "model.weights=random")
    assert chunks_for(model, 64, 8) == 1
    assert losses(model, example(config, 2), 8)[0].item() == losses(model, example(config, 2), 1)[0].item()


@pytest.mark.parametrize("name", ["recurrent_gemma", "mobilebert"])
def test_a_model_that_computes_logits_in_its_own_way_trains_as_without_chunks(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """One caps its logits by a setting of its own, the other has no call of its output layer; dropout is on."""
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM

    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "vocab_size": 300}
    if name == "mobilebert":
        narrow = {"embedding_size": 8, "intra_bottleneck_size": 8, "hidden_dropout_prob": 0.5}
        built = AutoConfig.for_model(name, **sizes, **narrow, num_attention_heads=2)
        built.architectures = ["MobileBertForMaskedLM"]
        samples = torch.randint(3, 200, (2, 2, 16))
    else:
        built = AutoConfig.for_model(name, **sizes, lru_width=16, num_attention_heads=2, head_dim=8)
        samples = torch.randint(3, 200, (2, 17))
    model = (AutoModelForMaskedLM if name == "mobilebert" else AutoModelForCausalLM).from_config(built).train()
    whole, wanted = learnt(model, samples, 1)
    for _ in range(2):  # the first pass finds it out, the second knows
        loss, found = learnt(model, samples, 4)
        assert loss.equal(whole)
        assert all(one.equal(other) for one, other in zip(found, wanted, strict=True))
    assert [record.getMessage() for record in caplog.records] == [
        f"memory.loss_chunks has no effect: {type(model).__name__} computes its logits with more than its output layer"
    ]


def sharded(rank: int) -> list[tuple[float, list[Any]]]:
    """Loss and whole gradients, plain and in parts, with the output layer spread over the ranks."""
    from torch.distributed.device_mesh import init_device_mesh

    from gaudi3_scale.integration.sharding import shard

    warnings.simplefilter("error", UserWarning)  # of a view that would lose the hooks of backward
    found = []
    for chunks in (1, 5):
        model, config = made("model.layers=1", "model.hidden_size=32")
        shard(nn.ModuleList([model]), init_device_mesh("cpu", (2,)))
        samples = torch.randint(0, 200, example(config, 2).shape, generator=torch.Generator().manual_seed(rank))
        loss, _ = learnt(model, samples, chunks)
        gradients: list[Any] = [parameter.grad for parameter in model.parameters()]
        found.append((loss.item(), [gradient.full_tensor().numpy() for gradient in gradients]))
    return found


def test_a_sharded_output_layer_gives_the_same_gradients(tmp_path: Path) -> None:
    for (whole, wanted), (chunked, found) in ranks.run(2, tmp_path, sharded):
        assert chunked == pytest.approx(whole, rel=1e-5)
        for ours, theirs in zip(found, wanted, strict=True):
            assert ours == pytest.approx(theirs, rel=1e-5, abs=1e-5 * float(abs(theirs).max()))


def test_the_number_of_chunks_follows_from_the_size_of_the_logits() -> None:
    model, _ = made("model.name=llama-tiny")
    vocabulary = model.get_output_embeddings().weight.shape[0]
    most = CHUNK_BYTES // 4 // vocabulary
    assert [chunks_for(model, tokens) for tokens in (most, most + 1, 3 * most)] == [1, 2, 4]
    assert [chunks_for(model, 100, wanted) for wanted in (1, 16, 1000)] == [1, 16, 100]


def test_a_further_sample_of_llama_8b_at_8k_costs_a_quarter() -> None:
    config = load(None, ("model.name=llama-3.1-8b", "model.sequence_length=8192", "train.precision=bf16-mixed")).model
    model = build(config, device="meta").train()
    checkpoint_all(model, "full")

    autocast = partial(torch.autocast, "cpu", dtype=torch.bfloat16)
    loss = partial(training_loss, chunks=16)
    one, two = (
        predict_step(model, loss, [example(config, batch, "meta")], optimizer=None, precision=autocast, accumulation=2)
        for batch in (1, 2)
    )
    assert (two.peak - one.peak) / GIB <= 4.0  # 16.05 with the logits of all tokens at once


@with_the_device
def test_chunks_save_on_the_device_what_is_predicted() -> None:
    """Per further sample, as many logits to a token as the 8B model has for its width: about 32 to 1."""
    script = """
from gaudi3_scale.config import load
from gaudi3_scale.models.build import build
from gaudi3_scale.models.objectives import example, training_loss
config = load(None, ["model.layers=2", "model.hidden_size=64", "model.vocab_size=2048",
                     "model.sequence_length=256"]).model

def measured(chunks, batch):
    model = build(config).train()
    checkpoint_all(model, "full")
    loss = partial(training_loss, chunks=chunks)
    predicted = predict_step(model, loss, [example(config, batch, "meta")], optimizer=None).peak
    before = torch.hpu.memory_allocated()
    model.to("hpu")
    samples = example(config, batch, "hpu")
    torch.hpu.reset_peak_memory_stats()
    loss(model, samples).backward()
    return predicted, torch.hpu.memory_stats()["MaxInUse"] - before

slopes = {}
for chunks in (1, 16):
    one, three = measured(chunks, 1), measured(chunks, 3)
    slopes[chunks] = [(more - less) / 2 for more, less in zip(three, one)]
print(json.dumps(slopes))
"""
    found = on_hpu(script)
    (predicted, measured), (predicted_in_parts, measured_in_parts) = found["1"], found["16"]
    assert measured - measured_in_parts == pytest.approx(predicted - predicted_in_parts, rel=0.05)
    assert measured > 2 * measured_in_parts
