"""Who keeps which files, and how they get from node to node: over gloo, whatever the device's backend is.

A *place* is a directory that some processes share: a node's disk, or a shared file system of several nodes. It is named
after the lowest rank that uses it, its writer.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from gaudi3_scale.checkpoint.manifest import Entry
from gaudi3_scale.checkpoint.storage import HashingFile
from gaudi3_scale.distributed.exchange import all_gather
from gaudi3_scale.secret import proven_group

T = TypeVar("T")
CHUNK = 4 * 2**20
PATIENCE = 1800
"""Seconds to wait for a peer that reads, writes or fetches files; a closed connection is noticed at once."""


@dataclass(frozen=True)
class Transfer:
    """One file from one rank's disk to another's."""

    name: str
    entry: Entry
    source: int
    target: int


class CheckpointPeers:
    """The processes of a job, as far as checkpoints are concerned; one process needs no process group."""

    def __init__(self, rank: int, places: list[int], group: Any, patient: Any) -> None:
        """`places` holds every rank's place; the gloo groups of all ranks are None for a single process."""
        self.rank = rank
        self.places = places
        self._group = group
        self._patient = patient

    @classmethod
    def single(cls) -> CheckpointPeers:
        """A process alone."""
        return cls(0, [0], None, None)

    @classmethod
    def meet(cls, directory: Path, timeout: float) -> CheckpointPeers:
        """All ranks of torch.distributed, or this process alone. Collective; the directory must exist."""
        import torch.distributed as dist

        if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
            return cls.single()
        rank, size = dist.get_rank(), dist.get_world_size()
        group = proven_group(timeout=timedelta(seconds=timeout))
        patient = proven_group(timeout=timedelta(seconds=max(timeout, PATIENCE)))
        here = cls(rank, list(range(size)), group, patient)
        token = here.gather(uuid.uuid4().hex)[0]
        mark = directory / f".place-{token}-{rank}"
        mark.touch()
        here.gather(None)
        place = next(other for other in range(rank + 1) if (directory / f".place-{token}-{other}").exists())
        places = here.gather(place)
        mark.unlink()
        if place == rank:
            for left in directory.glob(".place-*"):  # by processes that were killed here
                if token not in left.name:
                    left.unlink(missing_ok=True)
        return cls(rank, places, group, patient)

    @property
    def patient(self) -> CheckpointPeers:
        """The same processes, over the group that waits for files; for one thread at a time."""
        return CheckpointPeers(self.rank, self.places, self._patient, self._patient)

    @property
    def size(self) -> int:
        """Number of processes."""
        return len(self.places)

    @property
    def folder_rank(self) -> int:
        """Where this process keeps its files."""
        return self.places[self.rank]

    @property
    def writer(self) -> bool:
        """Does this process write for its place?"""
        return self.folder_rank == self.rank

    @property
    def writers(self) -> list[int]:
        """The places, in order."""
        return sorted(set(self.places))

    @property
    def group(self) -> Any:
        """The process group; None for a single process."""
        return self._group

    def gather(self, value: T) -> list[T]:
        """Everyone's value, by rank, known to everyone."""
        if self._group is None:
            return [value]
        return all_gather(value, self._group)

    def share(self, files: dict[str, Entry]) -> list[str]:
        """Which of the files of this place are this process's to read, if all that share it read about as much."""
        load = {rank: 0 for rank, place in enumerate(self.places) if place == self.folder_rank}
        mine = []
        for name, entry in sorted(files.items(), key=lambda item: (-item[1].size, item[0])):
            idle = min(load, key=lambda rank: (load[rank], rank))
            load[idle] += entry.size
            if idle == self.rank:
                mine.append(name)
        return mine

    def copies(self, owners: dict[str, tuple[int, Entry]], copies: int) -> list[Transfer]:
        """The transfers after which each rank's file lies at `copies` places: its own and the next ones."""
        members: dict[int, list[int]] = defaultdict(list)
        for rank, place in enumerate(self.places):
            members[place].append(rank)
        writers = self.writers
        transfers = []
        for name, (rank, entry) in sorted(owners.items()):
            at = writers.index(self.places[rank])
            seat = members[self.places[rank]].index(rank)
            for distance in range(1, min(copies, len(writers))):
                there = members[writers[(at + distance) % len(writers)]]
                transfers.append(Transfer(name, entry, rank, there[seat % len(there)]))
        return transfers

    def spread(
        self, have: dict[int, set[str]], want: dict[int, set[str]], files: dict[str, Entry]
    ) -> list[list[Transfer]]:
        """Waves of transfers that bring to each place what it wants; whoever received a file passes it on.

        `have` and `want` map places to names. Each file's holders double with every wave, so that many nodes that lack
        it do not wait for one after the other.
        """
        holders: dict[str, list[int]] = {n: sorted(p for p, names in have.items() if n in names) for n in files}
        missing = {n: sorted(p for p, names in want.items() if n in names and p not in holders[n]) for n in files}
        waves = []
        while any(missing.values()):
            wave: list[Transfer] = []
            for name, places in missing.items():
                served, missing[name] = places[: len(holders[name])], places[len(holders[name]) :]
                wave += [Transfer(name, files[name], h, p) for h, p in zip(holders[name], served, strict=False)]
                holders[name] = holders[name] + served
            waves.append(wave)
        return waves

    def exchange(self, transfers: list[Transfer], directory: Path) -> OSError | None:
        """Carry out the transfers from and to each rank's own directory; every rank calls this with the same list.

        All files advance together, one chunk each, so that no order of sending and receiving can block. Chunks keep
        flowing after an error of this rank's disk, which is returned: the others must not be left waiting.
        """
        if self._group is None or not transfers:
            return None
        import torch
        import torch.distributed as dist

        streams = [
            _Stream(tag, t, self.rank, directory)
            for tag, t in enumerate(transfers)
            if self.rank in (t.source, t.target)
        ]
        offset = 0
        while any(stream.size > offset for stream in streams):
            pending = []
            for stream in streams:
                if stream.size <= offset:
                    continue
                data = stream.read(min(CHUNK, stream.size - offset))
                tensor = torch.frombuffer(data, dtype=torch.uint8)
                if stream.sending:
                    work = dist.isend(tensor, stream.peer, group=self._group, tag=stream.tag)
                else:
                    work = dist.irecv(tensor, stream.peer, group=self._group, tag=stream.tag)
                assert work is not None  # this rank is in the group
                pending.append((stream, data, work))
            for stream, data, work in pending:
                work.wait()
                stream.write(data)
            offset += CHUNK
        errors = [error for stream in streams if (error := stream.close()) is not None]
        return errors[0] if errors else None


class _Stream:
    """This rank's end of a transfer."""

    def __init__(self, tag: int, transfer: Transfer, rank: int, directory: Path) -> None:
        self.tag = tag
        self.size = transfer.entry.size
        self.sending = transfer.source == rank
        self.peer = transfer.target if self.sending else transfer.source
        self._entry = transfer.entry
        self._error: OSError | None = None
        self._file: Any = None
        self._path = directory / transfer.name
        self._part = directory / f"{transfer.name}.part"  # a kill must not leave half a file under the name
        try:
            if self.sending:
                self._file = self._path.open("rb")
            else:
                self._part.unlink(missing_ok=True)
                self._file = HashingFile(self._part)
        except OSError as error:
            self._error = error

    def read(self, size: int) -> bytearray:
        """The next chunk to send, or room for one to receive."""
        if self.sending and self._error is None:
            try:
                data = bytearray(self._file.read(size))
                if len(data) == size:
                    return data
                self._error = OSError(f"{self._path} became shorter while it was sent")
            except OSError as error:
                self._error = error
        return bytearray(size)

    def write(self, data: bytearray) -> None:
        """A chunk was received (or sent, which needs nothing more)."""
        if not self.sending and self._error is None:
            try:
                self._file.write(data)
            except OSError as error:
                self._error = error

    def close(self) -> OSError | None:
        """Make what was received durable, and compare it with what was to come."""
        try:
            if self._error is None and not self.sending:
                if self._file.finish() != self._entry:
                    raise OSError(f"{self._path} is not what rank {self.peer} has of it")
                self._part.replace(self._path)
            if self._file is not None:
                self._file.close()
        except OSError as error:
            self._error = self._error or error
        return self._error
