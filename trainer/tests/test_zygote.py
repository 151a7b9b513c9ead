"""What forks processes for the tests: a signal that comes during a fork is heard, as it is where none forks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os, signal
from zygote import Forked

class Told(Exception):
    pass

def told(number, frame):
    raise Told

signal.signal(signal.SIGTERM, told)
os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.SIGTERM))
try:
    Forked(lambda: None)
except Told:
    print("told")
print(signal.getsignal(signal.SIGTERM) is told)
"""


def test_a_signal_during_a_fork_is_heard_after_it() -> None:
    """Python drops what a handler raises in the hooks around a fork, and a lock of logging stays locked for good."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=Path(__file__).parent,
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (ran.stdout.split(), ran.stderr) == (["told", "True"], "")
