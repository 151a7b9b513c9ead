"""Which records are asked for, and how one is shown."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._audit.question import Question, as_line, since
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal

RECORD = {
    "n": 7,
    "at": "2026-11-29T08:30:00.000Z",
    "who": {"user": "root", "sudo_user": "ann", "become_user": "gaudi"},
    "what": {"by": "ansible-playbook", "task": "Start", "module": "gaudi_train", "host": "n1", "job": "demo"},
    "result": "changed",
}


@pytest.mark.parametrize("word, other", [("host", "n2"), ("user", "bob"), ("job", "x"), ("since", "2026-11-30")])
def test_each_filter(word: str, other: str) -> None:
    right = {"host": "n1", "user": "ann", "job": "demo", "since": "2026-11-29T08:00:00.000Z"}
    assert Question(**right).fits(RECORD) and Question().fits(RECORD)
    assert not Question(**{**right, word: other}).fits(RECORD)


def test_since() -> None:
    now = datetime(2026, 11, 29, 8, 30, tzinfo=UTC)
    assert since("90m", now) == "2026-11-29T07:00:00.000Z" and since("2d", now) == "2026-11-27T08:30:00.000Z"
    assert since("2026-11-29") == "2026-11-29T00:00:00.000Z"
    assert since("2026-11-29T08:30+02:00") == "2026-11-29T06:30:00.000Z"
    with pytest.raises(Refusal, match="--since is 'yesterday': give how long ago"):
        since("yesterday")
    for odd in ("999999d", "0001-01-01T00:00+14:00", "9999-12-31T23:00-12:00"):  # no time of a calendar, in UTC
        with pytest.raises(Refusal, match=r"--since is '.*': give how long ago"):
            since(odd, now)


def test_a_record_as_a_line() -> None:
    said = "7  2026-11-29T08:30:00.000Z  ann as root > gaudi  n1  changed  gaudi_train: Start"
    assert as_line(RECORD) == said
    assert "\x1b" not in as_line({"what": {"task": "\x1b[2J", "module": "m"}})
