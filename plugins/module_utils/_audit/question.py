# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Which records somebody asks for, and a record as one line for a person."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple, Optional

from .._printable import printable
from .._refusal import Refusal

_AGO = re.compile(r"(\d{1,6})([mhd])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


class Question(NamedTuple):
    """Empty words ask for all."""

    host: str = ""
    user: str = ""
    job: str = ""
    since: str = ""
    """As records have it: a time in UTC."""

    def fits(self, record: Mapping[str, Any]) -> bool:
        """Whether a record is asked for. A user may be the one who ran it, called sudo, or was become."""
        who, what = _part(record, "who"), _part(record, "what")
        users = (who.get("user"), who.get("sudo_user"), who.get("become_user"))
        return (
            (not self.host or self.host in (what.get("host"), what.get("delegated_to")))
            and (not self.user or self.user in users)
            and (not self.job or what.get("job") == self.job)
            and (not self.since or str(record.get("at", "")) >= self.since)
        )


def since(given: str, now: Optional[datetime] = None) -> str:
    """A time of the record from 30m, 12h, 7d, or a date with or without a time, in UTC. Refusal of another."""
    ago = _AGO.fullmatch(given)
    try:
        if ago:
            at = (now or datetime.now(timezone.utc)) - timedelta(**{_UNITS[ago.group(2)]: int(ago.group(1))})
        else:
            at = datetime.fromisoformat(given.replace("Z", "+00:00"))
            at = at.replace(tzinfo=timezone.utc) if at.tzinfo is None else at.astimezone(timezone.utc)
    except (ValueError, OverflowError):  # no time, or one before the year 1
        raise Refusal(
            f"--since is {given!r}: give how long ago (30m, 12h, 7d) or a time in UTC (2026-11-29, 2026-11-29T08:30)."
        ) from None
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def as_line(record: Mapping[str, Any]) -> str:
    """Number, time, who, where, what and how it ended."""
    who, what = _part(record, "who"), _part(record, "what")
    user = str(who.get("user", "?"))
    if who.get("sudo_user"):
        user = f"{who['sudo_user']} as {user}"
    if who.get("become_user"):
        user += f" > {who['become_user']}"
    if "task" in what:
        done = f"{what.get('module')}: {what['task']}"
        done += f" ({record['item']})" if record.get("item") else ""
    else:
        done = " ".join(str(what[name]) for name in ("by", "command", "playbook") if what.get(name))
    place = what.get("host") or what.get("deployment") or "-"
    fields = (record.get("n"), record.get("at"), user, place, record.get("result"), done)
    return "  ".join(printable(each, 200) for each in fields)


def _part(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = record.get(name)
    return found if isinstance(found, Mapping) else {}
