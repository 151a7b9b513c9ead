"""Spans by OTLP over HTTP, with OpenTelemetry's own exporter; imported where traces are on alone.

Address, headers, certificates, compression and patience are those of the variables OTEL_EXPORTER_OTLP_*, which the
library reads itself. Nothing of them gets into a message: a header may be a token, and an address may hold a password.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, Status, StatusCode, TraceFlags

from gaudi3_scale.traces.context import Context
from gaudi3_scale.traces.spans import Span, Value
from gaudi3_scale.version import VERSION

SCOPE = InstrumentationScope("gaudi3_scale", VERSION)
LOGGER = "opentelemetry.exporter.otlp.proto.http.trace_exporter"


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


class Exporter:
    """Sends spans of one process."""

    def __init__(self, resource: Mapping[str, Value]) -> None:
        """`resource` says what all of them have in common; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES add to it."""
        own = dict(resource)
        if os.environ.get("OTEL_SERVICE_NAME"):
            own.pop("service.name", None)
        self._resource = Resource.create(own)
        self._kept = _Reason()
        logger = logging.getLogger(LOGGER)
        logger.propagate = False
        logger.addHandler(self._kept)
        self._exporter = OTLPSpanExporter()

    @property
    def reason(self) -> str:
        """Why the last call had to try again, or failed."""
        return self._kept.last

    def __call__(self, spans: Sequence[Span]) -> str | None:
        """Send them; says why that failed."""
        result = self._exporter.export([self._readable(span) for span in spans])
        return None if result == SpanExportResult.SUCCESS else self.reason

    def _readable(self, span: Span) -> ReadableSpan:
        return ReadableSpan(
            name=span.name,
            context=_context(span.context, remote=False),
            parent=None if span.parent is None else _context(span.parent, remote=True),
            resource=self._resource,
            attributes=span.attributes,
            links=[Link(_context(each, remote=True)) for each in span.links],
            status=Status(StatusCode.UNSET) if span.error is None else Status(StatusCode.ERROR, span.error),
            start_time=span.start,
            end_time=span.end,
            instrumentation_scope=SCOPE,
        )


def _context(context: Context, remote: bool) -> SpanContext:
    return SpanContext(int(context.trace, 16), int(context.span, 16), remote, TraceFlags(TraceFlags.SAMPLED))
