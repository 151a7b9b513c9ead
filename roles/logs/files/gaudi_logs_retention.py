# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Delete what a collector is not to keep of the nodes' journals. Run by a timer."""

from __future__ import annotations

import argparse
import contextlib
import time
from pathlib import Path

from engine._logs.questions import DIRECTORY
from engine._logs.retention import File, superfluous


def main() -> None:
    """Look at the files, and delete those that are too old or too many."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, required=True, help="age in seconds above which a file goes")
    parser.add_argument("--bytes", type=int, required=True, help="bytes above which the oldest go")
    asked = parser.parse_args()
    files = []
    for path in Path(DIRECTORY).iterdir():
        about = path.lstat()
        files.append(File(path.name, about.st_blocks * 512, about.st_mtime))
    for name in superfluous(files, time.time(), asked.seconds, asked.bytes):
        with contextlib.suppress(FileNotFoundError):
            Path(DIRECTORY, name).unlink()
            print(f"deleted {name}")


if __name__ == "__main__":
    main()
