"""Times of snapshots as restic writes them, in the zone of each machine."""

from __future__ import annotations

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._backup.moments import moment


def test_times_of_all_zones_are_in_one_order() -> None:
    # The hour that an autumn night has twice: the first text is the later one by its letters alone.
    summer, winter = "2026-10-25T02:30:00+02:00", "2026-10-25T02:15:00.5+01:00"
    assert moment(summer) < moment(winter) and summer > winter
    assert moment("2026-11-29T23:55:17.80336763Z") == (1795996517, 803367630)
    assert moment("2026-11-29T23:55:17.8Z") < moment("2026-11-29T23:55:17.80336763Z")


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-13-01T00:00:00Z", "2026-11-29T23:55:17", "2026-11-29 23:55:17Z"]
)
def test_what_is_no_time_is_the_oldest(text: str) -> None:
    assert moment(text) == (0, 0)
