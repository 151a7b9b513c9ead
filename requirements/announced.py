"""Run a command that says nothing of itself, with a line when it begins and every 10 seconds as long as it runs.

announced.py TEXT COMMAND [ARGUMENT ...]

Needs nothing but Python, as it runs before anything is installed. Its exit code is the command's.
"""

from __future__ import annotations

import subprocess
import sys
import time

EVERY = 10.0


def run(text: str, command: list[str], every: float = EVERY) -> int:
    """Run the command; its exit code."""
    begun = time.monotonic()
    print(text, flush=True)
    with subprocess.Popen(command) as process:
        while True:
            try:
                return process.wait(every)
            except subprocess.TimeoutExpired:
                seconds = round(time.monotonic() - begun)
                print(f"{text} {seconds // 60}:{seconds % 60:02}", flush=True)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], sys.argv[2:]))
