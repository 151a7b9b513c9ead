"""A process on simulated cards: locks each card file and keeps the memory in use there. Arguments: PATH BYTES ...

Lines on standard input: ``use BYTES`` changes what is in use, ``release`` ends in order. Killed, it leaves its number.
"""

from __future__ import annotations

import fcntl
import os
import sys
from pathlib import Path

FORMAT = 1
SIZE = 64


def main(words: list[str]) -> None:
    files = []
    for path, used in zip(words[::2], words[1::2], strict=True):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(file, SIZE)
        files.append(file)
        _keep(file, os.getpid(), int(used))
    print("held", flush=True)
    for line in sys.stdin:
        word, _, value = line.strip().partition(" ")
        for file in files:
            _keep(file, os.getpid() if word == "use" else 0, int(value or 0))
        print("done", flush=True)
        if word == "release":
            return
    os.kill(os.getpid(), 9)


def _keep(file: int, pid: int, used: int) -> None:
    words = (FORMAT, pid, used, used, 0)
    os.pwrite(file, b"".join(word.to_bytes(8, "little") for word in words), 0)


if __name__ == "__main__":
    main(sys.argv[1:])
