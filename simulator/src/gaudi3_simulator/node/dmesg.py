"""``dmesg`` of the simulated node: its own kernel log, not the one that all containers of the host share."""

from __future__ import annotations

import sys
import time

from . import kernel_log, paths, store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_LEVELS = ("emerg", "alert", "crit", "err", "warn", "notice", "info", "debug")
# Options that change nothing here: colours, paging, and where the kernel's messages are read.
_IGNORED = ("-k", "--kernel", "-P", "--nopager", "-L", "-L=never", "--color=never", "--color", "-H", "-S")


def main(arguments: Sequence[str]) -> int:
    """Print the log: -T, -t, -x, -l LEVELS, -c, -C."""
    flags = set()
    levels: set[str] = set(_LEVELS)
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word.startswith("--level=") or (word in ("-l", "--level") and rest):
            levels = set((word.partition("=")[2] or rest.pop(0)).split(","))
            if not levels <= set(_LEVELS):
                sys.stderr.write(f"dmesg: unknown level '{','.join(sorted(levels - set(_LEVELS)))}'\n")
                return 1
        elif word in _FLAGS:
            flags.add(_FLAGS[word])
        elif word not in _IGNORED:
            sys.stderr.write(f"dmesg: option '{word}' is not simulated: use -T, -t, -x, -l, -c or -C\n")
            return 1
    if "clear" not in flags:
        started = store.load_runtime()["booted_at"]
        for level, since, message in kernel_log.read():
            if _LEVELS[level] in levels:
                prefix = f"kern  :{_LEVELS[level]:<6}: " if "decode" in flags else ""
                print(prefix + _stamp(flags, started, since) + message)
    if flags & {"clear", "read-clear"}:
        if not paths.is_root():
            sys.stderr.write("dmesg: clear kernel buffer failed: Operation not permitted\n")
            return 1
        kernel_log.clear()
    return 0


_FLAGS = {
    "-T": "time",
    "--ctime": "time",
    "-t": "bare",
    "--notime": "bare",
    "-x": "decode",
    "--decode": "decode",
    "-c": "read-clear",
    "--read-clear": "read-clear",
    "-C": "clear",
    "--clear": "clear",
}


def _stamp(flags: set[str], started: float, since: float) -> str:
    if "bare" in flags:
        return ""
    if "time" in flags:
        return f"[{time.strftime('%a %b %e %H:%M:%S %Y', time.localtime(started + since))}] "
    return f"[{since:12.6f}] "
