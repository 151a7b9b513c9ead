"""Modules of the collection on a machine of the tests."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from .machines import Machine

ROOT = Path(__file__).resolve().parents[2]


def run_module(machine: Machine, name: str, arguments: dict[str, Any], *, check: bool = False) -> dict[str, Any]:
    """What a module answers, also where it fails."""
    path = machine.folder / "arguments.json"
    path.write_text(json.dumps({"ANSIBLE_MODULE_ARGS": {**arguments, "_ansible_check_mode": check}}))
    program = f"ansible_collections.gaudi3.scale.plugins.modules.{name}"
    done = machine.run(
        sys.executable, "-m", program, str(path), check=False,
        environment={"PYTHONPATH": os.pathsep.join([str(ROOT / "collections"), *filter(None, sys.path)])},
    )  # fmt: skip
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
