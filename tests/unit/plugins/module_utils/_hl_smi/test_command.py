"""Tools are run within bounds of time and output, and nothing of a killed call is left or asked again."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi.command import HlSmi, HlSmiHung, Runner
from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi.hl_smi import HlSmiError


def tool(folder: Path, script: str) -> str:
    """A program of this text."""
    path = folder / "hl-smi"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_output_and_errors_are_told_apart_and_the_environment_is_the_tools(tmp_path: Path) -> None:
    path = tool(tmp_path, 'echo "$LC_ALL $ENABLE_CONSOLE $HABANA_LOGS"; echo trouble >&2; exit 3')
    assert Runner(30, {"HABANA_LOGS": "/logs"})([path]) == (3, "C true /logs\n", "trouble\n")


def test_what_a_hanging_tool_has_started_is_killed_with_it(tmp_path: Path) -> None:
    path = tool(tmp_path, f"sleep 60 & echo $! > {tmp_path}/child; wait")
    with pytest.raises(HlSmiHung, match=r"^hl-smi gave no answer in 0.5 seconds: a card may be in reset"):
        Runner(0.5)([path])
    state = Path(f"/proc/{(tmp_path / 'child').read_text().strip()}/stat")
    deadline = time.monotonic() + 30
    while state.exists() and state.read_text().rpartition(") ")[2][0] != "Z":
        assert time.monotonic() < deadline, "the child lives on"
        time.sleep(0.01)


def test_a_tool_without_end_is_stopped(tmp_path: Path) -> None:
    with pytest.raises(HlSmiHung, match=r"^hl-smi printed more than 100000 bytes$"):
        Runner(30, output_limit=100_000)([tool(tmp_path, "yes")])


def test_only_the_tool_that_hangs_is_refused_until_it_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, run, killed = tool(tmp_path, "exec sleep 60"), Runner(0.2), []
    monkeypatch.setattr(os, "killpg", lambda group, signal: killed.append((group, signal)))
    with pytest.raises(HlSmiHung):
        run([path])
    monkeypatch.undo()
    run.timeout = 60
    with pytest.raises(HlSmiHung, match=r"^hl-smi is still held in the kernel since a call that had to be killed$"):
        run([path])
    assert run(["/bin/echo", "well"]) == (0, "well\n", "")
    os.killpg(*killed[0])
    run._killed[path].wait(30)
    tool(tmp_path, "echo again")
    assert run([path]) == (0, "again\n", "")


def test_a_tool_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Runner(30)([f"{tmp_path}/hl-smi"])
    with pytest.raises(HlSmiError, match=r"/hl-smi cannot be started \(No such file or directory\)$"):
        HlSmi(f"{tmp_path}/hl-smi", Runner(30)).log()
