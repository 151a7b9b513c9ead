"""Who the processes are and how they agree: topology from torchrun, process groups, object exchange.

A process that stops answering is noticed within `collective_timeout` seconds (at once if its connection is reset),
because that timeout is given to every group; until the first step is made it is `start_timeout`. The collectives of
Gaudi cards take no timeout, so `watchdog` looks after those. Coordination runs over gloo on host memory whatever the
device is.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from gaudi3_scale.distributed.exchange import all_gather, done_by_all
from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.hpu.device import Device, check_all_reduce
from gaudi3_scale.internals import SET_TIMEOUT
from gaudi3_scale.secret import prove, proven_group

if TYPE_CHECKING:
    import torch

T = TypeVar("T")


@dataclass(frozen=True)
class Topology:
    """This process among all."""

    rank: int = 0
    local_rank: int = 0
    world_size: int = 1
    local_world_size: int = 1

    @property
    def nodes(self) -> int:
        """Number of nodes; each runs the same number of processes."""
        return self.world_size // self.local_world_size

    @classmethod
    def from_environment(cls) -> Topology:
        """As torchrun tells it; a process started by hand is alone."""
        names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
        values = [os.environ.get(name) for name in names]
        if values[0] is None:
            return cls()
        try:
            rank, local_rank, world_size, local_world_size = (int(value or "") for value in values)
        except ValueError:
            raise ConfigError(
                "RANK is set, but not all of LOCAL_RANK, WORLD_SIZE and LOCAL_WORLD_SIZE are numbers: "
                "start the processes with torchrun."
            ) from None
        if world_size % local_world_size:
            raise ConfigError(
                f"{world_size} processes in all are no multiple of the {local_world_size} on this node: "
                "start the same number on every node."
            )
        return cls(rank, local_rank, world_size, local_world_size)


def fresh_name(store: Any, rank: int, size: int, timeout: float) -> str:
    """A name that these processes, and none before them, use in the store.

    torchrun keeps its store when it restarts the processes, and with it the addresses of the dead, which the new ones
    would try to reach. Rank 0 makes up a name and sends it to each rank that asks, until all of them have confirmed it.
    """
    name = uuid.uuid4().hex
    if rank:
        store.set(f"gaudi3/ask/{rank}", name)
        given: str = store.get(f"gaudi3/answer/{name}").decode()
        store.add(f"gaudi3/thanks/{given}", 1)
        return given
    answered: dict[int, bytes] = {}
    deadline = time.monotonic() + timeout
    while store.add(f"gaudi3/thanks/{name}", 0) < size - 1:
        for other in range(1, size):
            key = f"gaudi3/ask/{other}"
            if store.check([key]) and (asked := store.get(key)) != answered.get(other):
                store.set(f"gaudi3/answer/{asked.decode()}", name)
                answered[other] = asked
        if time.monotonic() > deadline:
            raise TrainerError(f"Not all {size} processes came up within {timeout:g} s: look at the other nodes' logs.")
        time.sleep(0.02)
    return name


def fresh_store(rank: int, size: int, timeout: timedelta) -> Any:
    """A store that all processes reach, with nothing in it from others that met there before; by torchrun's variables.

    torchrun keeps its store when it restarts the processes, and a process group would find the dead ones' addresses.
    """
    from torch.distributed.distributed_c10d import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    store, _, _ = next(rendezvous("env://", rank, size, timeout=timeout))
    return PrefixStore(fresh_name(store, rank, size, timeout.total_seconds()), store)


def lower_timeout(group: Any, seconds: int) -> None:
    """Give a group another timeout, if this process is in it; groups of HCCL have none."""
    import torch.distributed as dist

    if group in (None, dist.GroupMember.NON_GROUP_MEMBER) or dist.get_backend(group) not in ("gloo", "nccl"):
        return
    SET_TIMEOUT.get()(timedelta(seconds=seconds), group)


class ProcessGroup:
    """All processes of the job; one process alone needs no group of torch."""

    def __init__(self, topology: Topology, device: Device, timeout: int) -> None:
        """Connect, and make sure that the device's collectives work and that all ranks are of this job."""
        self.topology = topology
        self.writer = True
        self._control: Any = None
        if topology.world_size == 1:
            return
        import torch.distributed as dist

        self._timeout = timedelta(seconds=timeout)
        rank, size = topology.rank, topology.world_size
        store = fresh_store(rank, size, self._timeout)
        dist.init_process_group(device.backend, store=store, rank=rank, world_size=size, timeout=self._timeout)
        check_all_reduce(device)
        prove(dist.group.WORLD, device.torch_device())
        self._control = dist.group.WORLD if device.backend == "gloo" else proven_group(timeout=self._timeout)

    @property
    def control(self) -> Any:
        """The gloo group of all ranks, for coordination on host memory; None for a rank that is alone."""
        return self._control

    def lower_timeout(self, seconds: int) -> None:
        """Wait for other processes only so long from here on: what takes long at first is done."""
        if self._control is None:
            return
        import torch.distributed as dist

        for group in (dist.group.WORLD, self._control):
            lower_timeout(group, seconds)

    @property
    def leader(self) -> bool:
        """Is this the first process of its node?"""
        return self.topology.local_rank == 0

    def elect_writers(self, output_dir: Path) -> None:
        """One writer per output directory: each node's leader, or fewer where nodes share the directory."""
        self.writer = self.leader
        if self.topology.world_size == 1:
            return
        mark = f".here-{uuid.uuid4().hex}" if self.leader else ""
        if mark:
            (output_dir / mark).touch()
        marks = self.gather(mark)
        if mark:
            self.writer = not any(m and (output_dir / m).exists() for m in marks[: self.topology.rank])
        self.barrier()
        if mark:
            (output_dir / mark).unlink()

    def gather(self, value: T) -> list[T]:
        """Everyone's value, by rank, known to everyone."""
        if self._control is None:
            return [value]
        return all_gather(value, self._control)

    def barrier(self) -> None:
        """Wait until everyone is here."""
        self.gather(None)

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        """Add up everyone's tensor, on the device."""
        if self._control is not None:
            import torch.distributed as dist

            dist.all_reduce(values)
        return values

    def must_all(self, action: Callable[[], T]) -> list[T]:
        """Everyone's result; if anyone fails, everyone fails with the error of the lowest rank that did."""
        return done_by_all(self.gather, action)

    def close(self) -> None:
        """Leave in order; only after a success, since a failed peer would be waited for.

        Groups of gloo are left to the end of the process: taking them apart while a peer does the same now and then
        aborts ("terminate called without an active exception"). `cli.main` ends the process without destructors.
        """
        if self._control is None:
            return
        import torch.distributed as dist

        self.barrier()
        if dist.get_backend() != "gloo":
            dist.destroy_process_group()
