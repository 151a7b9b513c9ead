"""How the device comes into a process, and when it stays out."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gaudi3_hpu_simulator import cards, load

Run = Callable[..., subprocess.CompletedProcess[str]]
NOTICE = "gaudi3-hpu-simulator: 'hpu' is simulated on this machine's CPU"


def test_it_says_once_and_only_when_used_that_it_is_a_simulator_and_counts_marks_in_lazy_mode(fresh: Run) -> None:
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
    done = fresh(code, **settings)
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


def test_autoload_can_be_turned_off(fresh: Run) -> None:
    code = "import torch; print(hasattr(torch, 'hpu')); import habana_frameworks.torch; print(torch.hpu.is_available())"
    done = fresh(code, PT_HPU_AUTOLOAD="0")
    assert (done.returncode, done.stdout) == (0, "False\nTrue\n"), done.stderr


@pytest.mark.parametrize("first", ["torch", "habana_frameworks.torch.hpex.kernels"])
def test_one_import_brings_what_habanas_brings_and_no_compiler(fresh: Run, first: str) -> None:
    code = f"""
import sys
import {first}
import torch, torch.distributed
print("hccl" in torch.distributed.Backend.backend_list)
ht = sys.modules["habana_frameworks.torch"]
print(ht.core.hpu is ht.hpu is torch.hpu, ht.distributed.hccl.__name__, ht.torch is torch)
print(ht.activity_profiler.DebugActivity.__name__, ht.bc.get_pt_hpu_gpu_migration())
print([name for name in ("torch._dynamo", "torch._inductor", "torch.distributed.tensor") if name in sys.modules])
"""
    done = fresh(code)
    expected = "True\nTrue habana_frameworks.torch.distributed.hccl True\nDebugActivity False\n[]\n"
    assert (done.returncode, done.stdout) == (0, expected), done.stderr


def test_gpu_migration_by_its_variable_is_refused_at_the_import(fresh: Run) -> None:
    done = fresh("import habana_frameworks.torch", PT_HPU_GPU_MIGRATION="1")
    assert done.returncode == 1
    assert (
        "has no GPU migration (habana_frameworks.torch.gpu_migration): take it and PT_HPU_GPU_MIGRATION" in done.stderr
    )


def test_it_does_not_start_beside_another_habana_frameworks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "habana_frameworks").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(load.RealPluginFound, match="is another habana_frameworks, so hpu is not simulated here"):
        load.refuse_beside_real()
    (tmp_path / "habana_frameworks").rmdir()
    # A folder that cannot be looked into, as another user's, is none; what is too long is not let in to root either.
    monkeypatch.syspath_prepend("x" * 300)
    load.refuse_beside_real()


def test_the_metadata_of_the_plugin_come_with_it_under_a_label_of_its_own() -> None:
    own = [found.version for found in importlib.metadata.distributions(name=load.REAL_DISTRIBUTION)]
    assert own and {version.partition("+")[2] for version in own} == {load.OWN_LABEL}
    assert re.fullmatch(r"\d+\.\d+\.\d+\.\d+", own[0].partition("+")[0])
    load.refuse_beside_real()


@pytest.mark.parametrize("version", ["1.23.0.695", "1.24.1.482", "1.22.0.1+git1234", "1.23.0.695+gaudi3.simulator.2"])
@pytest.mark.parametrize("place", [0, -1])
def test_it_does_not_start_beside_the_real_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, place: int
) -> None:
    metadata = tmp_path / f"habana_torch_plugin-{version}.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: habana-torch-plugin\nVersion: {version}\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path] if place == 0 else [*sys.path, str(tmp_path)])
    sentence = (
        f"habana-torch-plugin {version} is installed, so hpu is not simulated here: take gaudi3-hpu-simulator off"
    )
    with pytest.raises(load.RealPluginFound, match=re.escape(sentence)):
        load.refuse_beside_real()


def test_import_torch_says_that_the_real_plugin_is_there(
    fresh: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = tmp_path / "habana_torch_plugin-1.23.0.695.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: habana-torch-plugin\nVersion: 1.23.0.695\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    done = fresh("import torch")
    assert done.returncode == 1
    assert "habana-torch-plugin 1.23.0.695 is installed, so hpu is not simulated here" in done.stderr


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
