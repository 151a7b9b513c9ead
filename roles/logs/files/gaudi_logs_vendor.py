# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Put the lines that the vendor's libraries log into files of this node into its journal."""

from __future__ import annotations

import argparse
import json
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine._files import write_file
from engine._logs import following

SOCKET = "/run/systemd/journal/socket"
PAUSE = 5.0


def main() -> None:
    """Look at the files again and again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", required=True, help="folder of the logs of tools")
    parser.add_argument("--jobs", required=True, help="folder of the jobs' folders")
    parser.add_argument("--state", required=True, help="file that says how far each file was read")
    parser.add_argument("--once", action="store_true", help="look once and end")
    asked = parser.parse_args()
    known = kept(asked.state)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal:
        journal.connect(SOCKET)
        while True:
            after = passed(journal, asked.tools, asked.jobs, known)
            if after != known or not Path(asked.state).exists():
                write_file(asked.state, json.dumps(after) + "\n", 0o600)
            known = after
            if asked.once:
                return
            time.sleep(PAUSE)


def kept(path: str) -> Mapping[str, int] | None:
    """How far each file was read; None before the first time."""
    try:
        found: Any = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return {key: each for key, each in found.items() if isinstance(each, int)} if isinstance(found, dict) else None


def passed(journal: socket.socket, tools: str, jobs: str, known: Mapping[str, int] | None) -> dict[str, int]:
    """Send what has been added to each file, and say how far that is."""
    after: dict[str, int] = {}
    left = following.OF_ALL
    for found in following.files(tools, jobs):
        offset = following.start_of(found.key, found.size, known or {}, known is None)
        if left <= 0:
            after[found.key] = offset
            continue
        lines, after[found.key] = following.new_lines(found, offset, left)
        for line in lines:
            journal.send(following.datagram(line, found.path, found.job))
            left -= len(line) + 1
    return after


if __name__ == "__main__":
    main()
