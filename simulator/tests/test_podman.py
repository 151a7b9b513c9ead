"""How podman is called."""

from __future__ import annotations

from pathlib import Path

import pytest

from gaudi3_simulator.podman import Podman


def test_podman_runs_in_a_folder_that_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node's monitor inherits the folder, and a node whose folder is gone does not come back from a reboot."""
    program = tmp_path / "bin/podman"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\npwd\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setenv("GAUDI3_SIMULATOR_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    assert Podman().run("start", "gaudi3-demo-gaudi-1").stdout == "/\n"
