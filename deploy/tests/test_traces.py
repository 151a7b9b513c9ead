"""The trace of a command: its stages, what it hands on to Ansible, and how a run that was cut off goes on with it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from gaudi3_deploy import runs, traces
from gaudi3_deploy.runs import Run
from gaudi3_deploy.terraform import Terraform
from test_run import Cut, World

from tests.suite.otlp_receiver import Receiver, receiver, tree

GIVEN = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture(name="there")
def a_receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with receiver() as made:
        for name, value in made.environment.items():
            monkeypatch.setenv(name, value)
        for name in ("TRACEPARENT", "ANSIBLE_CALLBACKS_ENABLED", "ANSIBLE_CONFIG"):
            monkeypatch.delenv(name, raising=False)
        yield made


@pytest.fixture(name="world")
def a_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def traced(world: World) -> Run:
    """As the command does it."""
    with traces.command("run"):
        found = runs.load(world.folder / "deployments/demo")
        if found is None:
            digest, names = runs.read_job(world.job)
            (world.folder / "deployments/demo").mkdir(parents=True)
            found = Run(str(world.job), digest, names, None, 3600.0, str(world.folder))
        found.trace = traces.go_on_with(found.trace)
        return world.run(found)


def test_the_stages_of_a_run_are_spans(world: World, there: Receiver) -> None:
    traced(world)
    stages = ["check", "up", "wait", "guard", "site", "follow", "fetch", "down"]
    assert tree(there.spans) == ["run", *(f"  {each}" for each in stages)]
    assert {each.service for each in there.spans} == {"gaudi3-deploy"} and not any(each.error for each in there.spans)


def test_a_run_that_was_cut_off_goes_on_with_its_trace(world: World, there: Receiver) -> None:
    world.cut_at = "in guard"
    with pytest.raises(Cut):
        traced(world)
    world.cut_at = ""
    traced(world)
    first, second = there.named("run")
    assert first.trace == second.trace and second.links == (first.id,) and first.error == "Cut"
    assert [each.error for each in there.named("guard")] == ["Cut", None]


def test_ansible_gets_the_trace_and_the_plugin(
    there: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert traces.environment(tmp_path) == {}
    (tmp_path / "ansible.cfg").write_text("[defaults]\ncallbacks_enabled = mine.own.one, profile_tasks\n")
    with traces.command("site"), traces.span("site"):
        given = traces.environment(tmp_path)
        assert given["ANSIBLE_CALLBACKS_ENABLED"] == "mine.own.one,profile_tasks,gaudi3.scale.traces"
        monkeypatch.setenv("ANSIBLE_CALLBACKS_ENABLED", "gaudi3.scale.traces,other")
        assert traces.environment(tmp_path)["ANSIBLE_CALLBACKS_ENABLED"] == "gaudi3.scale.traces,other"
        monkeypatch.setenv("ANSIBLE_CALLBACKS_ENABLED", "")
        (tmp_path / "ansible.cfg").write_text("callbacks_enabled")
        assert traces.environment(tmp_path)["ANSIBLE_CALLBACKS_ENABLED"] == "gaudi3.scale.traces"
    inner = there.named("site")[1]
    assert given["TRACEPARENT"] == f"00-{inner.trace}-{inner.id}-01"
    assert "TRACEPARENT" not in os.environ


def test_a_command_belongs_to_what_started_it(there: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEPARENT", GIVEN)
    with traces.command("up"), traces.command("never on its own"):
        assert traces.go_on_with("") != ""
    assert there.one("up").trace == GIVEN.split("-")[1] and there.one("up").parent == "00f067aa0ba902b7"
    assert tree(there.spans) == ["up"]


def test_nothing_is_sent_that_nobody_asked_for(there: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_TRACES_EXPORTER")
    with traces.command("up"), traces.span("inner"):
        assert traces.environment(None) == {} and traces.go_on_with(GIVEN) == GIVEN
    assert not there.headers


def test_a_receiver_that_is_away_costs_a_sentence(there: Receiver, capsys: pytest.CaptureFixture[str]) -> None:
    there.close()
    with traces.command("up"):
        pass
    said = capsys.readouterr().err
    assert said == "gaudi3-deploy: 1 span(s) of the trace did not reach their receiver (ConnectionError).\n"


def test_terraform_sends_no_traces_of_its_own(there: Receiver, tmp_path: Path) -> None:
    """Its spans would have the addresses of all resources."""
    (tmp_path / "main.tf").write_text("")
    made = Terraform(tmp_path, "demo", tmp_path / "logs", None, "sh")  # type: ignore[arg-type]
    assert "OTEL_TRACES_EXPORTER" not in made._environment
