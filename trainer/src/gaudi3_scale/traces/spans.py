"""The spans of one process: what was done, from when to when, below which other span.

    with current().span("data"):
        ...

Spans are made by the thread that trains alone. A span has names and numbers that are in status.json as well, and never
a text of the user's: no path, no message, no line of a log.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from gaudi3_scale.traces.context import Context

Value = str | bool | int | float
Attributes = Mapping[str, Value]
Send = Callable[["Span"], None]

NONE: Attributes = MappingProxyType({})


@dataclass
class Span:
    """One phase. Times are nanoseconds since 1970."""

    name: str
    context: Context
    parent: Context | None
    start: int
    end: int = 0
    attributes: Attributes = field(default_factory=dict)
    links: tuple[Context, ...] = ()
    error: str | None = None
    """What went wrong, in few words; None if nothing did."""


class Clock:
    """Nanoseconds since 1970, which a clock that is set meanwhile does not move."""

    def __init__(self) -> None:
        self._offset = time.time_ns() - time.monotonic_ns()

    def now(self) -> int:
        """The time now."""
        return time.monotonic_ns() + self._offset


class Tracer:
    """Makes spans and hands over those that are over."""

    on = True

    def __init__(self, context: Context, send: Send, close: Callable[[float], None] = lambda seconds: None) -> None:
        """`context` is what the first span belongs to; `close` sends what is left, for some seconds at most."""
        self._context, self._send, self._close = context, send, close
        self._open: list[Span] = []
        self._clock = Clock()

    @property
    def context(self) -> Context:
        """What the next span belongs to."""
        return self._open[-1].context if self._open else self._context

    def adopt(self, context: Context) -> None:
        """The spans from here on belong to this one."""
        self._context = context

    def now(self) -> int:
        """The time now, for `record`."""
        return self._clock.now()

    @property
    def outermost(self) -> Span | None:
        """The phase that all others are in which are open."""
        return self._open[0] if self._open else None

    def begin(self, name: str, attributes: Attributes = NONE, start: int | None = None) -> Span | None:
        """A phase that lasts until `finish`; those that begin meanwhile belong to it."""
        parent = self.context
        began = self.now() if start is None else start
        span = Span(name, parent.child(), parent, began, attributes=attributes)
        self._open.append(span)
        return span

    def finish(self, span: Span | None, error: str | None = None) -> None:
        """The phase is over, and with it what began in it; a second time is no error."""
        if span is None or all(each is not span for each in self._open):
            return
        while True:
            last = self._open.pop()
            last.end, last.error = max(last.start, self.now()), error
            self._send(last)
            if last is span:
                return

    @contextmanager
    def span(self, name: str, attributes: Attributes = NONE) -> Iterator[None]:
        """A phase of its own; an exception is named by its type alone."""
        span = self.begin(name, attributes)
        try:
            yield
        except BaseException as error:
            self.finish(span, type(error).__name__)
            raise
        self.finish(span)

    def record(
        self,
        name: str,
        start: int,
        end: int,
        attributes: Attributes = NONE,
        *,
        context: Context | None = None,
        parent: Context | None = None,
        links: tuple[Context, ...] = (),
        error: str | None = None,
    ) -> None:
        """A phase that is over already; without a `parent` it belongs to what is open, `context` is its own."""
        above = parent or self.context
        own = context or above.child()
        self._send(Span(name, own, None if own == above else above, start, max(start, end), attributes, links, error))

    def close(self, seconds: float, error: str | None = None) -> None:
        """The process ends: what is open is over, and is sent within these seconds or not at all."""
        if self._open:
            self.finish(self._open[0], error)
        self._close(seconds)


class Off(Tracer):
    """Where nobody asked for traces."""

    on = False

    def __init__(self) -> None:
        super().__init__(Context("0" * 32, "0" * 16, recorded=False), lambda span: None)

    def begin(self, name: str, attributes: Attributes = NONE, start: int | None = None) -> None:
        """Nothing begins."""

    @contextmanager
    def span(self, name: str, attributes: Attributes = NONE) -> Iterator[None]:
        """What is inside is done."""
        yield

    def record(self, *arguments: Any, **named: Any) -> None:
        """Nothing is kept."""


OFF = Off()
_current: Tracer = OFF


def current() -> Tracer:
    """The tracer of this process; one that does nothing where there is none."""
    return _current


def use(tracer: Tracer) -> Tracer:
    """Make it the one that `current` gives."""
    global _current
    _current = tracer
    return tracer
