"""The page of the first training, as it is written."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from conftest import PACKAGES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "start" / "first-training.md"


def one_core() -> None:
    """Two threads of one job wait for each other on a busy machine."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def test_the_tutorial_does_what_it_says(tmp_path: Path) -> None:
    page = PAGE.read_text()
    commands = re.findall(r"(?<!-->\n)```sh\n(.*?)```", page, re.DOTALL)
    assert len(commands) == 7 and commands.pop(0).startswith("python3 -m venv ")  # which installs from the network
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, arguments in (("gaudi3-train", " -m gaudi3_scale"), ("python", "")):
        (tools / name).write_text(f'#!/bin/sh\nexec {sys.executable}{arguments} "$@"\n')
        (tools / name).chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "PYTHONPATH": PACKAGES,
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
    }
    shell = subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", "\n".join(commands)],
        cwd=tmp_path,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=one_core,
    )
    try:
        stdout, stderr = shell.communicate(timeout=800)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)
    assert shell.returncode == 0, stdout + stderr
    resumed = re.search(r"^resuming from step (\d+)$", (tmp_path / "second.log").read_text(), re.MULTILINE)
    assert resumed and 100 <= int(resumed[1]) < 400
    assert "finished 400 steps" in stdout
    steps = [json.loads(line)["step"] for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert steps == [1, *range(50, 401, 50)]
    lines = stdout.splitlines()
    assert "model.safetensors" in lines and "tokenizer.json" in lines
    written = stdout.split("tokenizer_config.json\n")[1]
    assert written.startswith("    def ") and len(written) > 20
    words = re.findall("[a-z]{2,}", written.removeprefix("    def "))
    assert len(words) >= 10 and {"self", "return", "name"} & {*words}, written  # something to read
