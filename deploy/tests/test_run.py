"""`gaudi3-deploy run`: every stage on record; cut off anywhere it goes on; spent, it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import CATALOGUE, Deploy, outputs
from gaudi3_deploy import duration, jobs, preflight, results, runs, site, ssh, watchdog_timer
from gaudi3_deploy.app import Asked, Context
from gaudi3_deploy.commands import run as command
from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.record import Deployment, load
from gaudi3_deploy.runs import Run

OUTPUTS = outputs(head="demo-01")


class Cut(BaseException):
    """The command is killed here."""


class World:
    """Everything that a run works on, with a note of what was done."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.done: list[str] = []
        self.cut_at = ""
        self.plays: list[int] = [0, 0]
        self.playing = 0.0
        self.count = 1
        self.job = folder / "job.yml"
        self.job.write_text("trainer_job_name: mine\n")
        tree = folder / "terraform"
        (tree / "aws").mkdir(parents=True)
        (tree / "aws/main.tf").write_text('variable "ttl" {}\n')
        (tree / "catalogue").mkdir()
        (tree / "catalogue/instances.json").write_text(json.dumps(CATALOGUE))
        self.settings = Context(SimpleNamespace(print=print), tree, "terraform", folder / "deployments")  # type: ignore[arg-type]
        monkeypatch.setattr(command, "LOOK_EVERY", 0.05)
        monkeypatch.setattr(command, "findings", lambda *given: [])
        monkeypatch.setattr(command, "bring_up", lambda *given, yes: self.note("up", self.bring_up, given[1]))
        monkeypatch.setattr(command, "take_down", lambda *given, yes: self.note("down", self.take_down, given[1]))
        monkeypatch.setattr(ssh, "wait", lambda *given: self.note("wait"))
        monkeypatch.setattr(watchdog_timer, "install", lambda *given: self.note("guard"))
        monkeypatch.setattr(jobs, "drain", lambda *given: self.note("drain"))
        monkeypatch.setattr(results, "fetch", lambda *given: self.note(f"fetch {given[2]}"))
        self.really_start = site.start
        monkeypatch.setattr(site, "start", self.start)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def note(self, what: str, then: Callable[[Deployment], None] | None = None, of: Any = None) -> None:
        """Something is done; a run may be cut off in it or right after it."""
        self.done.append(what)
        if self.cut_at == f"in {what}":
            raise Cut
        if then is not None:
            then(of)
        if self.cut_at == f"after {what}":
            raise Cut

    def bring_up(self, deployment: Deployment) -> None:
        """Nodes at 13 USD an hour."""
        deployment.save()
        site.write_inventory(deployment, OUTPUTS)
        deployment.count(self.count, "box8", 13.0)
        deployment.enter("up")

    def take_down(self, deployment: Deployment) -> None:
        """None."""
        deployment.count(0, "", None)
        deployment.enter("down")

    def start(self, deployment: Deployment, collection: Path, arguments: list[str]) -> subprocess.Popen[bytes]:
        """A playbook that takes its time and ends as is said, or by an interrupt."""
        state = next(each for each in arguments if each.startswith("trainer_state=")).partition("=")[2]
        self.note(state)
        code = self.plays.pop(0)
        (self.folder / "ansible-playbook").write_text(
            f"#!/bin/sh\n[ {self.playing} = 0.0 ] || exec sleep {self.playing}\nexit {code}\n"
        )
        (self.folder / "ansible-playbook").chmod(0o755)
        return self.really_start(deployment, collection, arguments)

    def run(self, found: Run | None = None, keep: bool = False, var: list[str] | None = None, **limits: Any) -> Run:
        """From where it is to its end."""
        digest, names = runs.read_job(self.job)
        directory = self.folder / "deployments/demo"
        directory.mkdir(parents=True, exist_ok=True)
        given = {"max_usd": None, "ttl": 3600.0, **limits}
        found = found or runs.load(directory) or Run(str(self.job), digest, names, results=str(self.folder), **given)
        asked = Asked("aws", 8, "box8", var)
        teller = SimpleNamespace(log=print, stop=lambda: None)
        command.Stages(self.settings, "demo", found, teller, asked, None, True, keep).go_on()  # type: ignore[arg-type]
        return found


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """With nothing there yet."""
    return World(tmp_path, monkeypatch)


WHOLE = ["up", "wait", "guard", "started", "finished", "fetch mine", "down"]


def test_it_goes_from_nothing_to_results_to_nothing(world: World) -> None:
    found = world.run()
    assert world.done == WHOLE
    assert (found.stage, found.reason, found.failed) == ("done", "", "")
    deployment = load(world.folder / "deployments", "demo")
    assert deployment is not None and deployment.phase == "down"
    assert deployment.variables["ttl"] == "70m"  # which the root module has; ten of them to save and to destroy


@pytest.mark.parametrize("instant", [f"{when} {what}" for what in WHOLE for when in ("in", "after")])
def test_cut_off_anywhere_it_goes_on_there(world: World, instant: str) -> None:
    world.cut_at = instant
    with pytest.raises(Cut):
        world.run()
    before, world.cut_at, world.done = world.done, "", []
    world.plays = [0, 0]
    assert world.run().stage == "done"
    # What it was cut off in is done once more, and nothing that was done before it.
    assert before + world.done == WHOLE[: len(before)] + WHOLE[len(before) - 1 :]


@pytest.mark.parametrize(
    ("limits", "reason"),
    [({"ttl": 0.5}, "its time is over ("), ({"ttl": 20, "max_usd": 0.1}, "its money is spent (")],
    ids=["time", "money"],
)
def test_spent_it_saves_fetches_and_ends(world: World, limits: dict[str, float], reason: str) -> None:
    world.playing, world.count = 30, 40
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in the background of a script
    began = time.monotonic()
    try:
        found = world.run(**limits)
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - began < 15
    assert found.reason.startswith(reason)
    assert world.done == ["up", "wait", "guard", "started", "drain", "fetch mine", "down"]


def test_begun_again_after_its_time_it_makes_nothing_more(world: World) -> None:
    world.cut_at = "after up"
    with pytest.raises(Cut):
        world.run(ttl=0.2)
    time.sleep(0.2)
    world.cut_at = ""
    assert world.run().reason.startswith("its time is over")
    assert world.done == ["up", "down"]


def test_a_job_that_failed_is_fetched_and_the_machines_go_or_are_kept(world: World) -> None:
    world.plays = [0, 2]
    with pytest.raises(
        DeployError, match=r"^The job failed \(exit code 2\), and the machines are kept: mend it and run"
    ):
        world.run(keep=True)
    assert world.done == ["up", "wait", "guard", "started", "finished"]
    world.plays = [2]
    assert world.run().failed == "the job failed (exit code 2)"
    assert world.done[-3:] == ["finished", "fetch mine", "down"]


def test_where_the_nodes_cannot_be_set_up_the_machines_go(world: World) -> None:
    world.plays = [4]
    assert world.run().failed == "site.yml failed (exit code 4)"
    assert world.done == ["up", "wait", "guard", "started", "down"]


def test_what_would_cost_too_much_or_nobody_knows_how_much_is_refused_before() -> None:
    runs.refuse_price(26.0, "", 312.0, 12 * 3600, 2)
    with pytest.raises(
        UsageError, match=r"^2 node\(s\) for 12 hours cost 312\.00 USD, which is above --max-usd 300\.00: give a"
    ):
        runs.refuse_price(26.0, "", 300.0, 12 * 3600, 2)
    with pytest.raises(
        UsageError, match=r"^The price of the nodes is unknown: spot prices .*: give yours with --price"
    ):
        runs.refuse_price(None, "unknown: spot prices change by the hour; give", 300.0, 3600, 2)
    runs.refuse_price(None, "unknown", None, 3600, 2)


def test_problems_that_are_known_before_stop_it_before_anything_is_made(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = preflight.Finding("quota", preflight.PROBLEM, "1 node(s) need 96 vCPUs, and the quota is 0: ask")
    monkeypatch.setattr(command, "findings", lambda *given: [bad])
    with pytest.raises(DeployError, match=r"^This would fail, and nothing was made\. quota: 1 node\(s\) need 96 vCPUs"):
        world.run()
    assert world.done == []


def test_a_group_that_makes_anew_what_ends_itself_is_refused(world: World) -> None:
    with pytest.raises(UsageError, match=r"^An autoscaling group replaces each node that powers itself off"):
        world.run(var=["autoscaling=true"])
    assert world.done == []


def test_another_job_does_not_go_on_with_this_one_s_machines(world: World) -> None:
    world.cut_at = "after up"
    with pytest.raises(Cut):
        world.run()
    found = runs.load(world.folder / "deployments/demo")
    assert found is not None
    command._refuse_another(found, found.digest, world.job)
    with pytest.raises(
        UsageError, match=r"job\.yml is not what the run at stage up was begun with .*: end that one first"
    ):
        command._refuse_another(found, "other", world.job)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: [", r"cannot be read"),
        ("trainer_config: {}", r"has no name: set trainer_job_name in it"),
        ("trainer_jobs: [{nodes: []}]", r"has no name"),
    ],
)
def test_a_job_without_a_name_is_no_job(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "job.yml").write_text(text)
    with pytest.raises(UsageError, match=sentence):
        runs.read_job(tmp_path / "job.yml")


def test_jobs_are_named_as_the_role_has_them(tmp_path: Path) -> None:
    (tmp_path / "job.yml").write_text("trainer_jobs: [{name: a}, {name: b}]")
    assert runs.read_job(tmp_path / "job.yml")[1] == ["a", "b"]


@pytest.mark.parametrize(("text", "seconds"), [("90m", 5400), ("12h", 43200), ("2d", 172800), ("1h30m", 5400)])
def test_times(text: str, seconds: float) -> None:
    assert duration.seconds(text) == seconds
    assert duration.seconds(duration.text(seconds)) == seconds
    for bad in ("", "12", "h", "12h ", "-1h", "0h"):
        with pytest.raises(UsageError, match=r"^The time '"):
            duration.seconds(bad)


PLAYBOOK = """#!{python}
import json, pathlib, sys
with pathlib.Path({folder!r}, "plays").open("a") as plays:
    plays.write(json.dumps(sys.argv[1:]) + chr(10))
"""


def test_on_hosts_of_one_s_own_by_the_command_itself(deploy: Deploy, monkeypatch: pytest.MonkeyPatch) -> None:
    tree, tools = deploy.folder / "terraform", deploy.folder / "tools"
    (tree / "aws").rename(tree / "onprem")
    tools.mkdir()
    archive = deploy.folder / "job.tar"
    (deploy.folder / "there/job-one").mkdir(parents=True)
    (deploy.folder / "there/job-one/status.json").write_text('{"state": "finished"}')
    subprocess.run(["tar", "-C", deploy.folder / "there", "-cf", archive, "job-one"], check=True)
    (tools / "ssh").write_text(f'#!/bin/sh\ncase "$*" in *tar*) cat {archive};; esac\n')
    (tools / "ansible-playbook").write_text(PLAYBOOK.format(python=sys.executable, folder=str(deploy.folder)))
    for each in tools.iterdir():
        each.chmod(0o755)
    environment = {**deploy.environment(), "PATH": f"{tools}:{os.environ['PATH']}"}
    monkeypatch.setattr(deploy, "environment", lambda: environment)
    catalogue = deploy.folder / "terraform/catalogue/instances.json"
    catalogue.write_text(catalogue.read_text().replace('"cloud": "aws"', '"cloud": "onprem"'))
    (deploy.folder / "Job One.yml").write_text("trainer_job_name: job-one\n")
    said = deploy.run("run", "Job One.yml", "--on", "hosts", "--size", "8", "--type", "box8", "--yes")
    assert said.splitlines()[-1] == "run job-one is done"
    plays = [json.loads(line) for line in (deploy.folder / "plays").read_text().splitlines()]
    assert [[each for each in play if each.startswith("trainer_state")] for play in plays] == [
        ["trainer_state=started"], ["trainer_state=finished"],
    ]  # fmt: skip
    assert (deploy.folder / "results/job-one/status.json").read_text() == '{"state": "finished"}'
    assert deploy.record("job-one")["phase"] == "down"
