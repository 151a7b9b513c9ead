"""The last collectives of a process, and where its code stands, in memory that the launcher can read at any time.

The memory is a small file of the launcher's, mapped by both. What a process noted can so be read when the process is
stopped, blocks its interpreter, or is gone: it has nothing to do for it, and nobody waits for it. A note takes about a
microsecond, and nothing is kept but the newest `SLOTS`.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = "GAUDI3_RINGS"
"""The variable by which the launcher tells its processes where the rings are; without it nothing is noted."""
MAGIC = b"gaudi3r2"
SLOTS = 256
"""Collectives that are kept."""
ACKNOWLEDGED = 3.0
"""Seconds that a process waits, before it ends, for the launcher to have looked at it."""

PHASES = (
    "start-up",
    "dataloader.next",
    "forward",
    "backward",
    "optimizer",
    "checkpoint",
    "evaluation",
    "between two steps",
)
"""Where the code stands, by the number that a process notes."""
STARTUP, DATALOADER, FORWARD, BACKWARD, OPTIMIZER, CHECKPOINT, EVALUATION, BETWEEN = range(len(PHASES))

ENDS = ("", "hung", "timed out", "lost contact", "failed", "left")
"""How a process said that it ends."""
RUNNING, HUNG, TIMED_OUT, LOST, FAILED, LEFT = range(len(ENDS))

OPERATIONS = (
    "all_reduce",
    "broadcast",
    "reduce",
    "all_gather",
    "gather",
    "scatter",
    "reduce_scatter",
    "all_to_all",
    "barrier",
    "all_reduce of the gradients",
)
GRADIENTS = OPERATIONS.index("all_reduce of the gradients")
DTYPES = (
    "", "float32", "bfloat16", "float16", "float64", "int64", "int32", "int16", "int8", "uint8", "bool",
    "float8_e4m3fn", "float8_e5m2", "complex64", "complex128",
)  # fmt: skip

OPEN, RETURNED, LAUNCHED = range(3)
"""A collective that was entered: the call has not returned, has returned, or did not wait for its end."""

GROUPS = 64
"""Groups whose collectives are counted."""
_HEADER = 256 + 8 * GROUPS
_ABOUT = 16 * 1024
SIZE = _HEADER + _ABOUT + SLOTS * 64
_START = struct.Struct("<8sIIIII")  # magic, process, rank, world size, processes of the node, stacks on request
_PHASE = struct.Struct("<QQ")
_COUNT = struct.Struct("<Q")
_END = struct.Struct("<QQ")
_LENGTH = struct.Struct("<I")
_ENTRY = struct.Struct("<QQHBBBB4I26x")  # number, time, group, operation, dtype, dimensions, state, shape
_ENTRIES = _HEADER + _ABOUT
_pack_entry, _pack_count = _ENTRY.pack_into, _COUNT.pack_into
_AT_STACKS, _AT_PHASE, _AT_COUNT, _AT_END, _AT_SEEN, _AT_LENGTH = 24, 64, 88, 96, 112, 120
_COUNTS = 256
"""How many collectives of each group were entered; the newest `SLOTS` may have none of a group that is seldom used."""
_STATE = 21
"""Of the state within an entry."""


@dataclass(frozen=True)
class RingEntry:
    """One collective that a process entered."""

    number: int
    """Of the collectives of this group, from 1 on."""
    time: int
    """By the node's monotonic clock, in nanoseconds."""
    group: int
    """Index in the groups of the process."""
    operation: str
    dtype: str
    shape: tuple[int, ...]
    """The first four dimensions."""
    state: int


@dataclass(frozen=True)
class Content:
    """What a ring holds."""

    process: int
    rank: int
    world_size: int
    local_world_size: int
    stacks: bool
    phase: str
    since: int
    end: int
    ended: int
    groups: list[dict[str, Any]] = field(default_factory=list)
    """Each with its name, its identity and its ranks."""
    counts: tuple[int, ...] = ()
    """Of the collectives of each group."""
    folder: str | None = None
    """The job's folder."""
    entries: list[RingEntry] = field(default_factory=list)
    """The oldest first."""


class Ring:
    """A process notes here: its collectives from any thread, its phase and step from one."""

    def __init__(self, memory: mmap.mmap, rank: int, world_size: int, local_world_size: int) -> None:
        """Begin with nothing noted, in the phase of the start."""
        self._memory = memory
        self._numbers: list[int] = []
        self._groups: dict[int, int] = {}
        self._about: dict[str, Any] = {"groups": []}
        self._count = 0
        self._lock = threading.Lock()
        """A checkpoint is committed by a thread of its own, which has collectives of its own."""
        self._clock = time.monotonic_ns
        _START.pack_into(memory, 0, MAGIC, os.getpid(), rank, world_size, local_world_size, 0)
        self.mark(STARTUP)

    def mark(self, phase: int) -> None:
        """The code is here from now on."""
        _PHASE.pack_into(self._memory, _AT_PHASE, phase, self._clock())

    def standing(self) -> tuple[str, float]:
        """The phase that the code is in, and since how many seconds."""
        phase, since = _PHASE.unpack_from(self._memory, _AT_PHASE)
        return PHASES[phase], max(0.0, (self._clock() - since) / 1e9)

    def enter(self, operation: int, group: int, dtype: int, shape: Sequence[int], state: int) -> int:
        """Note a collective that is about to be called; where it was noted, for `leave`."""
        # As a tuple first: a slice of torch's own type costs as much as all the rest.
        first, second, third, fourth = (*shape, 0, 0, 0, 0)[:4]
        with self._lock:
            number = self._numbers[group] = self._numbers[group] + 1
            count = self._count
            offset = _ENTRIES + count % SLOTS * 64
            _pack_entry(
                self._memory, offset, number, self._clock(), group, operation, dtype, len(shape), state,
                first & 0xFFFFFFFF, second & 0xFFFFFFFF, third & 0xFFFFFFFF, fourth & 0xFFFFFFFF,
            )  # fmt: skip
            self._count = count + 1
            _pack_count(self._memory, _COUNTS + 8 * group, number)
            _pack_count(self._memory, _AT_COUNT, count + 1)
        return offset

    def leave(self, offset: int, state: int = RETURNED) -> None:
        """The call that was noted here has returned."""
        self._memory[offset + _STATE] = state

    def group(self, key: int, name: str, identity: str, ranks: Sequence[int]) -> int:
        """The index of a group, which is noted when it is seen first; all its ranks know it by the same identity."""
        known = self._groups.get(key)
        if known is None:
            if len(self._numbers) >= GROUPS:
                raise OverflowError("a process has more groups than are counted")
            known = self._groups[key] = len(self._numbers)
            self._numbers.append(0)
            self._about["groups"].append({"name": name[:60], "id": identity[:60], "ranks": spans(ranks)})
            self._write_about()
        return known

    def known(self, key: int) -> int | None:
        """The index of a group that was seen."""
        return self._groups.get(key)

    def forget(self, key: int) -> None:
        """Another group may come to have this key."""
        self._groups.pop(key, None)

    def of_job(self, folder: Path) -> None:
        """The launcher leaves what it found in this folder."""
        self._about["folder"] = str(folder.absolute())
        self._write_about()

    def gives_stacks(self) -> None:
        """This process answers the launcher's signal with its stacks."""
        _LENGTH.pack_into(self._memory, _AT_STACKS, 1)

    def announce(self, how: int) -> None:
        """The process is about to end, and why; what comes after it in the process follows from that."""
        if _END.unpack_from(self._memory, _AT_END)[0] == RUNNING:
            _END.pack_into(self._memory, _AT_END, how, self._clock())

    def end(self, how: int, seconds: float = ACKNOWLEDGED) -> None:
        """The process ends; wait until the launcher has looked at all of the node, if it is not in order."""
        self.announce(how)
        deadline = time.monotonic() + seconds
        while how in (HUNG, TIMED_OUT, LOST) and not self._memory[_AT_SEEN] and time.monotonic() < deadline:
            time.sleep(0.02)

    def _write_about(self) -> None:
        text = json.dumps(self._about, separators=(",", ":")).encode()
        if len(text) > _ABOUT:
            return  # of that many groups, the later ones have no name
        _LENGTH.pack_into(self._memory, _AT_LENGTH, 0)
        self._memory[_HEADER : _HEADER + len(text)] = text
        _LENGTH.pack_into(self._memory, _AT_LENGTH, len(text))


_current: Ring | None = None


def current() -> Ring | None:
    """The ring of this process; None where no launcher reads one."""
    return _current


def mark(phase: int) -> None:
    """The code of this process is here from now on."""
    if _current is not None:
        _current.mark(phase)


def announce(how: int) -> None:
    """This process is about to end."""
    if _current is not None:
        _current.announce(how)


def ending(how: int) -> None:
    """This process ends, when its launcher has looked at it."""
    if _current is not None:
        _current.end(how)


def start(rank: int, world_size: int, local_world_size: int, folder: Path | None = None) -> Ring | None:
    """The ring of this process, made where the launcher wants one; `folder` is the job's."""
    global _current
    where = os.environ.get(FOLDER)
    if world_size > 1 and where and _current is None:
        try:
            _current = Ring(_mapped(Path(where) / f"{rank}.ring"), rank, world_size, local_world_size)
        except OSError:
            return None
    if _current is not None and folder is not None:
        _current.of_job(folder)
    return _current


def _mapped(path: Path) -> mmap.mmap:
    """A new file of zeros, which appears whole."""
    draft = path.with_suffix(".new")
    descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, SIZE)  # a file system without room says so now, not by a signal later
        memory = mmap.mmap(descriptor, SIZE)
        draft.rename(path)
    finally:
        os.close(descriptor)
    return memory


def read(path: Path) -> Content | None:
    """What the ring of this file holds; None where it is no ring."""
    try:
        with path.open("rb") as file:
            data = file.read(SIZE)
    except OSError:
        return None
    if len(data) != SIZE or data[:8] != MAGIC:
        return None
    _, process, rank, world_size, local, stacks = _START.unpack_from(data, 0)
    phase, since = _PHASE.unpack_from(data, _AT_PHASE)
    (count,) = _COUNT.unpack_from(data, _AT_COUNT)
    end, ended = _END.unpack_from(data, _AT_END)
    about = _about(data)
    counts = struct.unpack_from(f"<{GROUPS}Q", data, _COUNTS)
    entries = [_entry(data, number % SLOTS) for number in range(max(0, count - SLOTS), count)]
    return Content(
        process, rank, world_size, local, bool(stacks), PHASES[phase] if phase < len(PHASES) else "?", since,
        end if end < len(ENDS) else FAILED, ended, about.get("groups", []), counts, about.get("folder"), entries,
    )  # fmt: skip


def ends(path: Path) -> int:
    """How the process of this ring said that it ends; RUNNING where it did not."""
    try:
        with path.open("rb") as file:
            head = os.pread(file.fileno(), _HEADER, 0)
    except OSError:
        return RUNNING
    how = _END.unpack_from(head, _AT_END)[0] if len(head) == _HEADER and head[:8] == MAGIC else RUNNING
    return how if how < len(ENDS) else FAILED


def acknowledge(path: Path) -> None:
    """The launcher has looked: the process may end."""
    with path.open("r+b") as file:
        os.pwrite(file.fileno(), b"\1", _AT_SEEN)


def _about(data: bytes) -> dict[str, Any]:
    (length,) = _LENGTH.unpack_from(data, _AT_LENGTH)
    try:
        about = json.loads(data[_HEADER : _HEADER + min(length, _ABOUT)])
    except ValueError:
        return {}
    return about if isinstance(about, dict) else {}


def _entry(data: bytes, slot: int) -> RingEntry:
    number, moment, group, operation, dtype, dimensions, state, *shape = _ENTRY.unpack_from(data, _ENTRIES + slot * 64)
    return RingEntry(
        number, moment, group,
        OPERATIONS[operation] if operation < len(OPERATIONS) else "?",
        DTYPES[dtype] if dtype < len(DTYPES) else "?",
        tuple(shape[: min(dimensions, 4)]), state,
    )  # fmt: skip


def spans(ranks: Sequence[int]) -> list[list[int]]:
    """Ranks as first and last of each run of them, which is short for a group of thousands."""
    found: list[list[int]] = []
    for rank in sorted(ranks):
        if found and rank == found[-1][1] + 1:
            found[-1][1] = rank
        else:
            found.append([rank, rank])
    return found
