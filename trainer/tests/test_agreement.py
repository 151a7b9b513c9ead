"""How often ranks ask each other whether one of them was told to leave."""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch
import torch.distributed as dist

from gaudi3_scale.config.interruption import InterruptionConfig
from gaudi3_scale.interruption import Agreement, Notice, Notices


class Clock:
    """The time of all ranks, both as a date and since some moment."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.date = 1.8e9
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(time, "time", lambda: self.date)

    def advance(self, seconds: float) -> None:
        self.now += seconds
        self.date += seconds


class Ranks:
    """Two ranks in one process; the second one's steps begin later in each step."""

    def __init__(self, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = clock
        self.notices = [Notices(InterruptionConfig(), log=lambda text: None) for _ in range(2)]
        self.ranks = [Agreement(each, object(), 2) for each in self.notices]
        self._sent: list[torch.Tensor] = []
        monkeypatch.setattr(dist, "all_reduce", self._all_reduce)

    def _all_reduce(self, values: torch.Tensor, *_: Any, **__: Any) -> Any:
        self._sent.append(values)
        return self

    def wait(self) -> None:
        """The maximum of both, in place."""
        if self._sent:
            assert len(self._sent) == 2, "one rank asked, and the other did not"
            largest = torch.stack(self._sent).amax(0)
            for values in self._sent:
                values.copy_(largest)
            self._sent.clear()

    def step(self, seconds: float) -> tuple[bool, list[bool]]:
        """One step on both: was there a collective, and what are the answers?"""
        self.ranks[0].ask()
        self.clock.advance(seconds / 10)
        self.ranks[1].ask()
        collective = bool(self._sent)
        self.clock.advance(seconds * 9 / 10)
        return collective, [rank.answer() for rank in self.ranks]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.mark.parametrize(("seconds", "between"), [(0.01, 16), (0.09, 5), (0.24, 2), (1.0, 1), (8.0, 1)])
def test_ranks_meet_about_every_half_second_and_not_in_every_short_step(
    seconds: float, between: int, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranks = Ranks(clock, monkeypatch)
    asked = [ranks.step(seconds)[0] for _ in range(11 + 160)]
    assert asked[:11] == [True] * 11  # as long as the time of a step is not known
    assert [number for number, each in enumerate(asked[11:], 1) if each] == list(range(between, 161, between))


def test_steps_that_become_slow_are_asked_in_each_again(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = Ranks(clock, monkeypatch)
    for _ in range(11):
        ranks.step(0.01)
    asked = [ranks.step(2.0)[0] for _ in range(20)]
    assert asked == [False] * 15 + [True] * 5


def test_both_leave_at_the_step_that_is_due(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = Ranks(clock, monkeypatch)
    for _ in range(11):
        ranks.step(0.09)
    ranks.notices[1].tell(Notice("SIGTERM", "x", clock.date + 30))
    assert [ranks.step(0.09)[1] for _ in range(5)] == [[False, False]] * 4 + [[True, True]]
    assert [round(each.notice.remaining(), 3) for each in ranks.notices if each.notice is not None] == [29.541, 29.55]


def test_the_other_ranks_deadline_does_not_move_with_a_clock_that_is_set(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranks = Ranks(clock, monkeypatch)
    ranks.notices[1].tell(Notice("SIGTERM", "x", clock.date + 30))
    ranks.ranks[0].ask()
    ranks.ranks[1].ask()
    clock.advance(2)
    clock.date += 180  # an operator, or a time server
    assert [rank.answer() for rank in ranks.ranks] == [True, True]
    assert [round(each.notice.remaining(), 3) for each in ranks.notices if each.notice is not None] == [28, 28]
