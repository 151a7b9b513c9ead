"""The prediction for CUDA, where torch has no fused attention in float32 with fewer heads of keys than of queries."""

from __future__ import annotations

import functools

import pytest
from test_memory_proof import BASE, BF16, CUDA, FULL, MICRO_BATCH, WIDE

from gaudi3_scale.config import load
from gaudi3_scale.planning import predict_peak

EACH = MICRO_BATCH * 16 * 512 * 512 * 4
"""Bytes of the weights of all scores of a layer: 16 heads, 512 tokens."""


@functools.cache
def predicted(*settings: str, device: str = "cuda") -> int:
    return predict_peak(load(None, (*BASE, *settings)), MICRO_BATCH, device=device).bytes


def test_what_an_h100_gave() -> None:
    """Its allocator's highest number of bytes, torch 2.11: proofs/memory.md has all of the cases."""
    measured = {"CUDA: Llama fp32": 6_611_151_360, "CUDA: Llama bf16": 4_388_668_928}
    for case, seen in measured.items():
        assert predicted(*CUDA[case]) == pytest.approx(seen, rel=0.05), case


def test_weights_of_scores_are_kept_where_no_kernel_takes_the_heads() -> None:
    as_many = (*WIDE, "model.kv_heads=16")
    assert predicted(*WIDE) - predicted(*WIDE, device="cpu") > 8 * EACH
    assert predicted(*as_many) == predicted(*as_many, device="cpu")
    assert predicted(*WIDE, *BF16) == predicted(*WIDE, *BF16, device="cpu")


def test_recomputed_blocks_attend_in_the_same_way() -> None:
    """They keep a layer's weights of scores for as long as its backward takes."""
    more = predicted(*WIDE, *FULL) - predicted(*WIDE, *FULL, device="cpu")
    assert EACH <= more < 2 * EACH
