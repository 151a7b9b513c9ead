"""The serving plan's bytes beside what the simulated device counts for the same tensors."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import interpreter
import pytest
from conftest import SIMULATOR, zygote

sys.path.append(str(Path(__file__).resolve().parents[2] / "collections"))

from ansible_collections.gaudi3.scale.plugins.module_utils._serving import warmup
from ansible_collections.gaudi3.scale.plugins.module_utils._serving.weights import read_config, weights_bytes

pytestmark = pytest.mark.skipif(
    not SIMULATOR.is_dir(),
    reason="THE SIMULATED hpu DEVICE IS NOT BUILT: run `make trainer-test`, which builds it first",
)

CARD = 700 * 2**20
CARDS = 2
SEQUENCES = 48
#: A model of gated delta nets and attention, whose shapes are small and unequal.
HYBRID: dict[str, Any] = {
    "text_config": {
        "hidden_size": 256,
        "num_hidden_layers": 8,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 48,
        "full_attention_interval": 4,
        "linear_num_value_heads": 16,
        "linear_num_key_heads": 8,
        "linear_value_head_dim": 32,
        "linear_key_head_dim": 64,
        "linear_conv_kernel_dim": 4,
        "max_position_embeddings": 4096,
    }
}

#: The tensors of hpu_model_runner.py (`initialize_kv_cache`, v0.26.0); their shapes are written out here once more.
SCRIPT = """
import json, sys, torch
from transformers import LlamaConfig, LlamaForCausalLM
from gaudi3_scale.hpu.device import resolve
folder, blocks, slots = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
resolve("hpu", 0, 1)
used = torch.hpu.memory_allocated
start = used()
if folder != "-":
    model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).to("hpu")
    weights, layers, heads, head = used() - start, 4, 4, 32
else:
    weights, layers, heads, head = 0, 2, 4 // 2, 48
start = used()
cache = [torch.empty((blocks, 128, heads, head), dtype=torch.bfloat16, device="hpu") for _ in range(2 * layers)]
counted = used() - start
start = used()
state = []
for _ in range(2 if slots else 0):
    convolution = (2 * 8 * 64 + 16 * 32) // 2
    state.append(torch.empty((slots, 3, convolution), dtype=torch.bfloat16, device="hpu"))
    state.append(torch.empty((slots, 16 // 2, 32, 64), dtype=torch.float32, device="hpu"))
print(json.dumps({"weights": weights, "cache": counted, "state": used() - start}))
"""


def plan(config: dict[str, Any], weights: int, cards: int) -> warmup.ServingPlan:
    return warmup.plan(
        config,
        weights_bytes=weights,
        card_bytes=CARD,
        cards=cards,
        max_model_len=512,
        max_num_seqs=SEQUENCES,
        max_num_batched_tokens=None,
        dtype="bfloat16",
        buckets=None,
    )


def counted(folder: str, blocks: int, slots: int) -> dict[str, int]:
    """Bytes of the same tensors on a simulated card of this size."""
    words = ("-c", SCRIPT, folder, str(blocks), str(slots))
    done = interpreter.run(zygote(cards=True), *words, GAUDI3_HPU_SIMULATOR_HBM=str(CARD))
    assert done.returncode == 0, done.stderr
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_weights_and_cache_of_an_exported_model(tmp_path: Path) -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    small = {"hidden_size": 256, "intermediate_size": 512, "vocab_size": 4000, "max_position_embeddings": 512}
    heads = {"num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 4}
    LlamaForCausalLM(LlamaConfig(**small, **heads)).save_pretrained(tmp_path)
    planned = plan(read_config(str(tmp_path)), weights_bytes(str(tmp_path)), 1).asked
    assert planned.cache > 100 * 2**20
    block = planned.one_sequence // 4
    on_card = counted(str(tmp_path), planned.cache // block, 0)
    assert planned.weights == pytest.approx(on_card["weights"], rel=0.05)
    assert planned.cache == pytest.approx(on_card["cache"], rel=0.05)


def test_cache_and_state_of_a_hybrid_model_on_two_cards() -> None:
    planned = plan(HYBRID, 0, CARDS).asked
    block = 2 * 2 * 128 * 2 * 48 * 2
    # Three groups of two layers: max_num_seqs * groups + 2 slots in each of two tensors.
    on_card = counted("-", planned.cache // block, SEQUENCES * 3 + 2)
    assert planned.cache == pytest.approx(on_card["cache"], rel=0.05)
    assert planned.state == pytest.approx(on_card["state"], rel=0.05) and planned.state > 2**20
