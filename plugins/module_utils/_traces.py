# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What a program on the controller does, as spans of a trace that it sends over OTLP.

OpenTelemetry's packages are imported when the first span is sent. Where they are missing, or nobody answers, the
program goes on: it waits for a few seconds at its end, and says how many spans got lost. Address, headers and
certificates are those of the variables ``OTEL_EXPORTER_OTLP_*``, which the library reads itself. Nothing of them gets
into a message.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ._refusal import Refusal

#: By which a program hands its trace on to those that it starts.
VARIABLE = "TRACEPARENT"
SWITCH = "OTEL_TRACES_EXPORTER"
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
PROTOCOL = "http/protobuf"
PACKAGES = "opentelemetry-sdk and opentelemetry-exporter-otlp-proto-http"
#: Spans that are kept for a receiver that is slow or away; of more the oldest are dropped.
WAITING = 2048
#: Seconds that a program waits for its last spans.
PATIENCE = 3.0
_TEXT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-[!-~]*)?")
_LOGGER = "opentelemetry.exporter.otlp.proto.http.trace_exporter"


def is_wanted(environment: Mapping[str, str]) -> bool:
    """Were traces asked for? OpenTelemetry's own default is yes, and here it is no."""
    asked = {each.strip() for each in environment.get(SWITCH, "").split(",")}
    return "otlp" in asked and not is_disabled(environment)


def is_disabled(environment: Mapping[str, str]) -> bool:
    """Was everything of OpenTelemetry's switched off?"""
    return environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"


def valid(traceparent: str | None) -> str:
    """A trace context as the W3C writes it; empty for anything else, which the standard says to ignore."""
    text = (traceparent or "").strip()
    return text if _TEXT.fullmatch(text) else ""


def is_recorded(traceparent: str) -> bool:
    """Whether whoever began a trace wants it recorded; so it is where nobody has."""
    found = _TEXT.fullmatch(traceparent)
    return found is None or bool(int(found.group(3), 16) & 1)


@dataclass
class Span:
    """One phase. Times are nanoseconds since 1970, and contexts are written as ``traceparent``."""

    name: str
    context: str
    parent: str
    start: int
    end: int = 0
    attributes: dict[str, Any] = field(default_factory=dict)
    links: tuple[str, ...] = ()
    error: str = ""


class Recorder:
    """The spans of one program, one inside of the other."""

    def __init__(self, service: str, parent: str = "", background: bool = True) -> None:
        """``parent`` is what the first span belongs to; without one, a new trace begins.

        Not in the ``background``, spans are sent when it is closed: a program that forks must have no other thread.
        """
        self._resource = {"service.name": service, "host.name": socket.gethostname()}
        self._parent, self._background = valid(parent), background
        self._offset = time.time_ns() - time.monotonic_ns()
        self._open: list[Span] = []
        self._waiting: list[Span] = []
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._exporter: _Exporter | None = None
        self._dropped = 0
        self._problem = ""

    @property
    def traceparent(self) -> str:
        """What a program that is started now goes on with; empty where nothing has begun."""
        return self._open[-1].context if self._open else self._parent

    def begin(self, name: str, attributes: Mapping[str, Any] | None = None, links: Sequence[str] = ()) -> Span | None:
        """A phase that lasts until ``end``; None where the trace is not recorded."""
        if not is_recorded(self._parent):
            return None
        above = self.traceparent
        trace = above.split("-")[1] if above else os.urandom(16).hex()
        context = f"00-{trace}-{os.urandom(8).hex()}-01"
        kept = tuple(each for each in links if valid(each))
        self._open.append(Span(name, context, above, self._now(), 0, dict(attributes or {}), kept))
        return self._open[-1]

    def end(self, span: Span | None, error: str = "") -> None:
        """The phase is over, and what began in it."""
        if span is None or all(each is not span for each in self._open):
            return
        while True:
            last = self._open.pop()
            last.end, last.error = max(last.start, self._now()), last.error or error
            with self._lock:
                self._waiting.append(last)
                if len(self._waiting) > WAITING:
                    del self._waiting[0]
                    self._dropped += 1
            if last is span:
                break
        if self._background:
            self._deliver()

    def drop(self, span: Span | None) -> None:
        """The phase has done nothing, and is not sent; nothing has begun in it."""
        self._open = [each for each in self._open if each is not span]

    def join(self, earlier: str) -> None:
        """What is open belongs to the trace of ``earlier``, unless another program said where it belongs."""
        if not valid(earlier) or not self._open:
            return
        outermost = self._open[0]
        outermost.links = (*outermost.links, earlier)
        if not self._parent:
            trace = earlier.split("-")[1]
            for each in self._open:
                each.context = _in_trace(trace, each.context)
                each.parent = _in_trace(trace, each.parent)

    def close(self, seconds: float = PATIENCE) -> str:
        """Wait for what is under way, for some seconds at most; what to say where spans got lost, else nothing."""
        if self._open:
            self.end(self._open[0])
        self._deliver()  # which may import the library first
        deadline = time.monotonic() + seconds
        while self._waiting and not self._problem and time.monotonic() < deadline:
            self._deliver()
            if self._thread is not None:
                self._thread.join(max(0.0, deadline - time.monotonic()))
        lost = len(self._waiting) + self._dropped
        if not lost:
            return ""
        why = self._problem or (self._exporter.reason.last if self._exporter is not None else "no answer")
        return f"{lost} span(s) of the trace did not reach their receiver ({why})."

    def _now(self) -> int:
        return time.monotonic_ns() + self._offset

    def _deliver(self) -> None:
        if self._exporter is None and not self._problem:
            try:  # in this thread: a process that is forked while another one imports would have half of it
                self._exporter = _Exporter(self._resource)
            except Exception as error:  # whatever the library raises
                self._problem = str(error) if isinstance(error, Refusal) else type(error).__name__
        free = self._thread is None or not self._thread.is_alive()
        if self._exporter is not None and self._waiting and free:
            self._problem = ""
            self._thread = threading.Thread(target=self._work, name="traces", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while self._exporter is not None:
            with self._lock:
                batch = list(self._waiting)
            if not batch:
                return
            try:
                problem = self._exporter.send(batch)
            except Exception as error:  # whatever the library raises
                problem = type(error).__name__
            if problem:
                self._problem = problem
                return
            with self._lock:
                sent = {id(each) for each in batch}
                self._waiting = [each for each in self._waiting if id(each) not in sent]


def _in_trace(trace: str, context: str) -> str:
    """The same span, in this trace."""
    return f"00-{trace}-{context.split('-')[2]}-01" if context else ""


class _Reason(logging.Handler):
    """Keeps why the library could not send: a status or the kind of an error, as its own message may quote headers."""

    def __init__(self) -> None:
        super().__init__()
        self.last = "no answer"

    def emit(self, record: logging.LogRecord) -> None:
        for each in record.args if isinstance(record.args, tuple) else ():
            if isinstance(each, BaseException):
                self.last = type(each).__name__
                return
            if isinstance(each, int) and not isinstance(each, bool):
                self.last = f"HTTP status {each}"
                return


class _Exporter:
    """Sends spans by OpenTelemetry's own exporter."""

    def __init__(self, resource: Mapping[str, Any]) -> None:
        """``resource`` says what all spans have in common. Raises Refusal where nothing can be sent."""
        protocol = next((os.environ[name] for name in PROTOCOLS if os.environ.get(name)), PROTOCOL)
        if protocol != PROTOCOL:
            raise Refusal(f"they are sent by {PROTOCOL}, and the environment asks for {protocol!r}")
        try:
            from opentelemetry import trace
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import ReadableSpan, export
            from opentelemetry.sdk.util.instrumentation import InstrumentationScope
        except ModuleNotFoundError as error:
            raise Refusal(f"{error.name} is missing: install {PACKAGES}") from None
        named = bool(os.environ.get("OTEL_SERVICE_NAME"))
        own = {name: each for name, each in resource.items() if not (named and name == "service.name")}
        self._trace, self._readable_span, self._success = trace, ReadableSpan, export.SpanExportResult.SUCCESS
        self._resource, self._scope = Resource.create(own), InstrumentationScope("gaudi3.scale")
        self.reason = _Reason()
        logger = logging.getLogger(_LOGGER)
        logger.propagate = False
        logger.addHandler(self.reason)
        self._exporter = OTLPSpanExporter()

    def send(self, spans: Sequence[Span]) -> str:
        """Send them; why that failed, else nothing."""
        result = self._exporter.export([self._readable(each) for each in spans])
        return "" if result == self._success else self.reason.last

    def _readable(self, span: Span) -> Any:
        code = self._trace.StatusCode
        return self._readable_span(
            name=span.name,
            context=self._context(span.context),
            parent=self._context(span.parent) if span.parent else None,
            resource=self._resource,
            attributes=span.attributes,
            links=[self._trace.Link(self._context(each)) for each in span.links],
            status=self._trace.Status(code.ERROR, span.error) if span.error else self._trace.Status(code.UNSET),
            start_time=span.start,
            end_time=span.end,
            instrumentation_scope=self._scope,
        )

    def _context(self, text: str) -> Any:
        _version, trace, span, _flags = text.split("-")[:4]
        sampled = self._trace.TraceFlags(self._trace.TraceFlags.SAMPLED)
        return self._trace.SpanContext(int(trace, 16), int(span, 16), False, sampled)
