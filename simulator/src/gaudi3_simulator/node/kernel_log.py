"""The node's kernel log: what ``dmesg`` shows, and the same lines in the journal."""

from __future__ import annotations

import os

from . import paths

EMERGENCY, ALERT, ERROR, WARNING, NOTICE, INFO = 0, 1, 3, 4, 5, 6
_JOURNAL = "/run/systemd/journal/socket"


def write(booted_at: float, *messages: str, level: int = INFO) -> None:
    """Add lines to the log, stamped with the seconds since the node started."""
    os.makedirs(paths.at(paths.RUN), exist_ok=True)
    since = max(0.0, paths.now() - booted_at)
    with open(paths.at(paths.KERNEL_LOG), "a", encoding="utf-8") as file:
        file.writelines(f"<{level}>{since:.6f} {message}\n" for message in messages)
    if not paths.root():
        _to_journal(messages, level)


def read() -> list[tuple[int, float, str]]:
    """Every line as (level, seconds since start, message)."""
    lines = []
    for line in (paths.read_text(paths.KERNEL_LOG) or "").splitlines():
        level, _, rest = line[1:].partition(">")
        since, _, message = rest.partition(" ")
        lines.append((int(level), float(since), message))
    return lines


def clear() -> None:
    """Forget every line."""
    paths.write_atomically(paths.KERNEL_LOG, "")


def _to_journal(messages: tuple[str, ...], level: int) -> None:
    """Send to journald in its own protocol: syslog does not let a program name the kernel as the source."""
    import socket  # slow to import, and only needed here

    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal:
            for message in messages:
                fields = f"MESSAGE={message}\nPRIORITY={level}\nSYSLOG_FACILITY=0\nSYSLOG_IDENTIFIER=kernel\n"
                journal.sendto(fields.encode(), _JOURNAL)
    except OSError:
        return  # no journal: dmesg still has the lines
