"""Spans of programs on the controller: what is sent, to whom, and what becomes of a run if nobody is there."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils import _traces
from ansible_collections.gaudi3.scale.plugins.module_utils._traces import Recorder
from tests.suite.otlp_receiver import Receiver, receiver, tree

GIVEN = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture(name="there")
def a_receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with receiver(token="Bearer s3cret") as made:
        for name, value in {**made.environment, "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20s3cret"}.items():
            monkeypatch.setenv(name, value)
        yield made


def test_phases_arrive_below_the_program_that_started_this_one(there: Receiver) -> None:
    recorder = Recorder("gaudi3-deploy", GIVEN)
    run = recorder.begin("run")
    first = recorder.begin("up", {"gaudi.hosts": 2})
    assert first is not None and recorder.traceparent == first.context
    recorder.end(first)
    recorder.begin("site", links=["nonsense", GIVEN])
    recorder.end(run, "DeployError")
    assert recorder.close() == ""
    assert tree(there.spans) == ["run", "  up", "  site"]
    assert {each.trace for each in there.spans} == {GIVEN.split("-")[1]} and there.one(
        "run"
    ).parent == "00f067aa0ba902b7"
    assert there.one("up").attributes == {"gaudi.hosts": 2} and there.one("up").error is None
    assert there.one("site").error == there.one("run").error == "DeployError"
    assert there.one("site").links == ("00f067aa0ba902b7",)
    assert there.one("run").service == "gaudi3-deploy" and there.one("run").seconds < 60


def test_without_a_background_nothing_is_sent_before_the_end(there: Receiver) -> None:
    recorder = Recorder("ansible-playbook", background=False)
    recorder.end(recorder.begin("phase"))
    assert recorder._thread is None and not there.headers
    assert recorder.close() == "" and len(there.spans) == 1


def test_a_later_command_goes_on_with_the_trace_of_an_earlier_one(there: Receiver) -> None:
    recorder = Recorder("gaudi3-deploy")
    run = recorder.begin("run")
    recorder.join("nonsense")
    recorder.join(GIVEN)
    recorder.end(recorder.begin("site"))
    recorder.end(run)
    assert recorder.close() == ""
    assert {each.trace for each in there.spans} == {GIVEN.split("-")[1]}
    assert there.one("run").links == ("00f067aa0ba902b7",) and there.one("run").parent == ""
    assert there.one("site").parent == there.one("run").id


def test_where_another_program_said_so_the_trace_stays(there: Receiver) -> None:
    other = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    recorder = Recorder("gaudi3-deploy", other)
    run = recorder.begin("run")
    recorder.join(GIVEN)
    recorder.end(run)
    assert recorder.close() == ""
    found = there.one("run")
    assert found.trace == "a" * 32 and found.parent == "b" * 16
    assert found.links == ("4bf92f3577b34da6a3ce929d0e0e4736/00f067aa0ba902b7",)


def test_what_is_not_to_be_recorded_is_not_sent(there: Receiver) -> None:
    recorder = Recorder("gaudi3-deploy", GIVEN[:-2] + "00")
    recorder.end(recorder.begin("run"))
    assert recorder.traceparent == GIVEN[:-2] + "00"  # which is handed on
    assert recorder.close() == "" and not there.headers


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"status": 401}, "HTTP status 401"), ({"delay": 30.0}, "no answer"), (None, "ConnectionError")],
)
def test_a_receiver_that_is_away_costs_seconds_and_a_sentence(
    options: dict[str, float] | None, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Receiver(**(options or {}))  # type: ignore[arg-type]
    if options is None:
        made.close()
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20s3cret")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "3")  # the library itself tries again after a second
    recorder = Recorder("gaudi3-deploy")
    recorder.end(recorder.begin("one"))
    recorder.end(recorder.begin("two"))
    began = time.monotonic()
    said = recorder.close(0.5 if options and "delay" in options else 30.0)
    assert time.monotonic() - began < 60
    assert said == f"2 span(s) of the trace did not reach their receiver ({reason})."
    if options is not None:
        made.close()


def test_of_too_many_spans_the_oldest_are_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_traces, "WAITING", 3)
    monkeypatch.setattr(_traces._Exporter, "send", lambda self, spans: "no answer")
    recorder = Recorder("gaudi3-deploy", background=False)
    for number in range(5):
        recorder.end(recorder.begin(str(number)))
    assert recorder.close() == "5 span(s) of the trace did not reach their receiver (no answer)."
    assert [each.name for each in recorder._waiting] == ["2", "3", "4"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"}, "sent by http/protobuf, and the environment asks for 'grpc'"),
        ({}, "is missing: install opentelemetry-sdk and opentelemetry-exporter-otlp-proto-http"),
    ],
)
def test_what_keeps_spans_from_being_sent_is_named(
    given: dict[str, str], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    recorder = Recorder("gaudi3-deploy")
    recorder.end(recorder.begin("run"))
    assert reason in recorder.close()


@pytest.mark.parametrize(
    "text", [None, "", "x", GIVEN.upper(), GIVEN + "\nX=1", GIVEN.replace("4bf92f3577b34da6a3ce929d0e0e4736", "0" * 32)]
)
def test_what_is_no_trace_context_is_ignored(text: str | None) -> None:
    assert _traces.valid(text) == ""


def test_traces_are_off_unless_asked_for() -> None:
    assert not _traces.is_wanted({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"})
    assert _traces.is_wanted({"OTEL_TRACES_EXPORTER": "otlp"})
    assert not _traces.is_wanted({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "true"})
