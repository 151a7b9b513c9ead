"""The trace of a job: its launchers, its ranks and its restarts, as a real receiver of OTLP gets them."""

from __future__ import annotations

import doctest
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import PACKAGES, SMALL, free_port, kill, wait_for, workers
from test_metrics_tls import certificate
from zygote import Client, Started

from gaudi3_scale.launch.attempts import Attempts
from gaudi3_scale.traces import context, exporter, sender, spans, switch
from gaudi3_scale.traces.context import Context
from gaudi3_scale.traces.sender import Sender
from gaudi3_scale.traces.spans import Clock, Off, Span, Tracer
from tests.suite.otlp_receiver import Receiver, receiver, tree

GIVEN = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
TOKEN = "Bearer s3cret-of-the-receiver"


@pytest.fixture(name="there")
def a_receiver() -> Iterator[Receiver]:
    with receiver(token=TOKEN) as made:
        yield made


def environment(there: Receiver, **more: str) -> dict[str, str]:
    """What a job gets that is to send its traces there."""
    return {**there.environment, "OTEL_EXPORTER_OTLP_HEADERS": "authorization=" + TOKEN.replace(" ", "%20"), **more}


class Traced:
    """A job under the launcher, with its folder."""

    def __init__(self, warm: Client, folder: Path, text: Path) -> None:
        self.warm, self.folder, self.text = warm, folder, text
        self.launchers: list[Started] = []

    @staticmethod
    def kill(launcher: Started) -> None:
        for each in [*workers(launcher.pid), launcher.pid]:
            kill(each, signal.SIGKILL)
        launcher.wait(60)

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "job/status.json").read_text())
        return found

    @property
    def kept(self) -> Path:
        return self.folder / "job" / f"trace.{socket.gethostname()}.json"

    def start(self, given: dict[str, str], *more: str, steps: int, restarts: int = 0, ranks: int = 1) -> Started:
        job = self.folder / "job"
        job.mkdir(exist_ok=True)
        arguments = [
            f"--status={job}/status.json",
            *more,
            "--nnodes=1",
            f"--nproc-per-node={ranks}",
            "--rdzv-backend=c10d",
        ]
        arguments += [f"--rdzv-endpoint=127.0.0.1:{free_port()}", "--rdzv-id=test", f"--max-restarts={restarts}"]
        arguments += [
            "--monitor-interval=0.1",
            "--no-python",
            "gaudi3-train",
            "fit",
            *SMALL,
            f"data.source={self.text}",
        ]
        arguments += [f"output_dir={job}", f"train.max_steps={steps}", "train.warmup_steps=0"]
        arguments += ["checkpoint.every=20", "train.log_every=20"]
        log = self.folder / f"log-{len(self.launchers)}"
        self.launchers.append(self.warm.start("launch", arguments, given, log))
        return self.launchers[-1]


@pytest.fixture(name="job")
def a_job(warm: Client, tmp_path: Path, text: Path) -> Iterator[Traced]:
    made = Traced(warm, tmp_path, text)
    yield made
    for launcher in made.launchers:
        if launcher.poll() is None:
            made.kill(launcher)


def test_a_job_and_its_restarts_are_one_trace(job: Traced, there: Receiver) -> None:
    """A rank is killed, then the launcher: whoever goes on says which attempt was before."""
    parent = job.folder / "parent"
    parent.write_text(GIVEN + "\n")
    launcher = job.start(environment(there), f"--trace-parent={parent}", steps=100_000, restarts=1, ranks=2)
    wait_for(lambda: there.named("checkpoint"), "checkpoint", lambda: launcher.poll() is not None)
    kill(workers(launcher.pid)[0], signal.SIGKILL)
    wait_for(lambda: len(there.named("first step")) == 4, "restart", lambda: launcher.poll() is not None)
    job.kill(launcher)
    saved = max(int(path.name.removeprefix("step-")) for path in (job.folder / "job/checkpoints").glob("step-*"))
    last = job.start(environment(there), f"--trace-parent={parent}", steps=saved + 2, ranks=2)
    assert last.wait(120) == 0, last.output()

    assert {each.trace for each in there.spans} == {GIVEN.split("-")[1]}
    first, (second, third) = there.one("attempt"), there.named("restart")
    assert [each.parent for each in (first, second, third)] == [GIVEN.split("-")[2]] * 3
    assert [each.attributes["gaudi.attempt"] for each in (first, second, third)] == [1, 2, 3]
    assert [each.attributes["gaudi.state"] for each in (first, second, third)] == ["failed", "lost", "finished"]
    assert [each.links for each in (first, second, third)] == [(), (first.id,), (second.id,)]
    assert first.error and second.error == "the launcher was killed, or its node was lost" and third.error is None
    assert first.end <= second.start <= second.end <= third.start
    for attempt in (first, second, third):
        inside = [each for each in there.spans if each.parent == attempt.id]
        assert sorted(each.name for each in inside if each.name in ("rendezvous", "start-up", "first step")) == [
            *["first step"] * 2,
            "rendezvous",
            *["start-up"] * 2,
        ]
        assert {each.resource.get("gaudi.rank") for each in inside} == {None, 0, 1}
    assert {each.service for each in there.spans} == {"gaudi3-launch", "gaudi3-train"}
    below = {each.name for each in there.spans if each.parent in {up.id for up in there.named("start-up")}}
    assert below == {"imports", "device", "process group", "look for checkpoints", "data", "model", "set up"}
    checkpoint = there.named("checkpoint")[0]
    assert checkpoint.attributes["gaudi.step"] == 20 and 0 < checkpoint.attributes["gaudi.stall_seconds"] < 60
    assert checkpoint.resource["gaudi.rank"] == 0 and checkpoint.seconds > 0
    assert all(0 <= each.seconds < 300 for each in there.spans)
    # Nothing of the receiver's token is in what others read, and nothing of the job's files in what is sent.
    for path in (path for path in job.folder.rglob("*") if path.is_file() and path.stat().st_size < 1_000_000):
        assert "s3cret" not in path.read_text(errors="replace"), path
    sent = repr([(each.name, each.attributes, each.resource, each.error) for each in there.spans])
    assert str(job.folder) not in sent and str(job.text) not in sent


def test_without_somebody_elses_trace_the_job_begins_one(job: Traced, there: Receiver) -> None:
    assert job.start(environment(there), steps=2).wait(120) == 0
    assert job.start(environment(there), steps=4).wait(120) == 0
    (root,) = there.named("job")
    assert root.parent == "" and {each.trace for each in there.spans} == {root.trace}
    assert [line for line in tree(there.spans) if not line.startswith("    ")] == ["job", "  attempt", "  restart"]


def test_traces_that_nobody_asked_for_cost_nothing(job: Traced, there: Receiver) -> None:
    """The address alone is none: other programs have it in their environment as well."""
    launcher = job.start({"OTEL_EXPORTER_OTLP_ENDPOINT": there.url}, steps=2)
    assert launcher.wait(120) == 0, launcher.output()
    assert not there.headers and not job.kept.exists()
    code = (
        "import sys, threading\n"
        "from gaudi3_scale.launch.attempts import Attempts\n"
        "from gaudi3_scale.job.traced import traced\n"
        "from gaudi3_scale.distributed.process_group import Topology\n"
        "with traced(Topology()): pass\n"
        "Attempts.of_launcher(None, None, {}).end(0)\n"
        "assert not [name for name in sys.modules if name.startswith(('opentelemetry', 'requests'))]\n"
        "assert threading.active_count() == 1\n"
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "COVERAGE_"))}
    subprocess.run([sys.executable, "-c", code], env={**clean, "PYTHONPATH": PACKAGES}, check=True)


def test_a_receiver_that_refuses_does_not_stop_the_job(job: Traced) -> None:
    """It repeats the token in its answer, as a server may that is none of traces."""
    with receiver(status=403) as made:
        launcher = job.start(environment(made), steps=3)
        assert launcher.wait(120) == 0, launcher.output()
    said = launcher.output()
    assert "span(s) did not reach their receiver (HTTP status 403)" in said
    assert said.count("traces cannot be sent") <= 2 and said.count("did not reach") <= 2
    assert not {each for each in ("s3cret", "opentelemetry", "Traceback") if each in said}, said
    assert job.status["state"] == "finished"


def test_a_launcher_that_knows_of_no_decision_goes_by_that_of_the_trace(job: Traced, there: Receiver) -> None:
    """A trace that somebody decided not to record is recorded by nobody."""
    assert job.start(environment(there, TRACEPARENT=GIVEN[:-2] + "00"), steps=2).wait(120) == 0
    assert not there.headers


# --- The parts ---


def test_the_examples_are_true() -> None:
    assert doctest.testmod(context).failed == 0


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "00-" + "0" * 32 + "-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-" + "0" * 16 + "-01",
        GIVEN.replace("00-", "ff-", 1),
        GIVEN.upper(),
        GIVEN + "\nX=1",
        GIVEN[:-1],
        "x" * 5000,
    ],
)
def test_what_is_no_trace_context_is_ignored(text: str | None) -> None:
    assert Context.parse(text) is None


def test_a_context_is_handed_on_as_it_came() -> None:
    found = Context.parse(GIVEN)
    assert found is not None and found.traceparent == GIVEN and found.recorded
    assert found.child().trace == found.trace and found.child().span != found.span
    # A version to come may say more.
    later = Context.parse("cc" + GIVEN[2:] + "-what-the-future-holds")
    assert later == found
    skipped = Context.parse(GIVEN[:-2] + "00")
    assert skipped is not None and not skipped.recorded and not skipped.child().recorded


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, False),
        ({"OTEL_TRACES_EXPORTER": "none"}, False),
        ({"OTEL_TRACES_EXPORTER": "console, otlp"}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "True"}, False),
    ],
)
def test_traces_are_sent_where_they_were_asked_for(given: dict[str, str], wanted: bool) -> None:
    assert switch.is_wanted(given) is wanted


def made_span(name: str = "phase") -> Span:
    return Span(name, Context.new(), None, 1, 2)


def test_phases_are_inside_of_each_other() -> None:
    sent: list[Span] = []
    tracer = Tracer(Context.new(), sent.append)
    outer = tracer.begin("outer")
    with pytest.raises(KeyError), tracer.span("inner", {"gaudi.step": 1}):
        raise KeyError("a path of the user's")
    left = tracer.begin("left open")
    tracer.finish(outer)
    tracer.finish(left)
    tracer.finish(None)
    inner, open_, last = sent
    assert [each.name for each in sent] == ["inner", "left open", "outer"]
    assert inner.error == "KeyError" and dict(inner.attributes) == {"gaudi.step": 1}
    assert last.parent == tracer.context and inner.parent == open_.parent == last.context
    assert last.start <= inner.start <= inner.end <= last.end


def test_a_process_that_fails_ends_what_is_open() -> None:
    sent: list[Span] = []
    closed: list[float] = []
    tracer = Tracer(Context.new(), sent.append, closed.append)
    tracer.begin("start-up")
    tracer.close(0.5, "ConfigError")
    assert [(each.name, each.error) for each in sent] == [("start-up", "ConfigError")] and closed == [0.5]


def test_a_clock_that_is_set_moves_no_span(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    before = clock.now()
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    assert before <= clock.now() < before + 60_000_000_000


def test_where_traces_are_off_nothing_is_kept() -> None:
    off = Off()
    with off.span("phase"):
        off.record("other", 1, 2)
    assert off.begin("phase") is None and off.outermost is None and not off.on
    off.close(60.0)


class Export:
    """Takes spans, once it is let."""

    def __init__(self, problem: str | None = None) -> None:
        self.problem, self.taken, self.calls = problem, list[Span](), 0
        self.reason, self.seconds = problem or "no answer", 0.0

    def __call__(self, batch: Any) -> str | None:
        self.calls += 1
        time.sleep(self.seconds)
        if self.problem is None:
            self.taken += batch
        return self.problem


def test_all_spans_arrive_in_order_and_are_sent_together() -> None:
    export, said = Export(), list[str]()
    made = Sender(export, said.append)
    for number in range(2 * sender.BATCH + 3):
        made.send(made_span(str(number)))
    made.close(30.0)
    assert [each.name for each in export.taken] == [str(number) for number in range(2 * sender.BATCH + 3)]
    assert export.calls <= 4 and not said


def test_spans_wait_for_a_receiver_that_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "FIRST_PAUSE", 0.01)
    export, said = Export("HTTP status 503"), list[str]()
    made = Sender(export, said.append)
    made.send(made_span())
    wait_for(lambda: export.calls > 2, "tries")
    export.problem = None
    wait_for(lambda: export.taken, "span")
    made.close(30.0)
    assert len(export.taken) == 1
    assert said == ["traces cannot be sent (HTTP status 503): the job goes on, and it is tried again"]


def test_of_too_many_spans_the_oldest_are_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "WAITING", 10)
    export, said = Export("no answer"), list[str]()
    made = Sender(export, said.append)
    for number in range(25):
        made.send(made_span(str(number)))
    wait_for(lambda: export.calls, "try")
    made.close(30.0)
    made.close(30.0)
    assert said[1:] == ["traces: 25 span(s) did not reach their receiver (no answer)"]
    assert [each.name for each in made._spans] == [str(number) for number in range(15, 25)]


def test_a_receiver_that_hangs_is_waited_for_as_long_as_it_was_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "LINGER", 0.0)
    export, said = Export(), list[str]()
    export.seconds = 60.0
    made = Sender(export, said.append)
    made.send(made_span())
    began = time.monotonic()
    made.close(0.2)
    assert 0.1 < time.monotonic() - began < 10
    assert said == ["traces: 1 span(s) did not reach their receiver (no answer)"]


@pytest.mark.parametrize(
    ("given", "installed", "expected"),
    [
        ({}, False, "traces need OpenTelemetry, and the job goes on without them: pip install 'opentelemetry-sdk>="),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, True, "traces are sent by http/protobuf alone, and the environment"),
    ],
)
def test_what_keeps_traces_from_being_sent_is_said_in_a_sentence(
    given: dict[str, str], installed: bool, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    if not installed:
        monkeypatch.delitem(sys.modules, "gaudi3_scale.traces.exporter")
        monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    said = list[str]()
    assert switch.begin("gaudi3-train", Context.new(), said.append) is spans.OFF
    (sentence,) = said
    assert sentence.startswith(expected)


def test_the_names_of_a_site_count(there: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES are for whoever runs the program."""
    for name, value in environment(there).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("OTEL_SERVICE_NAME", "mine")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    assert exporter.Exporter({"service.name": "gaudi3-train", "gaudi.rank": 3})([made_span()]) is None
    found = there.one("phase")
    assert found.service == "mine" and found.resource["deployment.environment.name"] == "test"
    assert found.resource["gaudi.rank"] == 3


@pytest.mark.parametrize("case", ["known", "another authority", "no certificate", "plain HTTP"])
def test_a_receiver_with_tls_gets_spans_of_those_it_knows(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, own, stranger = (certificate(tmp_path, name) for name in ("server", "node", "stranger"))
    with receiver(tls=server, authority=own[0]) as there:
        given = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": there.url.replace("https", "http") if case == "plain HTTP" else there.url,
            "OTEL_EXPORTER_OTLP_CERTIFICATE": (stranger if case == "another authority" else server)[0],
            "OTEL_EXPORTER_OTLP_TIMEOUT": "30" if case == "known" else "0.5",
        }
        if case != "no certificate":
            given |= dict(
                zip(("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "OTEL_EXPORTER_OTLP_CLIENT_KEY"), own, strict=True)
            )
        for name, value in given.items():
            monkeypatch.setenv(name, value)
        for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):  # which the library's HTTP client prefers
            monkeypatch.delenv(name, raising=False)
        assert (exporter.Exporter({"service.name": "gaudi3-train"})([made_span()]) is None) is (case == "known")
        assert len(there.spans) == (case == "known")


class Store:
    """In which two nodes have met."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}

    def check(self, keys: list[str]) -> bool:
        return all(key in self.values for key in keys)

    def set(self, key: str, value: bytes) -> None:
        self.values[key] = value

    def get(self, key: str) -> bytes:
        return self.values[key]


def attempts_of(sent: list[Span], job: Context | None = None) -> Attempts:
    return Attempts(Tracer(job or Context.new(), sent.append), job)


def test_the_nodes_take_the_trace_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    from gaudi3_scale.meeting_store import MeetingStore

    monkeypatch.setenv("TRACEPARENT", "")
    store, sent = MeetingStore(Store()), list[Span]()
    first, second = attempts_of(sent), attempts_of(sent, Context.parse(GIVEN))
    for number, each in enumerate((first, second)):
        each.meet()
        each.begin(lambda number=number: (store, number, 2))  # type: ignore[misc]
        each.end(0)
    assert len({each.context.trace for each in sent}) == 1
    root, *others = sent
    assert root.name == "job" and [each.name for each in others] == ["rendezvous", "attempt"] * 2
    assert {each.parent for each in others if each.name == "attempt"} == {root.context}


@pytest.mark.parametrize(("given", "expected"), [(None, []), (GIVEN, [("attempt", "spare")])])
def test_a_spare_node_that_was_not_needed_begins_no_trace(given: str | None, expected: list[tuple[str, str]]) -> None:
    sent = list[Span]()
    made = attempts_of(sent, Context.parse(given))
    made.meet()
    made.end(0, spare=True)
    assert [(each.name, each.attributes["gaudi.state"]) for each in sent] == expected


@pytest.mark.parametrize("said", ["", "nonsense", GIVEN + "\n" + "x" * 10_000])
def test_what_another_node_says_is_data(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from gaudi3_scale.launch import attempts
    from gaudi3_scale.meeting_store import MeetingStore

    monkeypatch.setenv("TRACEPARENT", "")
    store, sent = MeetingStore(Store()), list[Span]()
    store.set(attempts.KEY, said)
    made = attempts_of(sent)
    made.meet()
    made.begin(lambda: (store, 1, 2))
    made.end(75)
    assert [each.name for each in sent] == ["job", "rendezvous", "attempt"]
    assert sent[-1].attributes["gaudi.state"] == "interrupted" and sent[-1].error is None


def test_a_first_node_without_traces_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    from gaudi3_scale.meeting_store import MeetingStore

    monkeypatch.setenv("TRACEPARENT", "")
    made, began = attempts_of(list[Span]()), time.monotonic()
    made.meet()
    made.begin(lambda: (MeetingStore(Store()), 1, 2))
    assert time.monotonic() - began < 10


def kept_attempt(number: int = 1, began: int = 1, own: str = GIVEN, ended: bool = False) -> str:
    """What a launcher leaves for the next one."""
    last = {"traceparent": own, "number": number, "began": began, "before": "", "ended": ended}
    return json.dumps({"traceparent": GIVEN, "attempt": last})


@pytest.mark.parametrize("ended", [False, True])
def test_after_a_clock_was_set_back_the_trace_goes_on(
    ended: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEPARENT", "")
    (tmp_path / f"trace.{socket.gethostname()}.json").write_text(kept_attempt(3, 2**80, ended=ended))
    sent, now = list[Span](), time.time_ns()
    made = Attempts(Tracer(Context.new(), sent.append), Context.parse(GIVEN), tmp_path)
    made.meet()
    made.begin(lambda: (None, 0, 1))
    made.end(0)
    lost, (_, last) = sent[:-2], sent[-2:]
    assert [(each.attributes["gaudi.state"], each.end - now < 60_000_000_000) for each in lost] == [("lost", True)] * (
        not ended
    )
    assert last.attributes["gaudi.attempt"] == 4 and last.links == (Context.parse(GIVEN),)


@pytest.mark.parametrize(
    "kept",
    ["", "[]", "{", kept_attempt(own="x"), kept_attempt(-1), kept_attempt(began=-1), "[" * 4000],
    ids=["empty", "list", "torn", "no context", "number", "time", "deep"],
)
def test_a_file_of_another_launcher_that_is_none_is_passed_over(
    kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEPARENT", "")
    (tmp_path / f"trace.{socket.gethostname()}.json").write_text(kept)
    sent = list[Span]()
    made = Attempts(Tracer(Context.new(), sent.append), None, tmp_path)
    made.meet()
    made.begin(lambda: (None, 0, 1))
    made.end(0)
    assert [(each.name, each.links) for each in sent] == [("job", ()), ("rendezvous", ()), ("attempt", ())]


def test_the_tracer_of_a_process_is_the_one_that_is_used() -> None:
    tracer = Tracer(Context.new(), lambda span: None)
    try:
        assert spans.use(tracer) is spans.current() is tracer
    finally:
        spans.use(spans.OFF)
