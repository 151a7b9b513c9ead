"""Which silences are made and ended."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._monitoring.silences import Wanted, body, changes, seconds

NOW = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)
TWO_HOURS = Wanted(["gaudi-5"], 7200, "new cable")


def silence(identity: str = "a", wanted: Wanted = TWO_HOURS, **more: Any) -> dict[str, Any]:
    return {"id": identity, "status": {"state": "active"}} | body(wanted.nodes[0], wanted, NOW) | more


@pytest.mark.parametrize(
    ("text", "length"),
    [("2h", 7200), ("90m", 5400), ("1d12h", 129600), ("1w", 604800), ("2", 0), ("", 0), ("2h30", 0), ("-2h", 0)],
)
def test_a_length(text: str, length: int) -> None:
    assert seconds(text) == length


def test_what_is_there_is_kept() -> None:
    assert changes([silence()], TWO_HOURS, NOW).make == changes([silence()], TWO_HOURS, NOW).end == []
    late = silence(startsAt="2026-11-28T12:00:09.123456789Z")
    assert changes([late], TWO_HOURS, NOW).nodes() == []


@pytest.mark.parametrize("other", [Wanted(["gaudi-5"], 3600, "new cable"), Wanted(["gaudi-5"], 7200, "new card")])
def test_another_length_or_reason_makes_it_again(other: Wanted) -> None:
    made = changes([silence()], other, NOW)
    assert (made.nodes(), made.end) == (["gaudi-5"], ["a"])


@pytest.mark.parametrize(
    "foreign",
    [
        {"createdBy": "anna"},
        {"status": {"state": "expired"}},
        {"matchers": [{"name": "alertname", "value": "gaudi-5", "isRegex": False}]},
        {"matchers": [{"name": "instance", "value": "gaudi-5", "isRegex": True}]},
        {"matchers": silence()["matchers"] * 2},
        {"matchers": [{"name": "instance", "value": "gaudi-55", "isRegex": False}]},
    ],
)
def test_other_silences_are_left_alone_and_do_not_count(foreign: dict[str, Any]) -> None:
    made = changes([silence(**foreign)], TWO_HOURS, NOW)
    assert (made.nodes(), made.end) == (["gaudi-5"], [])
    assert changes([silence(**foreign)], Wanted(["gaudi-5"], 0), NOW).end == []


def test_each_node_has_one_of_its_own() -> None:
    both = Wanted(["gaudi-6", "gaudi-5", "gaudi-6"], 7200, "new cable")
    made = changes([silence(), silence("b")], both, NOW)
    assert (made.nodes(), made.end) == (["gaudi-6"], ["b"])
    assert made.make[0]["endsAt"] == "2026-11-28T14:00:00Z"
