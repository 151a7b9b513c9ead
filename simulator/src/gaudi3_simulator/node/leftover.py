"""The process that a job left behind: it holds a card as the vendor's runtime does, until somebody kills it.

It locks the card's file, keeps the device file open and says how much memory it uses; see ``cards``.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import time

from . import cards, paths

MEMORY_BYTES = 4096 << 20
_DEVICES = "/dev/accel"
_PID = 8  # place in the card's file; the bytes in use and the most of them follow
_SECONDS = 10


class Refused(Exception):
    """The card cannot be held; the message says why."""


def start(card: int) -> int:
    """Start the process; returns its number once it holds the card."""
    import subprocess

    if not os.path.exists(_file(card)):
        raise Refused(f"card {card} has no device file: load the driver first")
    library, package = os.path.split(os.path.dirname(os.path.abspath(__file__)))
    if __package__ != package:  # in a checkout the package lies below another one
        library = os.path.dirname(library)
    program = f"import sys; sys.path.insert(0, {library!r}); from {__package__}.leftover import hold; hold({card})"
    process = subprocess.Popen(
        [sys.executable or "/usr/bin/python3", "-IS", "-c", program],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )
    assert process.stdout is not None
    answer = process.stdout.readline().decode().strip()
    process.stdout.close()
    if answer == "held":
        process.returncode = 0  # it stays: nobody waits for it
        return process.pid
    process.wait()
    if answer.isdigit():
        raise Refused(f"card {card} is held by process {answer}: end that first")
    raise Refused(f"card {card} cannot be held: its device file cannot be opened")


def stop(card: int, pid: int) -> None:
    """End the process and leave the card as after an orderly end."""
    if _holder(card) == pid:
        os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + _SECONDS
        while _holder(card) == pid and time.monotonic() < deadline:
            time.sleep(0.01)
    try:
        with open(_file(card), "r+b") as file:
            file.seek(_PID)
            file.write(bytes(24))
    except FileNotFoundError:
        pass


def hold(card: int) -> None:
    """What the process does: take the card, say so, and stay."""
    file = os.open(_file(card), os.O_RDWR)
    os.open(paths.at(f"{_DEVICES}/accel{card}"), os.O_RDWR)
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        print(_holder(card), flush=True)
        return
    words = (os.getpid(), MEMORY_BYTES, MEMORY_BYTES)
    os.pwrite(file, b"".join(word.to_bytes(8, "little") for word in words), _PID)
    print("held", flush=True)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 1)
    if not paths.root():
        signal.pause()
    while os.path.exists(_file(card)):  # a node that is a folder goes away without ending its processes
        time.sleep(0.2)


def _file(card: int) -> str:
    return paths.at(f"{cards.FOLDER}/accel{card}")


def _holder(card: int) -> int:
    held = cards.holder(card)
    return held.pid if held else 0
