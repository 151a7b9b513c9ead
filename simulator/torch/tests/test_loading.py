"""How the device comes into a process, and when it stays out."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gaudi3_hpu_simulator import cards, load

Run = Callable[..., subprocess.CompletedProcess[str]]
NOTICE = "gaudi3-hpu-simulator: 'hpu' is simulated on this machine's CPU"


def test_it_says_once_and_only_when_used_that_it_is_a_simulator_and_counts_marks_in_lazy_mode(run: Run) -> None:
    code = """
import habana_frameworks.torch.core as htcore  # before torch, as sorted imports are
import sys, torch
assert torch.hpu.device_count() == 3 and torch.randn(2).sum() is not None
print("loaded", file=sys.stderr)
for device in ("hpu", "hpu:0"):
    torch.ones(1, device=device)
htcore.mark_step(); htcore.mark_step()
print(htcore.is_lazy(), htcore.marked_steps(), torch.hpu.mem_get_info())
"""
    settings = {cards.DEVICES: "3", cards.MEMORY: "1000", "PT_HPU_LAZY_MODE": "1"}
    done = run(code, **settings)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True 2 (1000, 1000)\n"
    before, _, after = done.stderr.partition("loaded\n")
    assert NOTICE not in before
    assert after.count(NOTICE) == 1


def test_without_a_card_there_is_no_device_and_a_reason(run: Run) -> None:
    code = """
import torch
assert not torch.hpu.is_available() and torch.accelerator.current_accelerator(check_available=True) is None
torch.ones(1, device="hpu")
"""
    done = run(code, **{cards.DEVICES: "0"})
    assert done.returncode == 1
    assert "RuntimeError: synStatus=8 [Device not found] Device acquire failed. No devices found." in done.stderr
    assert f"There is no HPU here: {cards.DEVICES} is 0." in done.stderr
    assert NOTICE not in done.stderr


def test_autoload_can_be_turned_off(run: Run) -> None:
    code = "import torch; print(hasattr(torch, 'hpu')); import habana_frameworks.torch; print(torch.hpu.is_available())"
    done = run(code, PT_HPU_AUTOLOAD="0")
    assert (done.returncode, done.stdout) == (0, "False\nTrue\n"), done.stderr


def test_it_does_not_start_beside_the_real_plugin(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "habana_frameworks").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(load.RealPluginFound, match="is another habana_frameworks, so hpu is not simulated here"):
        load.refuse_beside_real()
    (tmp_path / "habana_frameworks").rmdir()
    load.refuse_beside_real()
    metadata = tmp_path / "habana_torch_plugin-1.23.0.695.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: habana-torch-plugin\nVersion: 1.23.0.695\n")
    sentence = (
        "habana-torch-plugin 1.23.0.695 is installed, so hpu is not simulated here: take gaudi3-hpu-simulator off"
    )
    with pytest.raises(load.RealPluginFound, match=sentence):
        load.refuse_beside_real()
    done = run("import torch")
    assert done.returncode == 1
    assert sentence in done.stderr


@pytest.mark.parametrize(("name", "value"), [(cards.DEVICES, "many"), (cards.DEVICES, "65"), (cards.MEMORY, "-1")])
def test_settings_that_are_no_sensible_number(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=f"{name} is '{value}', but it has to be a whole number from 0 to"):
        cards.find()


def test_a_simulated_nodes_cards_are_its_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAUDI3_SIMULATOR_ROOT", str(tmp_path))
    monkeypatch.setenv(cards.DEVICES, "5")
    assert cards.find().count == 5
    assert [card.module for card in cards.find().cards] == list(range(5))
    (tmp_path / "var/lib/gaudi3-simulator").mkdir(parents=True)
    (tmp_path / "var/lib/gaudi3-simulator/state.json").write_text("{}")
    assert (cards.find().count, "habalanabs" in cards.find().absent) == (0, False)
    assert "driver (habanalabs) is not loaded" in cards.find().absent
    (tmp_path / "dev/accel").mkdir(parents=True)
    for name in ("accel10", "accel2", "accel_controlD2", "accel0"):
        (tmp_path / "dev/accel" / name).touch()
    (tmp_path / "sys/class/accel/accel2/device").mkdir(parents=True)
    (tmp_path / "sys/class/accel/accel2/device/module_id").write_text("7\n")
    found = cards.find()
    assert [(card.index, card.module) for card in found.cards] == [(0, 0), (2, 7), (10, 10)]
    assert found.folder == "", "the node's driver makes the card files"
    assert found.cards[1] == cards.Card(
        2,
        7,
        f"{tmp_path}/run/gaudi3-simulator/cards/accel2",
        f"{tmp_path}/dev/accel/accel2",
        f"{tmp_path}/sys/class/accel/accel2/device/status",
    )
