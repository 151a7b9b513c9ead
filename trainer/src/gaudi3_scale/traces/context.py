"""Where a span belongs: the trace context of the W3C, which programs hand on in the variable TRACEPARENT."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

VARIABLE = "TRACEPARENT"
_TEXT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-[!-~]*)?")


@dataclass(frozen=True)
class Context:
    """One span of one trace."""

    trace: str
    """32 hexadecimal digits."""
    span: str
    """16 hexadecimal digits."""
    recorded: bool = True
    """Whether the trace is recorded at all: whoever began it may have decided against."""

    @classmethod
    def new(cls) -> Context:
        """The first span of a new trace."""
        return cls(os.urandom(16).hex(), os.urandom(8).hex())

    @classmethod
    def parse(cls, text: str | None) -> Context | None:
        """As `traceparent` writes it; None for anything else, which the standard says to ignore.

        >>> Context.parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").span
        '00f067aa0ba902b7'
        """
        found = _TEXT.fullmatch((text or "").strip())
        if found is None:
            return None
        trace, span, flags = found.groups()
        return cls(trace, span, bool(int(flags, 16) & 1))

    @property
    def traceparent(self) -> str:
        """For whoever goes on with this trace."""
        return f"00-{self.trace}-{self.span}-{'01' if self.recorded else '00'}"

    def child(self) -> Context:
        """Another span of the same trace."""
        return Context(self.trace, os.urandom(8).hex(), self.recorded)
