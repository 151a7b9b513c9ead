"""Processes that try a batch agree before every collective, so that nobody waits for one that ran out of memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence


class PeerOutOfMemory(Exception):
    """Another process said that its memory does not suffice."""


class MemoryAgreement:
    """Are all processes still there? Each asks as often as the others."""

    def __init__(self, gather: Callable[[bool], Sequence[bool]]) -> None:
        self._gather = gather

    def ask(self) -> None:
        """Collective; raises PeerOutOfMemory."""
        if not all(self._gather(True)):
            raise PeerOutOfMemory

    def leave(self) -> None:
        """In place of the next `ask`."""
        self._gather(False)
