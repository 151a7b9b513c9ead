"""The node's kernel log: what ``dmesg`` shows, and the same lines in the journal."""

from __future__ import annotations

import os
import re

from . import paths

EMERGENCY, ALERT, ERROR, WARNING, NOTICE, INFO = 0, 1, 3, 4, 5, 6
_JOURNAL = "/run/systemd/journal/socket"
#: What Linux puts before a message of a device, and names once more in fields of the record.
_OF_A_CARD = re.compile(r"habanalabs ([0-9a-f]{4}(?::[0-9a-f]{2}){2}\.\d)(?: \S+)?: ")
_OF_A_DEVICE_FILE = re.compile(r"accel accel(\d+): ")
_MAJOR = 261


def write(booted_at: float, *messages: str, level: int = INFO) -> None:
    """Add lines to the log, stamped with the seconds since the node started."""
    os.makedirs(paths.at(paths.RUN), exist_ok=True)
    since = max(0.0, paths.now() - booted_at)
    with open(paths.at(paths.KERNEL_LOG), "a", encoding="utf-8") as file:
        file.writelines(f"<{level}>{since:.6f} {message}\n" for message in messages)
    if paths.root():
        _to_kmsg(messages, level, since)
    else:
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
    if paths.root():
        paths.write_atomically(paths.KMSG, "")


def fields(message: str) -> dict[str, str]:
    """What Linux names for the device of a message; nothing where no device reports."""
    card, device_file = _OF_A_CARD.match(message), _OF_A_DEVICE_FILE.match(message)
    if card:
        return {"SUBSYSTEM": "pci", "DEVICE": f"+pci:{card[1]}"}
    return {"SUBSYSTEM": "accel", "DEVICE": f"c{_MAJOR}:{device_file[1]}"} if device_file else {}


def _to_kmsg(messages: tuple[str, ...], level: int, since: float) -> None:
    """Records as /dev/kmsg gives them. A container has none, and systemd would write to a file in its place."""
    os.makedirs(os.path.dirname(paths.at(paths.KMSG)), exist_ok=True)
    with open(paths.at(paths.KMSG), "a", encoding="utf-8") as file:
        for message in messages:
            named = "".join(f" {name}={value}\n" for name, value in fields(message).items())
            file.write(f"{level},{os.fstat(file.fileno()).st_size},{int(since * 1e6)},-;{_escaped(message)}\n{named}")
            file.flush()


def _escaped(message: str) -> str:
    """The message without line ends, as Linux escapes it."""
    return "".join(each if " " <= each < "\x7f" and each != "\\" else f"\\x{ord(each):02x}" for each in message)


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
