"""Long steps are one line each, and on a terminal they carry their number and the time that they take."""

from __future__ import annotations

import io
import re
import sys
import time
from typing import Any

import pytest

from gaudi3_simulator import cli, clock


class Terminal(io.StringIO):
    """A terminal that keeps what it is sent."""

    def isatty(self) -> bool:
        return True


def said(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO) -> str:
    """What three steps of `prepare` say, of which the second has a part and takes long."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(cli, "_log", clock.Teller(every=3600))

    def prepare(log: Any, step: Any) -> None:
        step(1, 3)
        step(2, 3)
        log("building the image")
        now[0] += 5
        log("  torch for CPU")
        now[0] += 83
        step(3, 3)
        log("building the tarball")
        now[0] += 0.5

    monkeypatch.setattr(cli.cluster, "prepare", prepare)
    assert cli.main(["prepare"]) == 0
    return stream.getvalue()


def test_a_log_has_one_line_for_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    assert said(monkeypatch, io.StringIO()) == "building the image\n  torch for CPU\nbuilding the tarball\n"


def test_a_terminal_has_number_and_time_of_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = [re.split("\r", line)[-1] for line in said(monkeypatch, Terminal()).split("\n")]
    assert shown == [
        "step 2 of 3: building the image 0:05",
        "  step 2 of 3: torch for CPU 1:23",
        "step 3 of 3: building the tarball",
        "",
    ]


def test_a_line_that_is_rewritten_fits_into_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, text = Terminal(), f"building; log: {'x' * 100}"
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", "40")
    with clock.Teller(every=3600) as log:
        log(text)
        assert len(stream.getvalue().lstrip("\r")) < 40
    assert stream.getvalue().endswith(f"\r{text}\n")


def test_the_time_goes_on_while_a_step_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with clock.Teller(every=0.001) as log:
        log("building")
        while stream.getvalue().count("\rbuilding") < 3:
            time.sleep(0.001)
    assert stream.getvalue().endswith("\rbuilding\n")


def test_a_log_says_again_what_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with clock.Teller(again=0.01) as log:
        log.step(2, 3)
        log("building")
        while stream.getvalue().count("step 2 of 3: building\n") < 2:
            time.sleep(0.001)
        log("booting")
    assert re.fullmatch(r"building\n(step 2 of 3: building\n)+booting\n(step 2 of 3: booting\n)*", stream.getvalue())


def test_an_error_begins_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)

    def prepare(log: Any, _step: Any) -> None:
        log("building")
        raise cli.SimulatorError("It failed.")

    monkeypatch.setattr(cli.cluster, "prepare", prepare)
    assert cli.main(["prepare"]) == 1
    assert stream.getvalue().endswith("building\ngaudi3-simulator: It failed.\n")
