"""The trainer and the collection send traces alike, and neither may import the other."""

from __future__ import annotations

import ast
import inspect
import logging
from collections.abc import Mapping

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils import _traces
from gaudi3_scale.traces import exporter, switch


@pytest.mark.parametrize("name", ["SWITCH", "PROTOCOLS", "PROTOCOL"])
def test_they_read_the_same_variables_of_the_environment(name: str) -> None:
    assert getattr(_traces, name) == getattr(switch, name)


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_TRACES_EXPORTER": "otlp"},
        {"OTEL_TRACES_EXPORTER": "console, otlp"},
        {"OTEL_TRACES_EXPORTER": "none"},
        {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": " True"},
        {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "no"},
    ],
)
def test_they_send_where_the_same_was_asked(environment: Mapping[str, str]) -> None:
    assert _traces.is_wanted(environment) is switch.is_wanted(environment)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "no answer"),
        (("secret", ConnectionError("with a secret")), "ConnectionError"),
        (("secret", 503, "secret"), "HTTP status 503"),
        ((True, "secret"), "no answer"),
    ],
)
def test_they_say_why_alike_and_quote_nothing(arguments: tuple[object, ...], said: str) -> None:
    record = logging.LogRecord("library", logging.ERROR, "", 0, "%s " * len(arguments), arguments, None)
    for kind in (_traces._Reason, exporter._Reason):
        kept = kind()
        kept.emit(record)
        assert kept.last == said


def test_the_class_that_keeps_the_reason_is_the_same() -> None:
    first, second = (ast.dump(ast.parse(inspect.getsource(each))) for each in (_traces._Reason, exporter._Reason))
    assert first == second
