# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Which shapes vLLM's Gaudi plugin warms up: its bucket strategies, counted without a card.

A shape is (batch, query tokens, context blocks). Read in vllm-project/vllm-gaudi, vllm_gaudi/extension/bucketing
(common.py, exponential.py, linear.py) and v1/worker/hpu_model_runner.py at tags v0.24.0 and v0.26.0, whose bucket files
are the same. Left out: merged prefill, contiguous paged attention, speculative decoding, a bucket file, images.

Under ``exp``, the default, only two of the bucket variables are read (and a third where it is 1): see ``read_under``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .._refusal import Refusal

PLUGINS = ("0.24.0", "0.26.0")
STRATEGIES = ("exp", "lin")
STRATEGY = "VLLM_BUCKETING_STRATEGY"
BLOCK = 128
"""Tokens of a block of the cache, unless it is given (platform.py)."""
LONG_CONTEXT = 8192
COUNTABLE = 20_000
"""Sets with more combinations than this are not listed: no warm-up of that length ends."""

Shape = tuple[int, int, int]

_PREFILL = "VLLM_PROMPT_BS_BUCKET_MAX"
_CONTEXT_MAX = "VLLM_PROMPT_CTX_BUCKET_MAX"
_QUERY_MIN = "VLLM_PROMPT_QUERY_BUCKET_MIN"
_LINEAR = tuple(
    f"VLLM_{name}_BUCKET_{bound}"
    for name in ("PROMPT_BS", "PROMPT_QUERY", "PROMPT_SEQ", "PROMPT_CTX", "DECODE_BS", "DECODE_BLOCK")
    for bound in ("MIN", "STEP", "MAX")
)


@dataclass(frozen=True)
class Buckets:
    """A strategy (``exp`` or ``lin``) and the values of the plugin's bucket variables."""

    strategy: str = "exp"
    variables: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise Refusal(f"bucket strategy {self.strategy!r} is not one that is counted here: use exp or lin")
        if unknown := sorted(set(self.variables) - set(_LINEAR)):
            raise Refusal(f"{', '.join(unknown)} is no bucket variable of vLLM's Gaudi plugin: remove it")
        if wrong := sorted(
            name for name, value in self.variables.items() if value < (0 if name.endswith("MIN") else 1)
        ):
            raise Refusal(f"{', '.join(wrong)} must be a positive number: correct it")

    @property
    def ignored(self) -> tuple[str, ...]:
        """The given variables that the plugin does not read under this strategy."""
        return tuple(
            name for name in sorted(self.variables) if not read_under(self.strategy, name, self.variables[name])
        )

    @property
    def environment(self) -> dict[str, str]:
        """The strategy and each variable that is really read, as a service's environment."""
        read = {name: str(value) for name, value in sorted(self.variables.items()) if name not in self.ignored}
        return {STRATEGY: self.strategy, **read}


def read_under(strategy: str, name: str, value: int) -> bool:
    """Whether the plugin reads this bucket variable with this value under this strategy."""
    if strategy == "lin":
        return name in _LINEAR
    return name in (_PREFILL, _CONTEXT_MAX) or (name == _QUERY_MIN and value == 1)


@dataclass(frozen=True)
class Limits:
    """Limits of the engine: the length in tokens, sequences at once, tokens of a step, blocks of the cache."""

    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    cache_blocks: int
    block: int = BLOCK

    @property
    def blocks_of_a_sequence(self) -> int:
        """Blocks that one sequence of full length takes."""
        return math.ceil(self.max_model_len / self.block)


@dataclass(frozen=True)
class Shapes:
    """What is warmed up, each list sorted; ``None`` where it is too long to list."""

    prompt: tuple[Shape, ...] | None
    decode: tuple[Shape, ...] | None

    @property
    def count(self) -> int | None:
        """The number of shapes, or None where it is above ``COUNTABLE``."""
        return None if self.prompt is None or self.decode is None else len(self.prompt) + len(self.decode)


def shapes(buckets: Buckets, limits: Limits) -> Shapes:
    """All shapes of the warm-up under this strategy, in the plugin's order of sorting."""
    return Shapes(prompt_shapes(buckets, limits), decode_shapes(buckets, limits))


def prompt_shapes(buckets: Buckets, limits: Limits) -> tuple[Shape, ...] | None:
    """The shapes of prompts: the last context of a long model is replaced by the largest one of each query length."""
    prefill = buckets.variables.get(_PREFILL, 1)
    ranges = (
        _prompt_exp(buckets, limits, prefill) if buckets.strategy == "exp" else _prompt_lin(buckets, limits, prefill)
    )
    batches, queries, contexts = ranges
    if len(batches) * len(queries) * len(contexts) > COUNTABLE:
        return None
    most = math.ceil((limits.max_model_len - 1) / limits.block)
    found = set()
    for batch in batches:
        for context in contexts:
            for query, blocks in _with_edge(queries, context, context == contexts[-1], buckets, limits):
                within_step = batch * query <= limits.max_num_batched_tokens
                if blocks <= most and query <= limits.max_model_len and within_step:
                    found.add((batch, query, blocks))
    return tuple(sorted(found))


def decode_shapes(buckets: Buckets, limits: Limits) -> tuple[Shape, ...] | None:
    """The shapes of decoding: one token of each sequence of a batch, with the blocks of all of them."""
    batches, blocks = _decode_exp(limits) if buckets.strategy == "exp" else _decode_lin(buckets, limits)
    if len(batches) * len(blocks) > COUNTABLE:
        return None
    most = limits.blocks_of_a_sequence
    return tuple(sorted({(batch, 1, min(used, batch * most)) for batch in batches for used in blocks if batch <= used}))


def _with_edge(
    queries: Sequence[int], context: int, last: bool, buckets: Buckets, limits: Limits
) -> Iterator[tuple[int, int]]:
    """Each query length with its context; where the edge is not allowed, the context found before it stays."""
    bound = buckets.variables.get(_CONTEXT_MAX)
    for query in queries:
        if last and limits.max_model_len >= LONG_CONTEXT:
            edge = (limits.max_model_len - query) // limits.block
            if edge >= 0 and (bound is None or edge < bound):
                context = edge
        yield query, context


def _prompt_exp(buckets: Buckets, limits: Limits, prefill: int) -> tuple[list[int], list[int], list[int]]:
    block, tokens, length = limits.block, limits.max_num_batched_tokens, limits.max_model_len
    least = 1 if buckets.variables.get(_QUERY_MIN) == 1 else block
    away = tokens if length >= LONG_CONTEXT else least
    context = max(1, (length - away) // block)
    steps = 2 if context == 1 else math.ceil(math.log2(context)) + 1
    return (
        exponential_range(1, 2, prefill, math.ceil(math.log2(prefill)) + 1),
        exponential_range(least, block, tokens, math.ceil(math.log2(tokens))),
        exponential_range(0, 1, context, steps),
    )


def _decode_exp(limits: Limits) -> tuple[list[int], list[int]]:
    sequences = limits.max_num_seqs
    most = limits.blocks_of_a_sequence * sequences
    steps = math.ceil(math.log2(most)) + 1
    # More steps where the range is far wider than the cache, so that the used part stays dense.
    bound = 3 * limits.cache_blocks
    if 0 < bound < most:
        steps += math.ceil(math.log2(most / bound)) + 1
    batches = exponential_range(1, 2, sequences, math.ceil(math.log2(sequences)) + 1)
    return batches, exponential_range(1, sequences, most, steps)


def _prompt_lin(buckets: Buckets, limits: Limits, prefill: int) -> tuple[list[int], list[int], list[int]]:
    queries = _settings(buckets, "PROMPT_QUERY", limits.block, limits.block, limits.max_num_batched_tokens)
    context = (limits.max_model_len - queries[0]) // limits.block
    return (
        linear_range(*_settings(buckets, "PROMPT_BS", 1, 1, prefill)),
        linear_range(*queries),
        linear_range(*_settings(buckets, "PROMPT_CTX", 0, 1, context)),
    )


def _decode_lin(buckets: Buckets, limits: Limits) -> tuple[list[int], list[int]]:
    most = max(limits.max_model_len * limits.max_num_seqs // limits.block, limits.block)
    least, step, most = _settings(buckets, "DECODE_BLOCK", 1, limits.block, most)
    if least > most:
        least = max(1, most - step)
    batches = linear_range(*_settings(buckets, "DECODE_BS", 1, 32, limits.max_num_seqs))
    return batches, linear_range(least, step, most)


def _settings(buckets: Buckets, name: str, least: int, step: int, most: int) -> tuple[int, int, int]:
    """MIN, STEP and MAX of a dimension: the older name SEQ counts where QUERY is not given."""
    given = buckets.variables

    def value(bound: str, default: int) -> int:
        older = f"VLLM_PROMPT_SEQ_BUCKET_{bound}"
        default = given.get(older, default) if name == "PROMPT_QUERY" else default
        return given.get(f"VLLM_{name}_BUCKET_{bound}", default)

    return value("MIN", least), value("STEP", step), value("MAX", most)


def exponential_range(least: int, step: int, most: int, count: int) -> list[int]:
    """Up to ``count`` values from ``least`` to ``most`` in equal ratios, each rounded up to a multiple of ``step``."""
    if count <= 1:
        return [most]
    start = step if least in (0, 1) else least
    # The exponent is rounded as the plugin rounds it: index / (count - 1) differs where a power is near a step.
    ratio, part = most / start, 1.0 / (count - 1)
    values = {math.ceil(start * ratio ** (part * index) / step) * step for index in range(count)}
    if least in (0, 1):
        values.add(least)
    return sorted({*(value for value in values if value <= most), *([most] if max(values) > most else [])})


def linear_range(least: int, step: int, most: int) -> list[int]:
    """Doubling from ``least`` up to ``step``, then multiples of ``step`` up to ``most``; a ``least`` of 0 is kept."""
    if least > most:
        raise Refusal(f"a bucket minimum of {least} is above its maximum of {most}: lower the minimum")
    if least == most == 0:
        return [0]
    start = least or step
    doubling = []
    value = start
    while value < step and value <= most:
        doubling.append(value)
        value *= 2
    values = [*doubling, *(value for value in range(step, most + 1, step) if value >= start)]
    return sorted([0, *values] if least == 0 else values)
