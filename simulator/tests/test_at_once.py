"""Parts that do not wait for each other: of the preparation, too."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from gaudi3_simulator import SimulatorError, cluster
from gaudi3_simulator.at_once import at_once
from gaudi3_simulator.image import hpu


def test_the_image_and_the_device_are_built_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2, timeout=60)
    done: list[str] = []

    def built(name: str) -> None:
        both.wait()
        done.append(name)

    monkeypatch.setenv("GAUDI3_SIMULATOR_HOME", str(tmp_path))
    monkeypatch.setattr(cluster, "missing_packages", list)
    monkeypatch.setattr(cluster, "preflight", lambda: None)
    monkeypatch.setattr(cluster, "ensure_image", lambda _podman, _log: built("image"))
    monkeypatch.setattr(cluster, "ensure_device", lambda _log: built("device"))
    monkeypatch.setattr(cluster, "ensure_pytorch", lambda _log: done.append("PyTorch"))
    cluster.prepare(lambda _text: None)
    assert sorted(done[:2]) == ["device", "image"] and done[2:] == ["PyTorch"]


def test_an_error_is_told_once_the_others_have_ended() -> None:
    done: list[str] = []

    def fails() -> None:
        raise SimulatorError("no space")

    with pytest.raises(SimulatorError, match="no space"):
        at_once(fails, lambda: done.append("other"))
    assert done == ["other"]


def test_each_source_of_the_device_is_in_one_unit() -> None:
    folder = hpu.source_folder()
    assert folder is not None
    text = "".join(path.read_text() for path in (folder / "csrc/units").glob("*.cpp"))
    there = sorted(f'#include "../{path.name}"' for path in (folder / "csrc").glob("*.cpp"))
    assert sorted(line for line in text.splitlines() if line.startswith("#include")) == there
