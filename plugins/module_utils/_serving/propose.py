# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The largest set of ``lin`` buckets within a number of shapes that still covers every request.

Query, batch and blocks double from a minimum to the largest possible value, so above the minimum a request is padded to
at most twice its size; a higher minimum makes the set smaller. The largest values are never lowered: a request above
every shape would be compiled while it waits. Neither the plugin's default set nor its ``lin`` defaults cover all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from .buckets import LONG_CONTEXT, Buckets, Limits, Shape, decode_shapes, prompt_shapes

_CONTEXT_PARTS = (8, 4, 2, 1)
_Sized = list[tuple[int, dict[str, int]]]


def covering_set(limits: Limits, most: int) -> Buckets | None:
    """The set with most shapes, at most ``most``; None where the smallest one has more."""
    # What the cache holds does not enter these sets: one list serves every share of memory that is tried.
    prompts, decodes = _sized_sets(replace(limits, cache_blocks=0))
    best: tuple[int, int] | None = None
    chosen: dict[str, int] = {}
    for prompt_count, prompt in prompts:
        for decode_count, decode in decodes:
            # Of two sets of one size, the one with more shapes to decode: most steps of a server are decode steps.
            rank = (prompt_count + decode_count, decode_count)
            if rank[0] <= most and (best is None or rank > best):
                best, chosen = rank, {**prompt, **decode}
    return Buckets("lin", chosen) if best else None


@lru_cache(maxsize=64)
def _sized_sets(limits: Limits) -> tuple[_Sized, _Sized]:
    """All sets for prompts and all for decoding, each with its number of shapes."""
    prompts = [(prompt_shapes(Buckets("lin", variables), limits), variables) for variables in _prompt_sets(limits)]
    decodes = [(decode_shapes(Buckets("lin", variables), limits), variables) for variables in _decode_sets(limits)]
    return _counted(prompts), _counted(decodes)


def _counted(sets: list[tuple[tuple[Shape, ...] | None, dict[str, int]]]) -> _Sized:
    return [(len(listed), variables) for listed, variables in sets if listed]


def _prompt_sets(limits: Limits) -> Iterator[dict[str, int]]:
    """Contexts in equal parts up to the whole length, with every query length.

    Of a long model the plugin replaces the last context of the range by the largest one that leaves room for the query
    as it was padded, so a request near the full length finds no shape. One context more than needed keeps the others.
    """
    query = min(limits.max_num_batched_tokens, limits.max_model_len)
    context = math.ceil((limits.max_model_len - 1) / limits.block)
    for parts in _CONTEXT_PARTS:
        if context and context % parts == 0:
            step = context // parts
            more = limits.max_model_len >= LONG_CONTEXT
            yield {
                "VLLM_PROMPT_QUERY_BUCKET_MIN": min(limits.block, query),
                "VLLM_PROMPT_QUERY_BUCKET_STEP": query,
                "VLLM_PROMPT_QUERY_BUCKET_MAX": query,
                "VLLM_PROMPT_CTX_BUCKET_STEP": step,
                "VLLM_PROMPT_CTX_BUCKET_MAX": step * (parts + 1) if more else context,
            }


def _decode_sets(limits: Limits) -> Iterator[dict[str, int]]:
    sequences = limits.max_num_seqs
    # The plugin's own maximum rounds down, one block per sequence short where the length is no whole number of blocks.
    blocks = limits.blocks_of_a_sequence * sequences
    for batch in _doublings(1, sequences):
        for used in _doublings(1, blocks):
            yield {
                "VLLM_DECODE_BS_BUCKET_MIN": batch,
                "VLLM_DECODE_BS_BUCKET_STEP": sequences,
                "VLLM_DECODE_BLOCK_BUCKET_MIN": used,
                "VLLM_DECODE_BLOCK_BUCKET_STEP": blocks,
                "VLLM_DECODE_BLOCK_BUCKET_MAX": blocks,
            }


def _doublings(least: int, most: int) -> Iterator[int]:
    value = least
    while value < most:
        yield value
        value *= 2
    yield most
