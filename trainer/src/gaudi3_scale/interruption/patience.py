"""How long a launcher waits for workers that it has told to end, before it kills them.

torchrun reads TORCH_ELASTIC_SHUTDOWN_TIMEOUT in some versions only. Those of torch 2.9.1, 2.10.0 and 2.11.0, which
Intel's releases ship, wait for the 30 seconds that are the default of `PContext.close`. The launcher of this package
keeps to the variable with each of them.
"""

from __future__ import annotations

import importlib.util
import os
from functools import cache
from pathlib import Path

SHUTDOWN_TIMEOUT = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"
LEAVING_FILE = "GAUDI3_LAUNCH_LEAVING"
"""Environment variable of the launcher of this package: the file by which a worker tells it that this node was told to
leave. A worker that has it knows by that who its launcher is."""
DEFAULT = 30
"""Seconds; of `PContext.close` in torch/distributed/elastic/multiprocessing/api.py, and of the variable."""


def patience() -> float:
    """Seconds that this process's launcher gives it; of a process that has no launcher, what torchrun would give."""
    if LEAVING_FILE in os.environ or _torchrun_reads_it():
        return float(os.environ.get(SHUTDOWN_TIMEOUT, DEFAULT))
    return DEFAULT


@cache
def _torchrun_reads_it() -> bool:
    """Whether the installed torchrun knows the variable, without importing torch, which takes seconds."""
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        return False
    try:
        text = (Path(found.origin).parent / "distributed" / "launcher" / "api.py").read_text(encoding="utf-8")
    except OSError:
        return False
    return SHUTDOWN_TIMEOUT in text
