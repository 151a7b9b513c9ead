"""Streams and events by name: operations have run when they return, so there is nothing to wait for or to time."""

from __future__ import annotations

from typing import Any, NoReturn

import torch

from gaudi3_hpu_simulator.errors import refuse
from gaudi3_hpu_simulator.load import extension
from habana_frameworks.torch.hpu._utils import one_card


def _device(device: Any = None) -> torch.device:
    return torch.device("hpu", one_card(device))


class Stream(torch.Stream):
    """A queue of work on one card."""

    def __new__(cls, device: Any = None, priority: int = 0, **names: int) -> Stream:
        extension().use()
        if names:
            return super().__new__(cls, **names)
        return super().__new__(cls, device=_device(device), priority=priority)

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
        self._previous: torch.Stream | None = None

    def __enter__(self) -> torch.Stream | None:
        if self.stream is not None:
            self._previous = current_stream(self.stream.device)
            set_stream(self.stream)
        return self.stream

    def __exit__(self, *error: object) -> None:
        if self._previous is not None:
            set_stream(self._previous)


def stream(stream: torch.Stream | None) -> StreamContext:
    """A `with` in which this stream is the current one."""
    return StreamContext(stream)


def set_stream(stream: torch.Stream) -> None:
    """Make this stream the current one of its card."""
    torch.accelerator.set_stream(stream)


def current_stream(device: Any = None) -> torch.Stream:
    """The current stream of a card."""
    return torch.accelerator.current_stream(_device(device))


def default_stream(device: Any = None) -> torch.Stream:
    """The stream that a card starts with."""
    found = _device(device)
    return Stream(stream_id=0, device_index=found.index or 0, device_type=current_stream(found).device_type)
