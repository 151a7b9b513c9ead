"""What the nodes of a job that have just met tell each other, and how long they wait for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

MEETING_SECONDS = 15.0
"""How long nodes that have met wait for what each of them writes; it does so at once, or not at all."""
_LOOK = 0.5
"""Seconds between two looks at who is still there."""
_POLL = 0.05


def _everybody_is_here() -> bool:
    return True


class MeetingStore:
    """A store of torch whose values are waited for while all who have met are there.

    `all_here` tells whether they are. torch itself waits for a minute, for a node that has left as well.
    """

    def __init__(self, store: Any, all_here: Callable[[], bool] = _everybody_is_here) -> None:
        self._store, self._all_here = store, all_here

    def get(self, key: str) -> bytes:
        """The value of a key.

        Raises:
            DistStoreError: One of those who have met has left, or did not write it in time.
        """
        self._wait_for([key])
        value: bytes = self._store.get(key)
        return value

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of these keys; fails as `get` does."""
        self._wait_for(keys)
        values: list[bytes] = self._store.multi_get(keys)
        return values

    def _wait_for(self, keys: Sequence[str]) -> None:
        from torch.distributed import DistStoreError

        now = time.monotonic()
        end, look = now + MEETING_SECONDS, now + _LOOK
        while not self._store.check(list(keys)):
            time.sleep(_POLL)
            now = time.monotonic()
            if now > end:
                raise DistStoreError(f"nobody wrote {', '.join(keys)} within {MEETING_SECONDS:.0f} s")
            if now > look:
                if not self._all_here():
                    raise DistStoreError("one of the nodes that have met has left")
                look = now + _LOOK

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)
