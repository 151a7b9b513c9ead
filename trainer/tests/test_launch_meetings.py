"""Nodes of a job that meet under the launcher, and what it says where they do not, or lose each other."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import free_port, kill, wait_for, workers
from torch.distributed import DistNetworkError, DistStoreError, TCPStore
from torch.distributed.elastic.rendezvous import RendezvousClosedError
from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend
from zygote import Client, Started

from gaudi3_scale.launch.outcome import not_met
from gaudi3_scale.launch.rendezvous_state import read_state


@pytest.mark.parametrize(
    ("failed", "sentence"),
    [
        (RendezvousClosedError(), "the rendezvous at a:1 is closed, as the job has ended: start it again on all nodes"),
        (
            DistNetworkError("failed to recv, got 0 bytes\n at a.cpp:1"),
            "the rendezvous at a:1 does not answer (failed to recv, got 0 bytes): see whether the node that has it "
            "runs and is reached at that port, and start the job again on all nodes",
        ),
        (
            DistStoreError(""),
            "the rendezvous at a:1 does not answer (DistStoreError): see whether the node that has it runs and is "
            "reached at that port, and start the job again on all nodes",
        ),
    ],
)
def test_nodes_that_lose_each_other_are_told_what_to_do(failed: Exception, sentence: str) -> None:
    assert not_met("a:1", failed) == sentence


MEETS = """
import os, pathlib, sys, time
here = pathlib.Path(sys.argv[1])
(here / f"started-{sys.argv[2]}-{os.environ['TORCHELASTIC_RESTART_COUNT']}").touch()
while not (here / "go").exists():
    time.sleep(0.05)
"""


class Meeting:
    """Nodes of a job for two."""

    def __init__(self, warm: Client, folder: Path) -> None:
        self._warm, self._folder, self._script = warm, folder, folder / "meets.py"
        self._script.write_text(MEETS)
        self.endpoint = f"127.0.0.1:{free_port()}"
        self._launchers: list[Started] = []

    def node(self, name: str, *options: str, conf: str = "keep_alive_interval=1", **environment: str) -> Started:
        """Start a node's launcher; `head` has the rendezvous."""
        conf = f"is_host={str(name == 'head').lower()},{conf}"
        arguments = [*options, "--nnodes=2", "--nproc-per-node=1", "--max-restarts=3", "--rdzv-backend=c10d"]
        arguments += ["--rdzv-id=test", f"--rdzv-endpoint={self.endpoint}", f"--rdzv-conf={conf}"]
        arguments += ["--local-addr=127.0.0.1", "--monitor-interval=0.1"]
        arguments += ["--no-python", str(self._script), str(self._folder), name]
        launcher = self._warm.start("launch", arguments, environment, self._folder / f"log-{name}")
        self._launchers.append(launcher)
        return launcher

    def wait(self, *names: str) -> None:
        """Until these nodes have started a process."""
        files = [self._folder / f"started-{name}-0" for name in names]
        wait_for(lambda: all(file.exists() for file in files), "processes", seconds=50)

    def listed(self) -> set[int]:
        """The launchers that the rendezvous knows, whatever they do."""
        host, port = self.endpoint.split(":")
        store = TCPStore(host, int(port), is_master=False)
        state = read_state(C10dRendezvousBackend(store, "test").get_state()[0])
        return {node.pid for node in {*state.participants, *state.redundancy_list, *state.wait_list}}

    def finish(self, head: Started, back: Started) -> None:
        """Both take part, and end well."""
        (self._folder / "go").touch()
        assert head.wait(120) == 0, head.output()
        assert back.wait(120) == 0, back.output()

    def close(self) -> None:
        """End what still runs after a test that failed."""
        (self._folder / "go").touch()  # for processes whose launcher is gone
        for launcher in self._launchers:
            if launcher.poll() is None:
                for pid in [*workers(launcher.pid), launcher.pid]:
                    kill(pid, signal.SIGKILL)


@pytest.fixture
def meeting(warm: Client, tmp_path: Path) -> Iterator[Meeting]:
    made = Meeting(warm, tmp_path)
    yield made
    made.close()


def test_a_node_that_was_lost_comes_back_to_a_job_without_spares(meeting: Meeting) -> None:
    head, lost = meeting.node("head"), meeting.node("lost")
    meeting.wait("head", "lost")
    kill(lost.pid, signal.SIGKILL)
    back = meeting.node("back")
    meeting.wait("back")
    meeting.finish(head, back)


def test_a_spare_node_whose_launcher_fails_does_not_end_the_job(meeting: Meeting) -> None:
    head, lost = meeting.node("head", "--replace"), meeting.node("lost", "--replace")
    meeting.wait("head", "lost")
    spare = meeting.node("spare", "--replace", FAILS="spare")
    assert spare.wait(60) == 1, spare.output()
    kill(lost.pid, signal.SIGTERM)
    back = meeting.node("back", "--replace")
    meeting.wait("back")
    meeting.finish(head, back)


def test_a_spare_node_that_is_told_to_leave_is_not_waited_for(meeting: Meeting) -> None:
    head, lost = meeting.node("head", "--replace"), meeting.node("lost", "--replace")
    meeting.wait("head", "lost")
    spare = meeting.node("spare", "--replace")
    # Where a node at work is late with its heartbeat, the spare one is not a spare for a moment.
    wait_for(lambda: spare.pid in meeting.listed(), "a spare node")
    kill(spare.pid, signal.SIGTERM)
    assert spare.wait(60) == 75, spare.output()
    assert spare.pid not in meeting.listed()
    meeting.finish(head, lost)


def test_a_node_at_work_that_loses_the_store_does_not_end_the_job(meeting: Meeting) -> None:
    head, lost = meeting.node("head", "--replace"), meeting.node("lost", "--replace", FAILS="at work")
    meeting.wait("head", "lost")
    assert lost.wait(60) == 1, lost.output()
    said = lost.output()
    assert "(the store was lost for a moment)" in said and "Traceback" not in said, said
    back = meeting.node("back", "--replace")
    meeting.wait("back")
    meeting.finish(head, back)


def test_a_launcher_whose_head_is_gone_says_so_in_a_sentence(meeting: Meeting, tmp_path: Path) -> None:
    head, other = meeting.node("head"), meeting.node("other", f"--status={tmp_path / 'status.json'}", "--say-ending")
    meeting.wait("head", "other")
    for process in (head.pid, *workers(head.pid)):  # forked as they are here, the workers have the store's socket too
        kill(process, signal.SIGKILL)
    assert other.wait(120) == 1, other.output()
    sentence = (
        f"the rendezvous at {meeting.endpoint} does not answer (The connection to the C10d store has failed): see "
        "whether the node that has it runs and is reached at that port, and start the job again on all nodes"
    )
    said = other.output()
    assert f"gaudi3-launch: {sentence}\n" in said and "Traceback" not in said, said
    assert json.loads((tmp_path / "status.json").read_text())["error"] == sentence


@pytest.mark.parametrize("options", [(), ("--replace",)])
def test_a_launcher_that_finds_no_head_says_so_in_a_sentence(options: tuple[str, ...], meeting: Meeting) -> None:
    other = meeting.node("other", *options, conf="timeout=2,read_timeout=2")
    assert other.wait(120) == 1, other.output()
    said = other.output()
    assert f"gaudi3-launch: the rendezvous at {meeting.endpoint} does not answer (" in said, said
    assert "Traceback" not in said, said


def test_a_launcher_that_is_left_alone_says_so_in_a_sentence(meeting: Meeting) -> None:
    head = meeting.node("head", conf="join_timeout=2")
    assert head.wait(120) == 1, head.output()
    said = head.output()
    sentence = f"too few nodes came to the rendezvous at {meeting.endpoint} in its time: start the job on all of them"
    assert f"gaudi3-launch: {sentence}\n" in said and "Traceback" not in said, said


def test_nodes_do_not_wait_for_one_that_left_as_they_met(meeting: Meeting) -> None:
    lost = meeting.node("lost", "--replace", FAILS="as it meets")  # the lowest process id: the first of those who meet
    head = meeting.node("head", "--replace")
    assert lost.wait(60) == 1, lost.output()
    began = time.monotonic()
    back = meeting.node("back", "--replace")
    meeting.wait("head", "back")
    assert time.monotonic() - began < 12, "torch waits for 60 s, which is what others may need on a busy node"
    meeting.finish(head, back)
    assert "a node left while the nodes met: they meet again" in head.output()
