"""Events of the bridge, to subscribe to. Names: [bridge] 1.19, `utils/event_dispatcher/csrc/bindings.cpp`.

MARK_STEP comes in lazy mode. Graphs are not compiled and recipes not cached here, so their events never come.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from enum import Enum, auto
from functools import cache


class EventId(Enum):
    """What can happen."""

    GRAPH_COMPILATION = auto()
    CPU_FALLBACK = auto()
    CACHE_HIT = auto()
    CACHE_MISS = auto()
    MEMORY_DEFRAGMENTATION = auto()
    MARK_STEP = auto()
    PROCESS_EXIT = auto()
    DEVICE_ACQUIRED = auto()
    CUSTOM_EVENT = auto()


Parameters = Sequence[tuple[str, str]]
Callback = Callable[[int, Parameters], object]


class EventDispatcher:
    """Who is told of what."""

    def __init__(self) -> None:
        self._subscribed: dict[object, tuple[EventId, Callback]] = {}

    @staticmethod
    @cache
    def instance() -> EventDispatcher:
        """The one of this process."""
        return EventDispatcher()

    def subscribe(self, event: EventId, callback: Callback) -> object:
        """Call `callback(time, parameters)` at each such event; returns what `unsubscribe` takes."""
        handle = object()
        self._subscribed[handle] = (event, callback)
        return handle

    def unsubscribe(self, handle: object) -> None:
        """Undo `subscribe`."""
        self._subscribed.pop(handle, None)

    def publish(self, event: EventId, parameters: Parameters) -> None:
        """Tell the subscribers."""
        for wanted, callback in list(self._subscribed.values()):
            if wanted is event:
                callback(time.time_ns(), parameters)
