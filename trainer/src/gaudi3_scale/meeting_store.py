"""What the nodes of a job that have just met tell each other, and how long they wait for it."""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Sequence
from typing import Any

from gaudi3_scale.secret import NONCE, proof

MEETING_SECONDS = 15.0
"""How long nodes that have met wait for what each of them writes; it does so at once, or not at all."""
_LOOK = 0.5
"""Seconds between two looks at who is still there."""
_POLL = 0.05


def _everybody_is_here() -> bool:
    return True


class Seal:
    """Seals the values of one meeting, each for its key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def close(self, name: str, value: bytes) -> bytes:
        """The value with its seal."""
        return proof(self._key, name.encode(), value) + value

    def open(self, name: str, sealed: bytes) -> bytes | None:
        """The value; None where it was not sealed for this key by one of those who met."""
        value = sealed[NONCE:]
        return value if hmac.compare_digest(sealed[:NONCE], proof(self._key, name.encode(), value)) else None


class NoSeal:
    """Of nodes that have no secret in common."""

    def close(self, name: str, value: bytes) -> bytes:
        """The value."""
        return value

    def open(self, name: str, sealed: bytes) -> bytes | None:
        """The value."""
        return sealed


class MeetingStore:
    """A store of torch whose values are waited for while all who have met are there.

    `all_here` tells whether they are. torch itself waits for a minute, for a node that has left as well. A value
    without the seal counts as not written.
    """

    def __init__(
        self, store: Any, all_here: Callable[[], bool] = _everybody_is_here, seal: Seal | NoSeal | None = None
    ) -> None:
        self._store, self._all_here, self._seal = store, all_here, seal or NoSeal()

    def set(self, key: str, value: str | bytes) -> None:
        """Write a value."""
        self._store.set(key, self._seal.close(key, value.encode() if isinstance(value, str) else value))

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Write values."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def get(self, key: str) -> bytes:
        """The value of a key.

        Raises:
            DistStoreError: One of those who have met has left, or did not write it in time.
        """
        return self._wait_for([key])[0]

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of these keys; fails as `get` does."""
        return self._wait_for(keys)

    def peek(self, key: str) -> bytes | None:
        """The value of a key, without waiting for it; None where nobody who has met wrote one."""
        found = self._found([key])
        return found[0] if found else None

    def _wait_for(self, keys: Sequence[str]) -> list[bytes]:
        from torch.distributed import DistStoreError

        now = time.monotonic()
        end, look = now + MEETING_SECONDS, now + _LOOK
        while (values := self._found(list(keys))) is None:
            time.sleep(_POLL)
            now = time.monotonic()
            if now > end:
                raise DistStoreError(f"nobody wrote {', '.join(keys)} within {MEETING_SECONDS:.0f} s")
            if now > look:
                if not self._all_here():
                    raise DistStoreError("one of the nodes that have met has left")
                look = now + _LOOK
        return values

    def _found(self, keys: list[str]) -> list[bytes] | None:
        """The values, if all are there and sealed."""
        if not self._store.check(keys):
            return None
        opened = [self._seal.open(key, bytes(self._store.get(key))) for key in keys]
        values = [value for value in opened if value is not None]
        return values if len(values) == len(keys) else None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)
