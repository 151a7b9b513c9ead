"""Which ranks are named as slow: those that hold the others up more than it falls to everyone."""

from __future__ import annotations

import doctest

import pytest

from gaudi3_scale.throughput import slow_ranks
from gaudi3_scale.throughput.slow_ranks import ranks_of, slow_groups


def test_the_example_runs() -> None:
    ran = doctest.testmod(slow_ranks)
    assert ran.failed == 0 and ran.attempted > 0


def test_ranks_that_are_the_slowest_in_turn_are_not_named() -> None:
    held = {(0,): 2.0, (1,): 2.2, (2,): 1.8, (3,): 2.1, (0, 1): 1.0, (2, 3): 1.1}
    assert slow_groups(held, 4, [], 0.1) == []
    assert slow_groups({**held, (1,): 20.0}, 4, [], 0.1) == [((1,), [(1,)])]
    assert slow_groups({(0,): 1.0, (1,): 1.1}, 2, [], 0.1) == []
    assert slow_groups({(1,): 1.1}, 2, [], 0.1) == [((1,), [(1,)])]


def test_a_node_is_named_whose_ranks_are_all_slow() -> None:
    """Each of them alone gains little: the others of the node are still there."""
    node = (4, 5, 6, 7)
    held = {(4,): 0.2, (5, 6): 0.3, (4, 5, 6): 0.2, node: 9.0}
    assert slow_groups(held, 16, [(0, 1, 2, 3), node, tuple(range(8, 16))], 0.1) == [(node, sorted(held))]


def test_ranks_of_several_nodes_that_are_slow_together_are_named_together() -> None:
    assert slow_groups({(1, 6): 9.0}, 8, [(0, 1, 2, 3), (4, 5, 6, 7)], 0.1) == [((1, 6), [(1, 6)])]


def test_a_node_of_more_than_half_of_the_ranks_is_not_slow() -> None:
    assert slow_groups({(0,): 1.0, (1,): 1.0}, 3, [(0, 1)], 0.1)[0][0] in ((0,), (1,))


def test_no_more_than_half_of_the_ranks_are_named() -> None:
    held = {(0,): 9.0, (1,): 8.0, (2,): 7.0, (3,): 0.0}
    assert [ranks for ranks, _ in slow_groups(held, 4, [], 0.1)] == [(0,), (1,)]


def test_little_is_not_named() -> None:
    assert slow_groups({(1,): 0.09}, 4, [], 0.1) == []
    assert slow_groups({}, 4, [], 0.0) == []


def test_spans_are_ranks() -> None:
    assert ranks_of([[0, 2], [7, 7]]) == (0, 1, 2, 7)
    assert len(ranks_of([[0, 2**17 - 1]])) == 2**17


@pytest.mark.parametrize(
    "spans", [[[0, 2**40]], [[5, 4]], [[-1, 2]], [[0, float("inf")]], [[0, 2**16]] * 3, [[1]], [1], [["a", 2]]]
)
def test_spans_of_no_job_are_refused_before_they_take_memory(spans: list[list[int]]) -> None:
    with pytest.raises((ValueError, TypeError)):
        ranks_of(spans)
