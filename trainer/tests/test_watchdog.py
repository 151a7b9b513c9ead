"""A process in which nothing moves any more ends, and no other."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time

import pytest
from conftest import PACKAGES

from gaudi3_scale.distributed.watchdog import Watchdog


def watchdog(start: float = 300.0, bound: float = 120.0, enabled: bool = True) -> Watchdog:
    """One that is told the time by the test."""
    made = Watchdog(start, bound, lambda seconds: None, enabled=enabled)
    made._run = lambda: None  # type: ignore[method-assign]
    return made


def wait(dog: Watchdog, seconds: int) -> bool:
    """So many seconds pass; does the process end?"""
    return any(dog.passed(1.0) for _ in range(seconds))


def test_a_first_step_may_take_longer_than_a_later_one() -> None:
    dog = watchdog()
    with dog.watch():
        assert not wait(dog, 200)
        dog.seen()
        assert not wait(dog, 119)
        dog.beat()
        assert wait(dog, 200)


@pytest.mark.parametrize("seconds", [290, 310])
def test_a_first_step_is_not_waited_for_without_end(seconds: int) -> None:
    dog = watchdog()
    with dog.watch():
        assert wait(dog, seconds) == (seconds > 300)


@pytest.mark.parametrize(("passes", "seconds", "ends"), [(10, 300, False), (10, 330, True), (1, 150, True)])
def test_passes_that_the_card_has_not_finished_are_waited_for(passes: int, seconds: int, ends: bool) -> None:
    """The host is ahead of the card, which takes 20 seconds for each."""
    dog = watchdog()
    with dog.watch():
        dog.seen()
        dog.beat()
        assert not wait(dog, 20)
        dog.seen()
        for _ in range(passes):
            dog.beat()
        assert wait(dog, seconds) == ends


def test_what_is_new_may_take_as_long_as_the_first_step() -> None:
    dog = watchdog()
    with dog.watch():
        dog.seen()
        with dog.anew():  # an evaluation
            assert not wait(dog, 250)
        dog.beat()
        assert wait(dog, 130)


def test_what_is_not_watched_may_take_as_long_as_it_likes() -> None:
    dog = watchdog()
    assert not wait(dog, 1000)
    with dog.watch():
        dog.seen()
        with dog.paused():  # a checkpoint
            assert not wait(dog, 1000)
        assert not wait(dog, 100)
    assert not wait(dog, 1000)
    off = watchdog(enabled=False)
    with off.watch():
        assert not wait(off, 1000)


def test_a_process_that_was_stopped_has_not_waited() -> None:
    dog = watchdog()
    with dog.watch():
        dog.seen()
        assert not dog.passed(4000.0)


def test_the_first_thing_that_the_device_finishes_is_told_once() -> None:
    told: list[int] = []
    dog = watchdog()
    dog.started = lambda: told.append(1)
    dog.seen()
    dog.seen()
    assert told == [1]


def ended(body: str) -> tuple[int, float, str]:
    """Exit code, seconds and error output of a process that is watched with a bound of two seconds."""
    program = """
        import ctypes, os, sys, time
        from gaudi3_scale.distributed import watchdog
        watchdog.BACKSTOP = 1.0
        def end(seconds):
            print(f"nothing for {seconds:g} s", file=sys.stderr, flush=True)
            os._exit(1)
        dog = watchdog.Watchdog(2, 2, end)
        with dog.watch():
    """
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program) + textwrap.indent(textwrap.dedent(body), "    ")],
        env={**os.environ, "PYTHONPATH": PACKAGES},
        stderr=subprocess.PIPE,
        text=True,
        timeout=40,
    )
    return done.returncode, time.monotonic() - began, done.stderr


def test_a_process_that_hangs_is_ended() -> None:
    code, seconds, said = ended("time.sleep(30)")
    assert (code, said) == (1, "nothing for 2 s\n")
    assert seconds < 20


def test_a_process_that_hangs_with_its_interpreter_blocked_is_ended() -> None:
    code, seconds, said = ended("time.sleep(1.5)\nctypes.PyDLL(None).sleep(30)")
    assert code == 1 and "Timeout (" in said
    assert seconds < 20


def test_a_process_that_gets_on_is_left_alone() -> None:
    code, seconds, said = ended("for _ in range(8):\n    time.sleep(0.6)\n    dog.seen()")
    assert (code, said) == (0, "")
    assert seconds > 4
