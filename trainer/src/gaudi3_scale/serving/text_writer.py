"""Text out of tokens as they come: no half characters, and nothing of a stop text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_UNFINISHED = "\ufffd"
_CONTEXT = 8
"""Tokens before the new ones that are decoded with them: spaces and accents depend on what is before."""


class TextWriter:
    """The text of one answer, piece by piece."""

    def __init__(self, tokenizer: Any | None, stop: Sequence[str]) -> None:
        self._tokenizer, self._stop = tokenizer, stop
        self._tokens: list[int] = []
        self._whole = 0
        """Tokens whose text is in `text`."""
        self.text = ""
        self._given = 0
        self.stopped = False

    def push(self, token: int) -> str:
        """What can be given out after this token; the rest is held back until it is certain."""
        self._tokens.append(token)
        if self._tokenizer is None:
            return ""
        before = max(0, self._whole - _CONTEXT)
        known = self._decode(self._tokens[before : self._whole])
        now = self._decode(self._tokens[before:])
        if now.endswith(_UNFINISHED) and len(self._tokens) - self._whole < _CONTEXT:
            return ""
        self._add(now[len(known) :])
        self._whole = len(self._tokens)
        held = 0 if self.stopped else self._may_begin_a_stop()
        return self._give(len(self.text) - held)

    def end(self) -> str:
        """What was held back."""
        if self._tokenizer is not None and not self.stopped:
            before = max(0, self._whole - _CONTEXT)
            known = self._decode(self._tokens[before : self._whole])
            self._add(self._decode(self._tokens[before:])[len(known) :])
        return self._give(len(self.text))

    def _decode(self, tokens: Sequence[int]) -> str:
        assert self._tokenizer is not None
        found: str = self._tokenizer.decode(tokens, skip_special_tokens=True)
        return found

    def _add(self, new: str) -> None:
        longest = max(map(len, self._stop), default=1)
        start = max(0, len(self.text) - longest + 1)
        self.text += new
        places = [place for stop in self._stop if (place := self.text.find(stop, start)) >= 0]
        if places:
            self.text, self.stopped = self.text[: min(places)], True

    def _may_begin_a_stop(self) -> int:
        """Characters at the end with which a stop text may begin."""
        longest = max(map(len, self._stop), default=1)
        for count in range(min(longest - 1, len(self.text)), 0, -1):
            end = self.text[-count:]
            if any(stop.startswith(end) for stop in self._stop):
                return count
        return 0

    def _give(self, until: int) -> str:
        until = max(until, self._given)
        new, self._given = self.text[self._given : until], until
        return new
