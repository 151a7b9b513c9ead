"""Predicted activations against the published table of a transformer layer's.

Source: Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models" (arXiv:2205.05198, May
2022), table 2, without parallelism. With s tokens, b samples, width h and a heads, a layer keeps s b h (34 + 5 a s / h)
bytes, 34 s b h if attention is recomputed, 2 s b h if all of it is: 2 bytes per activation, one per element of a
dropout mask.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import gelu
from torch.utils.checkpoint import checkpoint

from gaudi3_scale.memory import predict_step

SEQUENCE = 2048
SHAPES = {"GPT-3 175B": (96, 12_288), "MT-NLG 530B": (128, 20_480)}
"""Heads and width."""


def dropped(x: Tensor) -> Tensor:
    """Dropout as accelerators have it, which keeps a mask of a byte per element."""
    return torch.native_dropout(x, 0.1, True)[0]


class Layer(nn.Module):
    """The paper's layer: GPT's, normalized before attention and before the MLP."""

    def __init__(self, heads: int, width: int, recompute: str) -> None:
        super().__init__()
        self.heads, self.recompute = heads, recompute
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attention(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = q @ k.transpose(-1, -2) / (q.shape[-1] ** 0.5)
        return dropped(scores.softmax(-1)) @ v

    def whole(self, x: Tensor) -> Tensor:
        qkv = self.qkv(self.before(x)).unflatten(-1, (3, self.heads, -1)).movedim(-2, 1).unbind(-2)
        if self.recompute == "attention":
            mixed: Tensor = checkpoint(self.attention, *qkv, use_reentrant=False)
        else:
            mixed = self.attention(*qkv)
        x = x + dropped(self.projection(mixed.transpose(1, 2).flatten(2)))
        return x + dropped(self.down(gelu(self.up(self.between(x)))))

    def forward(self, x: Tensor) -> Tensor:
        return checkpoint(self.whole, x, use_reentrant=False) if self.recompute == "all" else self.whole(x)


def kept(heads: int, width: int, recompute: str, batch: int = 1) -> int:
    """Bytes that a layer more leaves for backward."""

    def activations(layers: int) -> int:
        with torch.device("meta"):
            model = nn.Sequential(*(Layer(heads, width, recompute) for _ in range(layers))).bfloat16()
            rows = torch.empty(batch, SEQUENCE, width, dtype=torch.bfloat16)
        return predict_step(model, lambda model, x: model(x).sum(), [rows], optimizer=None).activations

    return activations(3) - activations(2)


@pytest.mark.parametrize(("recompute", "attention"), [("nothing", 1), ("attention", 0)])
@pytest.mark.parametrize("name", SHAPES)
def test_a_layer_keeps_what_the_table_says(name: str, recompute: str, attention: int) -> None:
    heads, width = SHAPES[name]
    published = SEQUENCE * width * (34 + attention * 5 * heads * SEQUENCE / width)
    assert kept(heads, width, recompute) == pytest.approx(published, rel=0.001)


@pytest.mark.parametrize("name", SHAPES)
def test_recomputing_all_keeps_a_layers_input(name: str) -> None:
    heads, width = SHAPES[name]
    assert kept(heads, width, "all", batch=4) == pytest.approx(2 * SEQUENCE * 4 * width, rel=0.001)


def test_recomputing_attention_saves_the_published_shares() -> None:
    saved = [1 - kept(*shape, "attention") / kept(*shape, "nothing") for shape in SHAPES.values()]
    assert saved == pytest.approx([0.70, 0.65], abs=0.005)
