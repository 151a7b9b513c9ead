"""Rows in bounded memory, and the exact values of what a chart gets of them."""

from __future__ import annotations

import math

from gaudi3_watch.downsample import Columns


def filled(values: list[float | None], most: int = 1000) -> Columns:
    """One row a second, from 0."""
    rows = Columns(("a",), most)
    for time, value in enumerate(values):
        rows.add(time, {"a": value})
    return rows


def test_few_rows_are_shown_as_they_are() -> None:
    found = filled([3, 1, 2]).points("a", 0, 2, 10)
    assert (found.x, found.last, found.low, found.high) == ([0, 1, 2], [3, 1, 2], [3, 1, 2], [3, 1, 2])


def test_a_bucket_has_the_least_the_greatest_and_the_last_value() -> None:
    values = [float(each) for each in (0, 9, 1, 5, -7, 5, 6, 8, 7, 3, 4, 2)]
    found = filled(values).points("a", 0, 12, 4)
    assert found.x == [2, 5, 8, 11]
    assert found.low == [0, -7, 6, 2]
    assert found.high == [9, 5, 8, 4]
    assert found.last == [1, 5, 7, 2]


def test_a_span_has_the_rows_next_to_it_so_that_lines_reach_its_edges() -> None:
    found = filled([0, 1, 2, 3, 4, 5]).points("a", 2, 3, 10)
    assert found.x == [1, 2, 3, 4]
    found = filled([float(each) for each in range(100)]).points("a", 20, 60, 4)
    assert found.x == [19, 29, 39, 49, 60, 61]
    assert (found.low[1], found.high[1]) == (20, 29)


def test_a_span_between_two_rows_has_both() -> None:
    rows = Columns(("a",))
    rows.add(0, {"a": 1})
    rows.add(100, {"a": 2})
    assert rows.points("a", 40, 60, 10).x == [0, 100]


def test_what_is_no_finite_number_is_a_gap_and_hides_no_other_value() -> None:
    values = [1.0, math.nan, None, math.inf, 5.0, 2.0]
    found = filled(values).points("a", 0, 5, 10)
    assert found.last == [1, None, None, None, 5, 2]
    found = filled(values).points("a", 0, 6, 2)
    assert (found.low, found.high, found.last) == ([1, 2], [1, 5], [1, 2])
    assert filled([math.nan] * 3).points("a", 0, 3, 10).is_empty


def test_a_clock_that_was_set_back_is_counted_and_order_stays() -> None:
    rows = Columns(("a",))
    for time, value in ((10, 1), (20, 2), (5, 3), (21, 4)):
        rows.add(time, {"a": value})
    assert rows.clock_steps == 1
    assert rows.points("a", 0, 30, 10).x == [10, 20, 20, 21]


def test_memory_is_bounded_and_no_extreme_is_lost() -> None:
    values = [float(each % 7) for each in range(1000)]
    values[123], values[777] = -50.0, 60.0
    rows = filled(values, 64)
    assert len(rows) <= 64
    found = rows.points("a", 0, 999, 10)
    assert min(each for each in found.low if each is not None) == -50
    assert max(each for each in found.high if each is not None) == 60
    assert (found.x[-1], found.last[-1], rows.newest) == (999, values[-1], 999)
    assert found.x == sorted(found.x)
    assert rows.latest("a") == values[-1]


def test_halving_an_odd_number_of_rows_keeps_the_last_and_skips_gaps() -> None:
    rows = filled([1.0, math.nan, math.nan, 4.0, 5.0], 4)
    found = rows.points("a", 0, 5, 10)
    assert (found.x, found.last) == ([1, 3, 4], [1, 4, 5])
    assert (found.low, found.high) == ([1, 4, 5], [1, 4, 5])


def test_without_rows_there_is_nothing() -> None:
    rows = Columns(("a",))
    assert rows.points("a", 0, 10, 10).is_empty
    assert (rows.first, rows.newest, rows.latest("a")) == (None, None, None)
