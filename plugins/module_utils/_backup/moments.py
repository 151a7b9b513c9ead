# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""When snapshots were made: restic writes the time in the zone of the machine that made one."""

from __future__ import annotations

import re
from datetime import datetime, timezone

from .._refusal import Refusal

#: By how much clocks of one machine and of its successor may differ, in seconds.
_AGREED = 3600
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)")


def moment(text: str) -> tuple[int, int]:
    """Seconds since 1970 and nanoseconds of a time such as ``2026-11-29T11:58:52.476941408+01:00``; zeros of none."""
    found = _TIME.fullmatch(text)
    try:
        zone = found[3].replace("Z", "+00:00") if found else ""
        seconds = int(datetime.fromisoformat(found[1] + zone).timestamp()) if found else 0
    except (ValueError, OverflowError):
        return 0, 0
    return (seconds, int((found[2] or "").ljust(9, "0"))) if found else (0, 0)


def refuse_later(name: str, time: str, now: float, instead: str) -> None:
    """Refuse to take a snapshot for the newest one that is of a later time than this machine's clock has.

    One that is made now would be older, so that a restore would take the other.
    """
    if moment(time)[0] > now + _AGREED:
        here = datetime.fromtimestamp(now, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        raise Refusal(
            f"snapshot {name} is of {time}, which is later than the clock of this machine ({here}): set the clock that "
            f"is wrong, and {instead}"
        )
