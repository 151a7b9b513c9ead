# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The last lines of a job's log that are of use to somebody who asks why it ended."""

from __future__ import annotations

#: More than torchrun prints about itself after a worker of its has failed.
EPILOGUE_LINES = 100


def last_words(lines: list[str], count: int) -> list[str]:
    """The last lines of a job's log, without the long trace which torchrun prints about its own end."""
    heads = [number for number, line in enumerate(lines) if "failed (exitcode:" in line]
    rules = [number for number, line in enumerate(lines) if line.startswith("=====")]
    if heads and rules and rules[-1] > heads[-1]:
        lines = lines[: heads[-1] + 1] + lines[rules[-1] + 1 :]
    return lines[-count:]
