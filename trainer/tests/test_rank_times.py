"""The shares of causes in the steps of a job: what each step is shorter by without them, on the slowest rank."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from gaudi3_scale.throughput import rank_times
from gaudi3_scale.throughput.ledger import CHECKPOINT, COMPUTE, DATA, OTHER
from gaudi3_scale.throughput.rank_times import KEY, MOST_SETS, RankTimes, compare
from gaudi3_scale.throughput.step_clock import COLUMNS, WAIT

SECOND = 10**9


def times(*steps: list[dict[str, float]]) -> np.ndarray:
    """Of steps, each with the seconds of every rank; who is early waits for the last one, and a tenth more."""
    found = np.zeros((len(steps[0]), len(steps), len(COLUMNS)))
    for number, ranks in enumerate(steps):
        longest = max(sum(each.values()) for each in ranks)
        for rank, parts in enumerate(ranks):
            for name, seconds in (*parts.items(), (WAIT, longest - sum(parts.values()) + 0.1)):
                found[rank, number, COLUMNS.index(name)] = seconds * SECOND
    return found


def seconds(shares: dict[Any, int]) -> dict[Any, float]:
    return {name: round(value / SECOND, 6) for name, value in shares.items() if value}


def test_the_slowest_rank_has_what_it_is_slower_by_than_the_next_one() -> None:
    shares, slow = compare(times([{COMPUTE: 1}, {COMPUTE: 3}, {COMPUTE: 1.5}, {COMPUTE: 1}], [{COMPUTE: 1}] * 4))
    assert seconds(slow) == {(1,): 1.5, (1, 2): 0.5}
    assert seconds(shares) == {"communication": 0.2}


def test_a_wait_for_data_counts_as_far_as_the_step_was_longer_by_it() -> None:
    shares, slow = compare(times([{COMPUTE: 1, DATA: 3}, {COMPUTE: 2.5}, {COMPUTE: 1}]))
    assert seconds(shares) == {DATA: 1.5, "communication": 0.1} and seconds(slow) == {(1,): 1.5}


def test_what_only_some_rank_does_for_all_counts_once() -> None:
    shares, _ = compare(times([{COMPUTE: 1, OTHER: 0.5}, {COMPUTE: 1}], [{COMPUTE: 1, CHECKPOINT: 4}] * 2))
    assert seconds(shares) == {OTHER: 0.5, CHECKPOINT: 4, "communication": 0.2}


def test_little_differences_are_uneven_and_nobodys() -> None:
    shares, slow = compare(times([{COMPUTE: 1.0}, {COMPUTE: 1.005}]))
    assert slow == {} and seconds(shares) == {"uneven": 0.005, "communication": 0.1}


def test_of_many_sets_a_line_has_those_that_held_up_most() -> None:
    steps = [[{COMPUTE: 1.0 + (rank == slowest) * (1 + slowest)} for rank in range(64)] for slowest in range(64)]
    ranks = RankTimes(0)
    for number, step in enumerate(steps):
        ranks.add(number, number + 1, times(step), {COMPUTE: SECOND})
    said = ranks.take()[KEY]
    assert [each for each, _ in said["slow"]] == [[[rank, rank]] for rank in range(63, 63 - MOST_SETS, -1)]
    assert seconds(said["moved"])["uneven"] == sum(range(1, 65 - MOST_SETS))


def test_steps_are_compared_before_they_take_much_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_times, "MOST_KEPT", 3)
    step = [{COMPUTE: 1.0}, {COMPUTE: 4.0}]
    one, all_at_once = RankTimes(0), RankTimes(0)
    for number in range(7):
        one.add(number, number + 1, times(step), {COMPUTE: 5 * SECOND})
        assert len(one._times) < 3
    monkeypatch.undo()
    for number in range(7):
        all_at_once.add(number, number + 1, times(step), {COMPUTE: 5 * SECOND})
    assert one.take() == all_at_once.take() and one.ranks() == all_at_once.ranks()


def test_a_process_alone_is_compared_with_nobody() -> None:
    shares, slow = compare(times([{COMPUTE: 1, DATA: 2}]))
    assert slow == {} and seconds(shares) == {DATA: 2}


def test_a_line_moves_the_writers_parts_and_takes_nothing_away() -> None:
    ranks = RankTimes(0, ["a", "a", "b", "b"])
    assert ranks.take() == {} and ranks.ranks() == []
    step = [{COMPUTE: 1.0}, {COMPUTE: 1.0}, {COMPUTE: 1.0, DATA: 2.0}, {COMPUTE: 4.0}]
    for number in (0, 1):
        ranks.add(number, number + 1, times(step), {COMPUTE: round(4.1 * SECOND)})
    said = json.loads(json.dumps(ranks.take()))[KEY]
    assert said["steps"] == [0, 2] and said["spent"] == round(8.2 * SECOND)
    assert said["slow"] == [[[[3, 3]], 6 * SECOND]]
    assert seconds(said["moved"]) == {COMPUTE: -6.2, "communication": 0.2}
    assert said["hosts"] == {"a": [[0, 1]], "b": [[2, 3]]}
    assert ranks.take() == {}
    assert ranks.ranks()[3] == {"rank": 3, "host": "b", "own_seconds": 8.0, "waited_seconds": 0.2}
    assert ranks.ranks()[0]["waited_seconds"] == 6.2
    ranks.add(2, 3, times(step), {COMPUTE: SECOND})
    assert "hosts" not in ranks.take()[KEY]


def test_a_rank_that_cannot_tell_leaves_all_of_them_out() -> None:
    found = times([{COMPUTE: 1.0}, {COMPUTE: 2.0}])
    found[1, 0, 0] = -1
    ranks = RankTimes(0)
    ranks.add(0, 1, found, {COMPUTE: SECOND})
    assert ranks.take() == {}
