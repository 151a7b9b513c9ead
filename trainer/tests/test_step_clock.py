"""What a process does in a step by itself, and how long it waits: by its own clock, or by marks in a device's work."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from gaudi3_scale.hpu import device as devices
from gaudi3_scale.throughput import step_clock
from gaudi3_scale.throughput.ledger import CHECKPOINT, COMPUTE, DATA, OTHER, Ledger
from gaudi3_scale.throughput.step_clock import COLUMNS, MOST_SLOTS, RECOMPILATION, UNKNOWN, WAIT, StepClock

SECOND = 10**9


class Now:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.time = 0

    def __call__(self) -> int:
        return self.time

    def pass_(self, seconds: float) -> None:
        self.time += round(seconds * SECOND)


def rows(clock: StepClock) -> list[dict[str, float]]:
    """Seconds by column, those that are not 0, of each step that was read."""
    numbers, _ = clock.read()
    found = [numbers[at : at + len(COLUMNS)] for at in range(0, len(numbers), len(COLUMNS))]
    named = [{name: value / SECOND for name, value in zip(COLUMNS, row, strict=True) if value} for row in found]
    return [row for row in named if row]


def begun(slots: int = 10, alone: bool = False) -> tuple[Now, Ledger, StepClock]:
    now = Now()
    ledger = Ledger(clock=now)
    ledger.switch(COMPUTE)
    return now, ledger, StepClock(ledger, slots, alone)


def step(now: Now, clock: StepClock, work: float, wait: float = 0.0, new: bool = False) -> None:
    clock.begun(new)
    now.pass_(work)
    clock.computed()
    now.pass_(wait)
    clock.met()
    clock.ended()


def test_own_work_ends_with_the_last_gradient_and_the_rest_of_the_pass_is_waiting() -> None:
    now, ledger, clock = begun()
    step(now, clock, 2, 1)
    with ledger.during(DATA):
        now.pass_(3)
    with ledger.during(CHECKPOINT):
        now.pass_(4)
    step(now, clock, 5, 0.5)
    numbers, spent = clock.read()
    assert len(numbers) == 10 * len(COLUMNS)
    assert spent[COMPUTE] == 8.5 * SECOND and spent[DATA] == 3 * SECOND and spent[OTHER] == 0
    step(now, clock, 1, 1)
    assert rows(clock) == [{COMPUTE: 1, WAIT: 1}]


def test_the_parts_of_each_step_are_those_of_the_ledger() -> None:
    now, ledger, clock = begun()
    step(now, clock, 2, 1)
    with ledger.during(DATA):
        now.pass_(3)
    step(now, clock, 5, 0.5)
    assert rows(clock) == [{COMPUTE: 2, WAIT: 1}, {COMPUTE: 5, DATA: 3, WAIT: 0.5}]


def test_micro_batches_that_exchange_nothing_belong_to_the_step_that_does() -> None:
    now, _, clock = begun()
    clock.begun()
    now.pass_(2)
    clock.met()  # a backward pass without an exchange
    step(now, clock, 3, 1)
    assert rows(clock) == [{COMPUTE: 5, WAIT: 1}]


def test_a_process_that_is_alone_waits_for_none() -> None:
    now, _, clock = begun(alone=True)
    for work in (1, 2):
        clock.begun()
        now.pass_(work)
        clock.met()
        clock.ended()
    assert rows(clock) == [{COMPUTE: 1}, {COMPUTE: 2}]


def test_processes_that_meet_elsewhere_cannot_tell() -> None:
    """As those of a model that is split meet in every layer."""
    now, _, clock = begun()
    clock.begun()
    now.pass_(1)
    clock.met()
    clock.ended()
    numbers, _ = clock.read()
    assert numbers[0] == UNKNOWN and not any(numbers[1:])


def test_what_a_new_shape_adds_to_a_usual_step_is_recompilation() -> None:
    now, _, clock = begun()
    step(now, clock, 9, new=True)
    step(now, clock, 2)
    step(now, clock, 2)
    assert rows(clock) == [{COMPUTE: 2, RECOMPILATION: 7}, {COMPUTE: 2}, {COMPUTE: 2}]
    step(now, clock, 12, new=True)  # no other one in this reading: as those before
    assert rows(clock) == [{COMPUTE: 2, RECOMPILATION: 10}]
    step(now, clock, 1.5, new=True)
    assert rows(clock) == [{COMPUTE: 1.5}]


def test_of_more_steps_than_fit_some_are_added_up() -> None:
    now, _, clock = begun(slots=1000)
    for _number in range(2 * MOST_SLOTS):
        step(now, clock, 1, 1)
    assert rows(clock) == [{COMPUTE: 2, WAIT: 2}] * MOST_SLOTS


class Mark:
    """As an event of CUDA."""

    now = 0.0
    made = 0

    def __init__(self) -> None:
        Mark.made += 1

    def record(self) -> None:
        self.at = Mark.now

    def elapsed_time(self, end: Mark) -> float:
        return 1000 * (end.at - self.at)


@pytest.fixture
def marks(monkeypatch: pytest.MonkeyPatch) -> type[Mark]:
    monkeypatch.setattr(devices, "timer", lambda device: Mark())
    Mark.now, Mark.made = 0.0, 0
    return Mark


def test_marks_in_a_devices_work_take_the_place_of_the_hosts_clock(marks: type[Mark]) -> None:
    """The host's waits count as far as the device had nothing to do meanwhile; marks are used again."""
    now = Now()
    ledger = Ledger(clock=now)
    ledger.switch(COMPUTE)
    clock = StepClock(ledger, 4, False, torch.device("cuda"))
    for _round in range(5):
        with ledger.during(DATA):
            now.pass_(2)  # the device was idle for one of these seconds
        marks.now += 1
        clock.begun()
        marks.now += 3
        clock.computed()
        marks.now += 0.25
        clock.met()
        marks.now += 0.5  # the optimizer
        clock.ended()
        found = rows(clock)
    assert found == [{COMPUTE: 3.5, DATA: 1, WAIT: 0.25}]
    assert marks.made <= 8


def test_a_device_whose_marks_have_no_times_is_not_measured(marks: type[Mark], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Mark, end: Mark) -> float:
        raise RuntimeError("not completed")

    monkeypatch.setattr(Mark, "elapsed_time", refuse)
    now = Now()
    clock = StepClock(Ledger(clock=now), 2, False, torch.device("cuda"))
    for _number in range(2):
        step(now, clock, 1, 1)
        assert clock.read()[0][0] == UNKNOWN


def test_a_device_without_marks_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "timer", lambda device: None)
    now = Now()
    clock = StepClock(Ledger(clock=now), 2, False, torch.device("hpu"))
    step(now, clock, 1, 1)
    assert clock.read()[0][0] == UNKNOWN


def test_a_model_whose_gradients_are_reduced_tells_the_clock_when_it_has_them() -> None:
    class Told:
        def __init__(self) -> None:
            self.calls: list[str] = []

        def __getattr__(self, name: str) -> Any:
            return lambda *given: self.calls.append(name)

    model: Any = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    model.require_backward_grad_sync, model.find_unused_parameters = True, False
    told: Any = Told()
    step_clock.watch(model)
    model(torch.ones(1, 2)).sum().backward()  # nobody listens
    step_clock.use(told)
    try:
        model(torch.ones(1, 2)).sum().backward()
        model.require_backward_grad_sync = False
        model(torch.ones(1, 2)).sum().backward()
        step_clock.met()
    finally:
        step_clock.use(None)
    step_clock.met()
    assert told.calls == ["computed", "met"]


def test_a_model_that_may_leave_parameters_unused_is_not_watched() -> None:
    model: Any = nn.Linear(2, 1)
    model.require_backward_grad_sync, model.find_unused_parameters = True, True
    step_clock.watch(model)
    step_clock.watch(nn.Linear(2, 1))  # nor one that nobody reduces
    assert not model.weight._post_accumulate_grad_hooks
