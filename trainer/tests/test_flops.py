"""Analytic operations against torch's own counter; peaks by exact name only."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import interpreter
import pytest
import torch
from conftest import SIMULATOR, zygote
from torch import nn
from torch.utils.flop_counter import FlopCounterMode
from transformers import (
    BertConfig,
    BertForMaskedLM,
    DeepseekV3Config,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
)

from gaudi3_scale.hpu import device as devices
from gaudi3_scale.memory.checkpointing import checkpoint_all
from gaudi3_scale.throughput.flops import ModelFlops, UncountableError, _attention, count, recomputed_share
from gaudi3_scale.throughput.meter import Meter, meter_for
from gaudi3_scale.throughput.peaks import PEAKS, matmul_dtype, peak_flops

B, T = 2, 24
SIZES: dict[str, Any] = {
    "vocab_size": 96,
    "hidden_size": 32,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "attn_implementation": "eager",
}
GROUPED = SIZES | {"num_key_value_heads": 2, "use_cache": False}
MODELS = {
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**GROUPED)),
    "llama with wide heads": lambda: LlamaForCausalLM(LlamaConfig(**GROUPED, head_dim=16)),
    "llama with a tied head": lambda: LlamaForCausalLM(LlamaConfig(**GROUPED, tie_word_embeddings=True)),
    "mixtral": lambda: MixtralForCausalLM(
        # Torch's counter does not see the grouped products that are the default.
        MixtralConfig(**GROUPED, num_local_experts=4, num_experts_per_tok=2, experts_implementation="eager")
    ),
    "bert": lambda: BertForMaskedLM(
        BertConfig(**SIZES, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)  # its head is tied
    ),
}


def counted(model: nn.Module) -> int:
    """Operations of forward and backward over B x T tokens, as torch counts them."""
    tokens = torch.randint(0, 96, (B, T), generator=torch.Generator().manual_seed(1))
    with FlopCounterMode(display=False) as counter:
        model(input_ids=tokens, labels=tokens).loss.backward()
    total: int = counter.get_total_flops()
    return total


@pytest.mark.parametrize("name", MODELS)
def test_the_formula_gives_what_torch_counts(name: str) -> None:
    model = MODELS[name]()
    assert count(model).per_token(T) * B * T == counted(model)


def test_weights_that_are_not_trained_need_no_gradient() -> None:
    model = MODELS["llama"]()
    whole = count(model).per_token(T)
    head = model.lm_head.weight
    head.requires_grad_(False)
    assert count(model).per_token(T) == whole - 2 * head.numel()
    assert count(model).per_token(T) * B * T == counted(model)


def test_recomputed_blocks_count_for_the_hardware_and_not_for_the_model() -> None:
    model = MODELS["llama"]()
    flops = count(model)
    assert recomputed_share(model) == 0.0
    assert flops.hardware_per_token(T, 0.0) == flops.per_token(T)
    model.gradient_checkpointing_enable({"use_reentrant": False, "early_stop": False})
    model.train()
    assert count(model) == flops
    assert recomputed_share(model) == 1.0
    # The last product of a block is not needed for any gradient, but it is recomputed all the same.
    assert flops.hardware_per_token(T, 1.0) * B * T == counted(model)


def test_a_block_wrapped_by_torch_is_recomputed() -> None:
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

    model = MODELS["llama"]()
    blocks = model.model.layers
    for index, block in enumerate(blocks):
        blocks[index] = checkpoint_wrapper(block)
    assert recomputed_share(model) == 1.0


@pytest.mark.parametrize(("level", "share"), [("full", 1.0), ("selective", 0.0), ("none", 0.0)])
def test_only_products_that_are_computed_again_count(level: Any, share: float) -> None:
    model = MODELS["llama"]()
    checkpoint_all(model, level)
    assert recomputed_share(model) == share


def test_a_sliding_window_bounds_what_a_token_is_compared_with() -> None:
    flops = count(MistralForCausalLM(MistralConfig(**GROUPED, sliding_window=8)))
    assert flops.attention == ((32, 8),) * 3
    assert flops.per_token(24) == flops.per_token(8) == 6 * flops.weights + 12 * 3 * 32 * 8


def test_what_cannot_be_counted_is_refused() -> None:
    with pytest.raises(UncountableError, match="Linear has no configuration"):
        count(nn.Linear(2, 2))
    picture = nn.Sequential(nn.Conv2d(3, 4, 3))
    picture.config = LlamaConfig(**GROUPED)  # type: ignore[assignment]
    with pytest.raises(UncountableError, match=r"0\.weight has 4 dimensions"):
        count(picture)


def test_peaks_are_dense_and_have_a_source_and_a_date() -> None:
    for name, peak in PEAKS.items():
        assert "read 2026-" in peak.source, name
        assert peak.flops["bfloat16"] < 1.9e15, name  # Lightning 2.6 has 2e15 for some: with sparsity
    assert peak_flops("GAUDI3", "bfloat16") == 1835e12
    assert peak_flops("GAUDI2", "bfloat16") == 432e12
    assert peak_flops("NVIDIA H200", matmul_dtype("bf16-mixed")) == 989.4e12
    assert peak_flops("NVIDIA A100-SXM4-80GB", matmul_dtype("32-true", tf32=True)) == 156e12
    assert peak_flops("NVIDIA A100-SXM4-80GB", matmul_dtype("32-true")) == 19.5e12


@pytest.mark.parametrize(
    "name", [None, "", "cpu", "GAUDI", "gaudi3", "GAUDI3 ", "GAUDI3 (simulated)", "SIMULATED GAUDI3", "NVIDIA H200 NVL"]
)
def test_only_exact_names_have_a_peak(name: str | None) -> None:
    assert peak_flops(name, "bfloat16") is None


def test_a_type_without_a_confirmed_peak_has_none() -> None:
    assert peak_flops("GAUDI3", matmul_dtype("32-true")) is None
    assert peak_flops("GAUDI2", "float8") is None


MODULE = "habana_frameworks/torch/__init__.py"


@pytest.fixture
def hpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `habana_frameworks.torch` in a folder, and a device that calls itself GAUDI3."""
    module = ModuleType("habana_frameworks.torch")
    file = tmp_path / MODULE
    file.parent.mkdir(parents=True)
    file.touch()
    module.__file__ = str(file)
    monkeypatch.setitem(sys.modules, "habana_frameworks.torch", module)
    monkeypatch.setattr(torch, "get_device_module", lambda _: SimpleNamespace(get_device_name=lambda _: "GAUDI3"))
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def install(folder: Path, name: str, *files: str) -> None:
    """Leave the traces of an installed distribution; without files it has no list of them."""
    about = folder / f"{name.replace('-', '_')}-1.24.1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.24.1\n")
    if files:
        (about / "RECORD").write_text("".join(f"{file},,\n" for file in files))


def test_only_intels_own_package_makes_a_gaudi(hpu: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    card = torch.device("hpu", 0)
    assert devices.hardware_name(card) is None
    install(hpu, "some-simulator", MODULE)
    assert devices.hardware_name(card) is None
    why = meter_for(MODELS["llama"](), card, "bf16-mixed", T, 1)[1]
    assert why == "hpu has no peak to compare with"
    install(hpu, "habana-torch-plugin", "habana_frameworks/__init__.py", MODULE)
    assert devices.hardware_name(card) == "GAUDI3"
    sys.modules["habana_frameworks.torch"].__file__ = str(tmp_path_factory.mktemp("other") / "__init__.py")
    assert devices.hardware_name(card) is None


@pytest.mark.parametrize("files", [(), ("habana_frameworks/__init__.py", "habana_frameworks/torch/hpu.py")])
def test_metadata_of_intels_package_alone_make_no_gaudi(hpu: Path, files: tuple[str, ...]) -> None:
    """Another package may bring them, for libraries that ask for the release; the module beside them is not listed."""
    for file in files:
        (hpu / file).touch()
    install(hpu, "habana-torch-plugin", *files)
    assert devices.hardware_name(torch.device("hpu", 0)) is None


def test_the_simulated_card_calls_itself_a_gaudi_3_and_has_no_peak_all_the_same() -> None:
    if not SIMULATOR.exists():
        pytest.skip(f"{SIMULATOR} is not there: build the simulated hpu device with `make trainer-test`")
    program = """
import torch
from gaudi3_scale.hpu.device import hardware_name
from gaudi3_scale.throughput.peaks import peak_flops
card = torch.zeros(1, device="hpu").device
print(torch.hpu.get_device_name(), peak_flops(torch.hpu.get_device_name(), "bfloat16"), hardware_name(card))
"""
    output = interpreter.run(zygote(cards=True), "-c", program)
    assert output.stdout == "GAUDI3 1835000000000000.0 None\n", output.stderr


def test_a_meter_knows_why_it_gives_no_mfu(hpu: Path) -> None:
    install(hpu, "habana-torch-plugin", MODULE)
    card, llama = torch.device("hpu", 0), MODELS["llama"]()
    assert meter_for(llama, torch.device("cpu"), "32-true", T, 1)[1] == "cpu has no peak to compare with"
    assert meter_for(llama, card, "32-true", T, 1)[1] == "no confirmed dense peak of 'GAUDI3' for float32 is known"
    assert meter_for(nn.Linear(1, 1), card, "bf16-mixed", T, 1)[1] == (
        "Linear has no configuration that says what its attention is"
    )
    meter, why = meter_for(llama, card, "bf16-mixed", T, 4)
    assert why is None
    for step in range(1, 5):  # three of them warm up
        meter.step(10**6, float(step))
    expected = 10**6 * count(llama).per_token(T) / (4 * 1835e12)
    assert meter.read(4.0).mfu == pytest.approx(expected, rel=1e-12)


def test_the_window_leaves_out_stalls_and_warm_up_and_says_both_speeds() -> None:
    meter = Meter(flops_per_token=100.0, hardware_flops_per_token=130.0, peak=8000.0, warmup_steps=2)
    meter.start(0.0)
    meter.step(1000, 50.0)  # compiles
    assert meter.read(50.0).tokens_per_second is None
    meter.step(1000, 51.0)
    assert meter.read(51.0).tokens_per_second is None
    meter.step(60, 53.0)
    meter.stalled(2.0)
    meter.step(60, 57.0)
    reading = meter.read(57.0)
    assert (reading.tokens_per_second, reading.tokens_per_second_stepping) == (20.0, 30.0)
    assert (reading.mfu, reading.mfu_wall, reading.hfu) == (0.375, 0.25, 0.4875)
    meter.step(30, 58.0)
    assert meter.read(58.0).tokens_per_second_stepping == 30.0  # the next window is its own
    assert meter.read(58.0).tokens_per_second is None


def test_without_a_peak_there_is_speed_but_no_mfu() -> None:
    meter = Meter(warmup_steps=0)
    meter.start(1.0)
    meter.step(10, 2.0)
    reading = meter.read(2.0)
    assert (reading.tokens_per_second, reading.mfu, reading.mfu_wall, reading.hfu) == (10.0, None, None, None)


def test_flops_are_of_the_active_experts() -> None:
    model = MODELS["mixtral"]()
    experts = sum(p.numel() for n, p in model.named_parameters() if ".experts." in n)
    rest = sum(p.numel() for n, p in model.named_parameters() if p.ndim == 2 and "embed" not in n)
    assert count(model).weights == rest + experts / 2
    assert isinstance(count(model), ModelFlops)


def test_latent_attention_is_as_wide_as_its_keys_and_values() -> None:
    width, window = _attention(DeepseekV3Config())[0]
    assert (width, window) == (128 * (192 + 128) // 2, None)  # 20,480; rotary parts alone are 64 wide


@pytest.mark.parametrize(
    ("shape", "tokens", "published"),
    [
        # 405B: "The Llama 3 Herd of Models" (arXiv:2407.21783, July 2024), section 1. 8B and 70B: Meta published GPU
        # hours and "over 15T" tokens; the operations are Epoch AI's arithmetic, read 2026-11-23.
        ((4096, 14336, 32, 32), 15e12, 7.2e23),
        ((8192, 28672, 80, 64), 15e12, 6.3e24),
        ((16384, 53248, 126, 128), 15.6e12, 3.8e25),
    ],
    ids=["8B", "70B", "405B"],
)
def test_published_operations_of_whole_trainings(
    shape: tuple[int, int, int, int], tokens: float, published: float
) -> None:
    """They count 6 for each parameter: no attention, and embeddings as if they were multiplied."""
    width, inner, layers, heads = shape
    with torch.device("meta"):
        model = LlamaForCausalLM(
            LlamaConfig(
                vocab_size=128256,
                hidden_size=width,
                intermediate_size=inner,
                num_hidden_layers=layers,
                num_attention_heads=heads,
                num_key_value_heads=8,
            )
        )
    embedding = 6 * model.get_input_embeddings().weight.numel()
    assert (count(model).per_token(0) + embedding) * tokens == pytest.approx(published, rel=0.01)
