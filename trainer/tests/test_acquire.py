"""A card that cannot be had at once: asked for again, and then named with its holder."""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from pathlib import Path

import pytest

from gaudi3_scale.errors import TrainerError
from gaudi3_scale.hpu import acquire as acquiring
from gaudi3_scale.hpu.acquire import acquire

RESETTING = "synStatus=26 [Generic failure] Device acquire failed."


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Time passes only in sleep."""
    passed = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: passed[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: passed.__setitem__(0, passed[0] + seconds))
    for name in ("HLS_MODULE_ID", "HABANA_VISIBLE_MODULES"):
        monkeypatch.delenv(name, raising=False)
    return passed


def refusing(times: int, text: str = RESETTING) -> tuple[list[int], acquiring.Callable[[], None]]:
    count = itertools.count(1)
    calls: list[int] = []

    def init() -> None:
        calls.append(next(count))
        if calls[-1] <= times:
            raise RuntimeError(text)

    return calls, init


@pytest.mark.parametrize("times", [0, 1, 20, 59])
def test_a_card_that_resets_is_waited_for(times: int, capsys: pytest.CaptureFixture[str]) -> None:
    calls, init = refusing(times)
    acquire(init, 60)
    assert len(calls) == times + 1
    said = capsys.readouterr().err
    assert said == (f"gaudi3-train: waiting up to 60 s for a card: {RESETTING}\n" if times else "")


@pytest.mark.parametrize(
    "text", ["Graph compile failed. synStatus=26 [Generic failure].", "No such file: libSynapse.so"]
)
def test_another_error_is_nothing_to_wait_for(text: str) -> None:
    calls, init = refusing(99, text)
    with pytest.raises(RuntimeError) as error:
        acquire(init, 60)
    assert str(error.value) == text and calls == [1]


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three cards, of which the second is held by process 4711."""
    monkeypatch.setattr(acquiring, "SYSFS", tmp_path / "sys")
    monkeypatch.setattr(acquiring, "PROC", tmp_path / "proc")
    for index, (module, status) in enumerate([("6", "In reset"), ("0", "Operational"), ("3", "Operational")]):
        device = tmp_path / f"sys/class/accel/accel{index}/device"
        device.mkdir(parents=True)
        (device / "module_id").write_text(module + "\n")
        (device / "status").write_text(status + "\n")
    for pid in ("4711", str(os.getpid())):
        folder = tmp_path / "proc" / pid
        (folder / "fd").mkdir(parents=True)
        (folder / "comm").write_text("python3\n")
        (folder / "fd/7").symlink_to("/dev/accel/accel1")
        (folder / "fd/8").symlink_to("/dev/accel/accel_controlD1")
    return tmp_path


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"HLS_MODULE_ID": "6"}, ["accel0 (module 6) is In reset and held by no process that this user sees"]),
        (
            {"HLS_MODULE_ID": "0", "HABANA_VISIBLE_MODULES": "0,3"},
            ["accel1 (module 0) is Operational and held by process 4711 (python3)"],
        ),
        ({"HABANA_VISIBLE_MODULES": "0,3"}, ["accel1 (module 0)", "accel2 (module 3)"]),
        ({}, ["accel0 (module 6)", "accel1 (module 0)", "accel2 (module 3)"]),
    ],
)
def test_in_the_end_the_card_its_status_and_its_holder_are_named(
    environment: dict[str, str], told: list[str], node: Path, monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    _calls, init = refusing(1000)
    with pytest.raises(TrainerError) as error:
        acquire(init, 60)
    assert clock[0] == 60
    sentence = str(error.value)
    assert sentence.startswith(f"No card could be taken into use within 60 s ({RESETTING.rstrip('.')}): {told[0]}")
    assert [card in sentence for card in told] == [True] * len(told) and sentence.count("module ") == len(told)


@pytest.mark.parametrize(("plugin", "ran"), [(True, ["released"]), (False, [])])
def test_a_card_is_given_up_before_a_process_leaves_at_once(
    plugin: bool, ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    released: list[str] = []
    monkeypatch.setattr(acquiring.atexit, "_run_exitfuncs", lambda: released.append("released"))
    monkeypatch.setitem(sys.modules, "habana_frameworks.torch", None)
    if not plugin:
        monkeypatch.delitem(sys.modules, "habana_frameworks.torch")
    acquiring.give_up()
    assert released == ran


def test_a_card_that_does_not_answer_keeps_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "habana_frameworks.torch", None)
    monkeypatch.setattr(acquiring.atexit, "_run_exitfuncs", threading.Event().wait)
    monkeypatch.setattr(acquiring, "LEAVE", 0.1)
    acquiring.give_up()


def test_a_machine_without_cards_in_sysfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acquiring, "SYSFS", tmp_path)
    with pytest.raises(TrainerError, match="no card is in /sys/class/accel"):
        acquire(refusing(9)[1], 0)
