"""A proposed bucket set covers every request, and is the largest within what is allowed."""

from __future__ import annotations

import math
import random

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._serving.buckets import Buckets, Limits, Shape, shapes
from ansible_collections.gaudi3.scale.plugins.module_utils._serving.propose import covering_set

LIMITS = [
    Limits(262144, 256, 2048, 0),
    Limits(4096, 16, 2048, 0),
    Limits(300, 3, 2048, 0),
    Limits(100, 1, 64, 0),
    Limits(9000, 7, 1000, 0),
]


def covered(request: Shape, among: tuple[Shape, ...]) -> bool:
    """As the plugin looks: any shape that is at least as large in each of its three numbers."""
    return any(all(have >= want for have, want in zip(shape, request, strict=True)) for shape in among)


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("most", [60, 150, 400])
def test_every_request_finds_a_shape(limits: Limits, most: int) -> None:
    chosen = covering_set(limits, most)
    assert chosen is not None
    listed = shapes(chosen, limits)
    assert listed.prompt is not None and listed.decode is not None and listed.count is not None
    assert listed.count <= most
    longest = min(limits.max_num_batched_tokens, limits.max_model_len)
    random_ = random.Random(most)
    queries = {1, longest, *(random_.randint(1, longest) for _ in range(60))}
    for query in queries:
        # A chunk may start at any token, so the context is not always whole blocks.
        context = math.ceil((limits.max_model_len - query) / limits.block)
        assert covered((1, query, context), listed.prompt), (query, context)
        assert covered((1, query, 0), listed.prompt)
    for batch in {1, limits.max_num_seqs, *(random_.randint(1, limits.max_num_seqs) for _ in range(20))}:
        assert covered((batch, 1, batch * limits.blocks_of_a_sequence), listed.decode)
        assert covered((batch, 1, batch), listed.decode)


def test_the_plugins_own_sets_leave_requests_to_be_compiled_late() -> None:
    """Why the proposal sets the maxima itself: near the full length the plugin's defaults have no shape."""
    limits = Limits(262144, 256, 2048, 12300)
    prompt = shapes(Buckets(), limits).prompt
    assert prompt is not None and not covered((1, 2000, 2033), prompt)


def test_more_shapes_where_more_are_allowed() -> None:
    def count(most: int) -> int:
        chosen = covering_set(LIMITS[0], most)
        assert chosen is not None
        return shapes(chosen, LIMITS[0]).count or 0

    assert count(60) < count(120) < count(250)


def test_none_where_the_smallest_set_is_too_large() -> None:
    assert covering_set(LIMITS[0], 5) is None
