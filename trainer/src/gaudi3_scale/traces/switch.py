"""Whether a process sends traces, and the tracer that it uses then."""

from __future__ import annotations

import importlib
import os
import socket
from collections.abc import Callable, Mapping

from gaudi3_scale.extras import how_to_install
from gaudi3_scale.traces.context import Context
from gaudi3_scale.traces.sender import Export, Sender
from gaudi3_scale.traces.spans import NONE, OFF, Attributes, Tracer, Value
from gaudi3_scale.version import VERSION

SWITCH = "OTEL_TRACES_EXPORTER"
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
PROTOCOL = "http/protobuf"


def is_wanted(environment: Mapping[str, str]) -> bool:
    """Were traces asked for? OpenTelemetry's own default is yes, and here it is no."""
    asked = {each.strip() for each in environment.get(SWITCH, "").split(",")}
    return "otlp" in asked and environment.get("OTEL_SDK_DISABLED", "").strip().lower() != "true"


def begin(service: str, parent: Context, log: Callable[[str], None], attributes: Attributes = NONE) -> Tracer:
    """The tracer of a process whose spans belong to `parent`; `attributes` are of all its spans.

    One that does nothing, where nobody asked for traces or whoever began this one decided not to record it. The library
    is imported here and not by the thread that sends: a process that is forked meanwhile would have half of it.
    """
    if not is_wanted(os.environ) or not parent.recorded:
        return OFF
    resource: dict[str, Value] = {
        "service.name": service,
        "service.version": VERSION,
        "host.name": socket.gethostname(),
        **attributes,
    }
    try:
        sender = Sender(_open(resource), log)
    except _NotAvailableError as error:
        log(str(error))
        return OFF
    except Exception as error:  # a library that is installed may still be broken
        log(f"traces cannot be sent ({type(error).__name__}): the job goes on without them")
        return OFF
    return Tracer(parent, sender.send, sender.close)


class _NotAvailableError(Exception):
    """Nothing can be sent from this process, whatever is tried: as a sentence."""


def _open(resource: Mapping[str, Value]) -> Export:
    protocol = next((os.environ[name] for name in PROTOCOLS if os.environ.get(name)), PROTOCOL)
    if protocol != PROTOCOL:
        raise _NotAvailableError(
            f"traces are sent by {PROTOCOL} alone, and the environment asks for {protocol!r}: the job goes on without "
            "them; give the receiver's address for OTLP over HTTP, mostly port 4318"
        )
    try:
        exporter = importlib.import_module("gaudi3_scale.traces.exporter")
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("opentelemetry"):
            raise
        raise _NotAvailableError(
            f"traces need OpenTelemetry, and the job goes on without them: {how_to_install('traces')}"
        ) from None
    made: Export = exporter.Exporter(resource)
    return made
