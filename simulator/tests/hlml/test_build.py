"""Compiling the library: once, the same each time, or not at all and with a reason."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gaudi3_simulator import SimulatorError, podman
from gaudi3_simulator.vendor import hlml


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAUDI3_SIMULATOR_HOME", str(tmp_path / "home"))


def test_equal_inputs_are_compiled_once_and_to_equal_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = hlml.library("1.23.0-695")
    written = first.stat().st_mtime_ns
    assert hlml.library("1.23.0-695") == first
    assert first.stat().st_mtime_ns == written
    assert hlml.library("1.22.0-740") != first
    monkeypatch.setenv("GAUDI3_SIMULATOR_HOME", str(tmp_path / "elsewhere"))
    again = hlml.library("1.23.0-695")
    assert again != first
    assert again.read_bytes() == first.read_bytes()
    assert [path.suffix for path in first.parent.iterdir()] == [".so", ".so"]


def test_a_changed_source_is_another_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = hlml.library("1.23.0-695")
    folder = hlml.source_folder()
    assert folder is not None
    copy = Path(shutil.copytree(folder, tmp_path / "sources"))
    monkeypatch.setattr(hlml, "source_folder", lambda: copy)
    (copy / "events.c").open("a").write("\nint hidden_from_programs;\n")
    assert hlml.library("1.23.0-695") != before
    (copy / "events.c").open("a").write("\nint broken\n")
    with pytest.raises(SimulatorError, match=r"could not be compiled: .*events\.c"):
        hlml.library("1.23.0-695")
    assert len(list(before.parent.iterdir())) == 2


def test_a_machine_without_a_compiler_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda program: None)
    with pytest.raises(SimulatorError, match="apt-get install gcc"):
        hlml.library("1.23.0-695")
    assert "gcc" in podman.missing_packages()


def test_without_its_sources_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hlml, "source_folder", lambda: None)
    with pytest.raises(SimulatorError, match="simulator/hlml"):
        hlml.library("1.23.0-695")
