"""Which models there are, what they begin with, and the sentence for what cannot be."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest
import ranks
import torch
from conftest import assert_same

from gaudi3_scale.config import Config, ModelConfig, TrainConfig, load
from gaudi3_scale.config.shapes import SHAPES
from gaudi3_scale.data.tokenizer import ByteTokenizer, train_tokenizer
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.hpu.device import Device
from gaudi3_scale.job.data import check
from gaudi3_scale.models import weights
from gaudi3_scale.models.adamw import build_optimizer
from gaudi3_scale.models.blocks import repeated_blocks
from gaudi3_scale.models.build import build
from gaudi3_scale.models.learning_rate import learning_rate_scale
from gaudi3_scale.models.materialise import materialise
from gaudi3_scale.models.objectives import example, losses, sample_loss
from gaudi3_scale.models.weights import weight_files
from gaudi3_scale.step.module import LanguageModule


def made(seed: int = 0, **settings: Any) -> Any:
    """A model of these settings."""
    torch.manual_seed(seed)
    return build(ModelConfig.model_validate({"sequence_length": 32, **settings})).eval()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A transformers folder with weights and a byte tokenizer."""
    path = tmp_path_factory.mktemp("model") / "tiny"
    made(name="llama-tiny").save_pretrained(path)
    ByteTokenizer().save(path)
    return path


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("llama-3.1-8b", 8_030_261_248),
        ("llama-3.1-70b", 70_553_706_496),
        ("mixtral-8x7b", 46_702_792_704),
        ("bert-base", 109_514_298),
        ("bert-large", 335_174_458),
    ],
)
def test_a_published_shape_has_the_published_number_of_parameters(name: str, parameters: int) -> None:
    model = build(ModelConfig(name=name), device="meta")
    assert sum(p.numel() for p in model.parameters()) == parameters
    assert {p.device.type for p in model.parameters()} == {"meta"}


@pytest.mark.parametrize("name", ["llama-tiny", "mixtral-tiny", "bert-tiny"])
def test_every_architecture_begins_knowing_nothing_and_is_the_same_for_the_same_seed(name: str) -> None:
    model = made(name=name)
    assert_same(dict(model.state_dict()), dict(made(name=name).state_dict()))
    samples = example(ModelConfig(name=name, sequence_length=32), 4)
    samples += torch.randint(0, 256, samples.shape, generator=torch.Generator().manual_seed(1))
    assert sample_loss(model, samples).item() == pytest.approx(math.log(SHAPES[name]["vocab_size"]), rel=0.02)


def test_a_causal_prediction_is_of_the_next_token_only() -> None:
    model, samples = made(name="llama-tiny"), torch.arange(66).reshape(2, 33)
    changed = samples.clone()
    changed[:, -1] = 200  # a target, and no input
    logits = model(input_ids=samples[:, :-1]).logits
    expected = -torch.log_softmax(logits[:, -1], -1)
    lost = (expected[:, 200] - expected[torch.arange(2), samples[:, -1]]).mean() / 32
    assert (sample_loss(model, changed) - sample_loss(model, samples)).item() == pytest.approx(lost.item(), abs=1e-5)


def test_a_masked_loss_is_over_the_guessed_tokens() -> None:
    model = made(name="bert-tiny")
    samples = torch.full((1, 2, 32), 7)
    samples[:, 1] = -100
    samples[0, 0, 5], samples[0, 1, 5] = 256, 9
    logits = model(input_ids=samples[:, 0]).logits[0, 5]
    assert sample_loss(model, samples).item() == pytest.approx(-torch.log_softmax(logits, -1)[9].item(), abs=1e-5)


def test_the_router_of_experts_is_balanced_while_training_and_only_then() -> None:
    model, samples = made(name="mixtral-tiny"), torch.arange(66).reshape(2, 33)
    assert losses(model, samples)[1] is None
    loss, extra = losses(model.train(), samples)
    own = model(input_ids=samples[:, :-1], labels=samples[:, :-1], output_router_logits=True)
    assert extra is not None and extra.item() == pytest.approx(0.02 * own.aux_loss.item())
    assert extra.item() > 0.02 * 2 * 0.9  # perfectly balanced: as many as there are experts per token
    assert losses(made(name="llama-tiny").train(), samples)[1] is None
    gate = next(p for name, p in model.named_parameters() if "gate" in name and p.shape[0] == 4)
    (with_it,) = torch.autograd.grad(loss + extra, gate, retain_graph=True)
    (without,) = torch.autograd.grad(loss, gate)
    assert not torch.equal(with_it, without)


def test_a_folder_gives_its_weights_or_only_its_shape(folder: Path) -> None:
    assert_same(dict(made(seed=5, name=str(folder)).state_dict()), dict(made(name="llama-tiny").state_dict()))
    random = made(seed=5, name=str(folder), weights="random")
    assert_same(dict(random.state_dict()), dict(made(seed=5, name="llama-tiny").state_dict()))
    deeper = made(name=str(folder), weights="random", config={"num_hidden_layers": 3})
    assert len(deeper.model.layers) == 3


def test_what_the_weights_cannot_be_is_refused(folder: Path, tmp_path: Path) -> None:
    refused(rf"^The weights in '{folder}' lack 'model.layers.2.* in the configured shape: mend the folder, ").build(
        name=str(folder), config={"num_hidden_layers": 3}
    )
    refused(r"mend the folder, take back what model.config changes, or set model.weights to random\.$").build(
        name=str(folder), config={"vocab_size": 300}
    )
    (tmp_path / "config.json").write_bytes((folder / "config.json").read_bytes())
    refused(r"has no weights: give a folder with model.safetensors, or set model.weights to random").build(
        name=str(tmp_path)
    )
    others = ["pytorch_model.bin", "consolidated.00.pth", "model.Q8_0.gguf", "flax_model.msgpack", "original/c.00.pth"]
    for other in others:
        (tmp_path / other).parent.mkdir(exist_ok=True)
        (tmp_path / other).write_bytes(b"weights")
        refused(r"has its weights as .*, which are not read: convert them with save_pretrained, or set").build(
            name=str(tmp_path)
        )
        refused(r"has its weights as ").build(name=str(tmp_path), lora={"rank": 4})
        (tmp_path / other).unlink()
    made(name=str(tmp_path), weights="random")
    (tmp_path / "config.json").write_text('{"model_type": "nonsense"}')
    refused("a folder without a config.json that the installed transformers knows").build(name=str(tmp_path))
    (tmp_path / "config.json").write_text('{"model_type": "vit", "architectures": ["ViTForImageClassification"]}')
    refused("The model is a ViTForImageClassification, which is neither a causal nor a masked language").build(
        name=str(tmp_path)
    )


def test_weights_that_are_not_whole_are_refused_by_file(folder: Path, tmp_path: Path) -> None:
    whole = (folder / "model.safetensors").read_bytes()
    (tmp_path / "config.json").write_bytes((folder / "config.json").read_bytes())
    path = tmp_path / "model.safetensors"
    for content, sentence in [
        (
            b"version https://git-lfs.github.com/spec/v1\noid",
            "is a pointer of Git LFS and not the weights: run 'git lfs",
        ),
        (whole[: len(whole) // 2], f"is cut off after {len(whole) // 2:,} of {len(whole):,} bytes: download it again"),
        (whole[:50], "is cut off after 50 bytes: download it again"),
        (b"", "is no file of safetensors: download it again"),
        (b"<html>not found</html>", "is no file of safetensors: download it again"),
    ]:
        path.write_bytes(content)
        refused(rf"^{path} {sentence}").build(name=str(tmp_path))
    path.rename(tmp_path / "model-00001-of-00004.safetensors")
    refused("has model-00001-of-00004.safetensors, and neither model.safetensors nor model.safetensors.index").build(
        name=str(tmp_path)
    )
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {str(n): f"model-0000{n}-of-00004.safetensors" for n in range(1, 5)}}))
    refused(r"lacks model-00002-of-00004.safetensors and 2 more of its 4 files with weights: download it again").build(
        name=str(tmp_path)
    )
    index.write_text("{")
    for content in ("{", "[]", '{"weight_map": []}', '{"metadata": {}}', "[" * 10**5):
        index.write_text(content)
        sentence = f"^{index} is no index of weights: download it again"
        refused(sentence).build(name=str(tmp_path))
        with pytest.raises(ConfigError, match=sentence):
            weight_files(tmp_path)


def test_a_folder_that_was_saved_again_has_the_new_weights_or_is_refused(tmp_path: Path) -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    model = LlamaForCausalLM(LlamaConfig(vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=2,
                                         num_attention_heads=2, num_key_value_heads=2))  # fmt: skip
    parts = {"max_shard_size": "5KB"}
    for name, first, second in (("whole", parts, {}), ("parts", {}, parts)):
        model.save_pretrained(tmp_path / name, **first)
        model.save_pretrained(tmp_path / name, **second)
        assert (tmp_path / name / "model.safetensors.index.json").exists()
        assert (tmp_path / name / "model.safetensors").exists()
    # The index of the parts, which are gone, is left; transformers reads the one file, too.
    assert set(weight_files(tmp_path / "whole").values()) == {tmp_path / "whole/model.safetensors"}
    refused(r"parts' has its weights twice, in model.safetensors and in the files of model.safetensors.index").build(
        name=str(tmp_path / "parts")
    )


def test_adapters_in_a_folder_are_refused_and_not_put_into_the_model(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text("{}")
    sentence = rf"^The folder '{tmp_path}' holds adapters of peft \(adapter_config.json\), which are not trained on: "
    refused(sentence).build(name=str(tmp_path))  # adapters alone
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    refused(sentence).build(name=str(tmp_path))
    with pytest.raises(ConfigError, match=sentence):
        weight_files(tmp_path)
    made(name=str(tmp_path), weights="random")


def test_the_page_says_that_a_folder_without_weights_is_refused() -> None:
    page = (Path(__file__).parents[2] / "docs" / "use" / "models.md").read_text()
    section = " ".join(page.split("\n## Which model\n")[1].split("\n## ")[0].split())
    assert "A folder without weights, or with a part of them, is refused unless you set `model.weights=random`:" in (
        section
    )


def test_only_one_module_reads_what_a_folder_says_of_its_weights() -> None:
    sources = Path(weights.__file__).parents[1]
    named = {str(path.relative_to(sources)) for path in sources.rglob("*.py") if "weight_map" in path.read_text()}
    assert named == {"models/folder.py"}


class refused:
    """Something has to be refused with a sentence."""

    def __init__(self, sentence: str) -> None:
        self.sentence = sentence

    def build(self, **settings: Any) -> None:
        """Building this model."""
        with pytest.raises(ConfigError, match=self.sentence) as error:
            made(**settings)
        assert str(error.value).endswith((".", "?")) and "\n" not in str(error.value)

    def job(self, *overrides: str) -> None:
        """Checking this job's model against its tokenizer."""
        with pytest.raises(ConfigError, match=self.sentence) as error:
            check(load(None, overrides))
        assert str(error.value).endswith((".", "?")) and "\n" not in str(error.value)


def test_names_and_overrides_are_checked() -> None:
    refused(r"^model.name is 'lama-3.1-8b', which is no known shape and no folder .*: did you mean 'llama-3.1-8b'").job(
        "model.name=lama-3.1-8b"
    )
    refused(r"^model.name is './gone', which is no known shape and no folder on this node: known are llama, ").job(
        "model.name=./gone"
    )
    refused("^model.layers is set, but it counts for the name llama only: change sizes of 'bert-tiny' with ").job(
        "model.name=bert-tiny", "model.layers=2"
    )
    refused(r"has 'num_layers', which .* 'llama-tiny' does not: did you mean 'num_hidden_layers'\?").job(
        "model.name=llama-tiny", "model.config={num_layers: 2}"
    )
    refused("sets 'num_hidden_layers' to \"two\", which is no int as the 2 of 'llama-tiny': give a value of").job(
        "model.name=llama-tiny", "model.config={num_hidden_layers: two}"
    )
    refused("^model.sequence_length is 600, and 'llama-tiny' has 512 positions: choose at most 512").job(
        "model.name=llama-tiny", "model.sequence_length=600"
    )


def test_the_tokenizer_has_to_fit_the_model(folder: Path, text: Path, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    tokenizer = train_tokenizer(iter([text.read_text()]), 300)
    tokenizer.save(str(path))
    refused("has ids up to 299, and the model has a vocabulary of 256: set model.vocab_size to 300 or more, or").job(
        f"data.tokenizer={path}"
    )
    refused("set vocab_size in model.config to 300 or more").job(f"data.tokenizer={path}", "model.name=llama-tiny")
    assert check(load(None, [f"model.name={folder}"])).unit == "byte"
    other = tmp_path / "other"
    made(name=str(folder)).save_pretrained(other)
    tokenizer.save(str(other / "tokenizer.json"))
    refused(rf"know the tokens of the tokenizer beside them, and data.tokenizer is 'bytes': set .* to '{other}'").job(
        f"model.name={other}"
    )
    from tokenizers import Tokenizer, models

    Tokenizer(models.WordLevel({"<eos>": 0, "a": 1}, unk_token="a")).save(str(tmp_path / "words.json"))
    refused(r"learns to guess masked tokens, and data.tokenizer .* has no mask token: choose a tokenizer with").job(
        "model.name=bert-tiny", f"data.tokenizer={tmp_path / 'words.json'}"
    )
    assert check(Config(model=ModelConfig(name="bert-tiny"))).mask == 256


def sharded(rank: int, name: str) -> dict[str, Any]:
    """A model built without storage, sharded over two ranks, given weights, and put together again."""
    from torch.distributed.fsdp import fully_shard

    model = build(ModelConfig(name=name), device="meta")
    for _, block in repeated_blocks(model):
        fully_shard(block)
    fully_shard(model)
    materialise(model, 7, torch.device("cpu"))
    assert sum(p.to_local().numel() for p in model.parameters()) < 0.55 * sum(p.numel() for p in model.parameters())
    return {key: value.full_tensor().numpy() for key, value in model.state_dict().items()}


@pytest.mark.parametrize("name", ["llama-tiny", "mixtral-tiny"])
def test_weights_drawn_in_parts_are_those_drawn_whole(name: str, tmp_path: Path) -> None:
    whole = build(ModelConfig(name=name), device="meta")
    before = torch.get_rng_state()
    materialise(whole, 7, torch.device("cpu"))
    assert torch.equal(torch.get_rng_state(), before)
    for parts in ranks.run(2, tmp_path, sharded, name):
        assert_same({key: torch.from_numpy(value) for key, value in parts.items()}, dict(whole.state_dict()))
    usual = made(name=name)
    for (key, drawn), other in zip(whole.named_parameters(), usual.parameters(), strict=True):
        assert drawn.std().item() == pytest.approx(other.std().item(), rel=0.2, abs=1e-6), key
    for (key, buffer), other in zip(whole.named_buffers(), usual.buffers(), strict=True):
        assert torch.equal(buffer, other), key
    first, second = (layer.self_attn.q_proj.weight for layer in whole.model.layers)
    assert not torch.equal(first, second)
    again = build(ModelConfig(name=name), device="meta")
    materialise(again, 8, torch.device("cpu"))
    assert not torch.equal(again.lm_head.weight, whole.lm_head.weight)


def test_weights_are_deferred_only_where_they_can_be() -> None:
    sentence = (
        r"^model.deferred is set, and train.strategy is auto, under which every process has the whole model: set "
    )
    with pytest.raises(ConfigError, match=sentence):
        LanguageModule(load(None, ["model.deferred=true"]), Device("cpu", 0, "gloo"))


def test_adapters_are_trained_and_nothing_else(folder: Path) -> None:
    pytest.importorskip("peft")
    model = made(name=str(folder), lora={"rank": 4, "alpha": 8})
    samples = torch.arange(66).reshape(2, 33)
    assert torch.equal(model(samples).logits, made(name=str(folder))(samples).logits)  # adapters begin as zero
    trained = [name for name, p in model.named_parameters() if p.requires_grad]
    assert trained and all("lora_" in name for name in trained) and not any("lm_head" in name for name in trained)
    optimizer = build_optimizer(model, TrainConfig())
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    sample_loss(model, samples).backward()
    optimizer.step()
    changed = {name for name, p in model.named_parameters() if not torch.equal(p, before[name])}
    assert changed and changed <= set(trained)
    one = made(name=str(folder), lora={"rank": 2, "targets": ["q_proj"]})
    assert {n.split(".lora_")[0].rsplit(".", 1)[-1] for n, p in one.named_parameters() if p.requires_grad} == {"q_proj"}
    refused(
        r"^model.lora.targets has 'gate_prj', which no layer of .* is called: did you mean 'gate_proj'\? It has "
        r"down_proj, gate_proj, k_proj, o_proj, q_proj, up_proj, v_proj; leave the list empty for all of"
    ).build(name=str(folder), lora={"rank": 2, "targets": ["q_proj", "gate_prj"]})
    for every in ("all-linear", ["all-linear"]):
        assert ModelConfig(name=str(folder), lora={"rank": 2, "targets": every}).lora.targets == []


def test_without_peft_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    refused(r"^model.lora needs the package peft, which is not installed: pip install 'peft>=0.18'\.$").build(
        name="llama-tiny", lora={"rank": 2}
    )


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("cosine", {9: 1.0, 10: 1.0, 55: 0.6, 100: 0.2, 120: 0.2}),
        ("linear", {9: 1.0, 10: 1.0, 55: 0.6, 100: 0.2, 120: 0.2}),
        ("constant", {9: 1.0, 55: 1.0, 100: 1.0}),
        ("wsd", {9: 1.0, 55: 1.0, 80: 1.0, 90: 0.6, 100: 0.2}),
    ],
)
def test_schedules_rise_and_fall_as_they_say(schedule: str, expected: dict[int, float]) -> None:
    config = TrainConfig.model_validate(
        {"schedule": schedule, "max_steps": 100, "warmup_steps": 10, "final_learning_rate": 0.2}
    )
    assert [learning_rate_scale(step, config) for step in (0, 4)] == [0.1, 0.5]
    assert {step: learning_rate_scale(step, config) for step in expected} == pytest.approx(expected)


def test_the_optimizer_is_as_configured() -> None:
    groups = build_optimizer(made(name="llama-tiny"), TrainConfig(betas=(0.8, 0.9), epsilon=1e-5)).param_groups
    assert [(group["betas"], group["eps"], group["weight_decay"]) for group in groups] == [
        ((0.8, 0.9), 1e-5, 0.1),
        ((0.8, 0.9), 1e-5, 0.0),
    ]
    assert {p.ndim for p in groups[1]["params"]} == {1}
