"""Streams and events by name: operations have run when they return, so there is nothing to wait for or to time."""

from __future__ import annotations

from typing import Any, NoReturn

import torch

from gaudi3_hpu_simulator.errors import refuse
from gaudi3_hpu_simulator.extension import extension
from habana_frameworks.torch.hpu._utils import one_card


def _device(device: Any = None) -> torch.device:
    return torch.device("hpu", one_card(device))


class Stream(torch.Stream):
    """A queue of work on one card.

    What it has beside torch's own stream, and what it is equal to, is that of the class in hpu/streams.py of Habana's
    bridge 1.19. It has no `hpu_stream`, which is a handle of Synapse there.
    """

    def __new__(cls, device: Any = None, priority: int = 0, **names: Any) -> Stream:
        extension().use()
        if names:
            if "device_index" in names and not isinstance(names["device_index"], int):
                names["device_index"] = _device(names["device_index"]).index
            return super().__new__(cls, **names)
        return super().__new__(cls, device=_device(device), priority=priority)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and super().__eq__(other)

    def __hash__(self) -> int:
        return hash((self.stream_id, self.device))

    @property
    def device_index(self) -> torch.device:  # type: ignore[override]  # as in the bridge
        """The card; not a number, unlike that of torch's own stream."""
        return self.device

    def id(self) -> int:
        """Number of the stream; the default one has 0."""
        return self.stream_id

    def record_event(self, event: Any = None) -> Any:
        """Mark this place of the queue, with a new event if none is given."""
        event = Event() if event is None else event
        event.record(self)
        return event


class Event(torch.Event):
    """A mark in a stream; always reached, and without a time."""

    def __new__(cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> Event:
        return super().__new__(cls, device=_device(), enable_timing=enable_timing)

    def elapsed_time(self, end_event: Any) -> NoReturn:
        """Time between two events: refused."""
        raise refuse("times, because no time it takes is a Gaudi's", "measure on hardware")


class StreamContext:
    """Makes a stream the current one inside a `with`; None changes nothing."""

    def __init__(self, stream: torch.Stream | None) -> None:
        self.stream = stream
        self._previous: Stream | None = None

    def __enter__(self) -> torch.Stream | None:
        if self.stream is not None:
            self._previous = current_stream(self.stream.device)
            set_stream(self.stream)
        return self.stream

    def __exit__(self, *error: object) -> None:
        set_stream(self._previous)


def stream(stream: torch.Stream | None) -> StreamContext:
    """A `with` in which this stream is the current one."""
    return StreamContext(stream)


def set_stream(stream: torch.Stream | None) -> None:
    """Make this stream the current one of its card; None changes nothing."""
    if stream is not None:
        torch.accelerator.set_stream(stream)


def _numbered(number: int, device: Any) -> Stream:
    """The stream of that number."""
    found = _device(device)
    kind = torch.accelerator.current_stream(found).device_type
    return Stream(stream_id=number, device_index=found.index, device_type=kind)


def current_stream(device: Any = None) -> Stream:
    """The current stream of a card."""
    return _numbered(torch.accelerator.current_stream(_device(device)).stream_id, device)


def default_stream(device: Any = None) -> Stream:
    """The stream that a card starts with."""
    return _numbered(0, device)


def get_stream_info(stream: torch.Stream) -> tuple[torch.device, int]:
    """The card and the number of a stream."""
    return stream.device, stream.stream_id
