"""Bytes that a step of this process may take: of the device, and of the host where a simulated card is made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gaudi3_scale.errors import ConfigError

if TYPE_CHECKING:
    from gaudi3_scale.batch.search import FoundBatch
    from gaudi3_scale.hpu.device import Device


@dataclass(frozen=True)
class Room:
    """What a step may take."""

    free: int
    """Bytes that nobody has taken, this process and others."""
    by_host: bool = False
    """Is it the host's memory that ends first?"""

    def explain(self, find: Callable[[], FoundBatch]) -> FoundBatch:
        """What `find` finds; it, or the ConfigError where nothing fits, says so where the host's memory ends first."""
        if not self.by_host:
            return find()
        left = f"{self.free / 2**20:,.0f} MiB that the host has left for each simulated card"
        try:
            found = find()
        except ConfigError as error:
            raise ConfigError(f"{error} The limit is a share of the {left}: free some of its memory.") from None
        return replace(found, how=f"{found.how}, within the {left}")


def of(device: Device, sharing: int) -> Room:
    """For one of this many processes on its host, each with a card of its own.

    What other processes hold of a card counts as taken. The bytes of a simulated card are the host's.
    """
    from gaudi3_scale import host_memory
    from gaudi3_scale.hpu.device import identity

    free = device.free_memory() or 0
    host = host_memory.room() if identity(device.torch_device())["simulated"] else None
    if host is None or host // sharing >= free:
        return Room(free)
    return Room(host // sharing, by_host=True)


def least(rooms: Iterable[tuple[int, bool]]) -> Room:
    """Of all processes, whose fields these are."""
    return Room(*min(rooms))
