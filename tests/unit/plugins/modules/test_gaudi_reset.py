"""gaudi_reset: which cards are reset, and when it refuses or gives up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._cards import accel
from ansible_collections.gaudi3.scale.plugins.modules import gaudi_reset

HL_SMI = """#!/bin/sh
case " $* " in
*" -Q "*) printf '0, 0000:19:00.0\\n1, 0000:1a:00.0\\n';;
*) echo "$*" >> {folder}/calls; [ -e {folder}/refuses ] && {{ echo the card does not answer; exit 2; }}; exit 0;;
esac
"""


@pytest.fixture(name="reset")
def a_reset(run_module: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    tool = tmp_path / "hl-smi"
    tool.write_text(HL_SMI.format(folder=tmp_path))
    tool.chmod(0o755)
    monkeypatch.setattr(accel, "users", list)
    devices = [accel.Device("accel0", "Operational", None), accel.Device("accel1", "Operational", None)]
    monkeypatch.setattr(accel, "devices", lambda: devices)

    def run(**options: Any) -> dict[str, Any]:
        result: dict[str, Any] = run_module(gaudi_reset, executable=str(tool), **options)
        return result

    return run


def calls(folder: Path) -> list[str]:
    path = folder / "calls"
    return path.read_text().splitlines() if path.exists() else []


def test_the_cards_that_are_named_are_reset_or_all(reset: Any, tmp_path: Path) -> None:
    assert reset(cards=[1], check=True)["cards"] == [1]
    assert calls(tmp_path) == []
    done = reset(cards=[1])
    assert (done["changed"], done["cards"], calls(tmp_path)) == (True, [1], ["-r -i 0000:1a:00.0"])
    assert reset()["cards"] == [0, 1]


def test_a_card_that_is_not_there_is_named(reset: Any) -> None:
    assert reset(cards=[1, 7])["msg"] == (
        "accel7 cannot be reset, as hl-smi does not list it: reload the driver or reboot the node."
    )


def test_a_card_that_a_process_holds_is_not_reset(reset: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    holder = accel.User(4711, "python3", held=frozenset({"accel1"}))
    monkeypatch.setattr(accel, "users", lambda: [holder])
    assert reset(cards=[1])["msg"] == "process 4711 (python3) holds a card that is to be reset: end it first."
    assert calls(tmp_path) == []
    assert reset(cards=[0])["changed"] is True


def test_a_reset_that_fails_and_one_that_does_not_help(
    reset: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accel, "devices", lambda: [accel.Device("accel0", "In reset", None)])
    assert reset(cards=[0], settle=0)["msg"] == ("accel0 is 'In reset' 0 seconds after the reset: reload the driver.")
    (tmp_path / "refuses").touch()
    assert "ended with exit code 2 and said 'the card does not answer'" in reset(cards=[0])["msg"]
