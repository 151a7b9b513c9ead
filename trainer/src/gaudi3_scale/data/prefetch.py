"""Reading ahead: one thread makes the next batches while the device works on this one."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass
class _End:
    """Nothing comes any more, because of this error if there is one."""

    error: BaseException | None = None


class Prefetched(Generic[T]):
    """The same items in the same order, up to `ahead` of them made before they are asked for; 0 = no thread.

    `prepare` is called on each in the thread, for what the device wants to have done: see `Device.pin`.
    """

    def __init__(self, items: Iterable[T], ahead: int, prepare: Callable[[T], T] | None = None) -> None:
        self._items = items
        self._ahead = ahead
        self._prepare = prepare
        self._made: queue.Queue[T | _End] | None = None

    @property
    def ahead(self) -> int:
        """Items that may be made before they are asked for."""
        return self._ahead

    def resize(self, ahead: int) -> None:
        """Read this many ahead from now on, 1 at least, also while items are taken, where there is a thread."""
        if not self._ahead:
            return
        self._ahead = max(1, ahead)
        made = self._made
        if made is not None:
            with made.mutex:
                made.maxsize = self._ahead
                made.not_full.notify_all()

    def __iter__(self) -> Iterator[T]:
        if not self._ahead:
            for item in self._items:
                yield item if self._prepare is None else self._prepare(item)
            return
        made: queue.Queue[T | _End] = queue.Queue(self._ahead)
        self._made = made
        stop = threading.Event()
        thread = threading.Thread(target=self._make, args=(made, stop), name="prefetch", daemon=True)
        thread.start()
        try:
            while True:
                made_one = made.get()
                if isinstance(made_one, _End):
                    break
                yield made_one
            if made_one.error is not None:
                raise made_one.error
        finally:
            stop.set()
            while thread.is_alive():  # it may wait for room
                while not made.empty():
                    made.get_nowait()
                thread.join(0.01)

    def _make(self, made: queue.Queue[T | _End], stop: threading.Event) -> None:
        try:
            for item in self._items:
                made.put(item if self._prepare is None else self._prepare(item))
                if stop.is_set():
                    return
            made.put(_End())
        except BaseException as error:  # raised in the thread that takes the items
            made.put(_End(error))
