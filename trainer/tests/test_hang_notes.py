"""What a process notes of its collectives, what a launcher reads of it, and what it writes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import ranks
from conftest import PACKAGES

from gaudi3_scale.hangs import ring, stacks, watch
from gaudi3_scale.hangs.memory_folder import hold, remove_left_behind
from gaudi3_scale.hangs.start import end_of
from gaudi3_scale.hangs.verdict import Verdict
from gaudi3_scale.hangs.watch import HangWatch, Meeting, look
from gaudi3_scale.launch.outcome import JobOutcome
from gaudi3_scale.status import StatusFile


def made(folder: Path, monkeypatch: pytest.MonkeyPatch, rank: int = 0) -> ring.Ring:
    """A ring of this process."""
    monkeypatch.setattr(ring, "_current", None)
    monkeypatch.setenv(ring.FOLDER, str(folder))
    started = ring.start(rank, 2, 2, folder)
    assert started is not None
    return started


def test_the_newest_collectives_are_kept_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = made(tmp_path, monkeypatch)
    notes.group(0, "all", "all", range(2))
    rare = notes.group(7, "mesh", "3", [0, 1])
    notes.enter(ring.OPERATIONS.index("broadcast"), rare, 1, (2, 3, 4, 5, 6), ring.LAUNCHED)
    for number in range(ring.SLOTS + 10):
        place = notes.enter(0, 0, 2, (number,), ring.OPEN)
    notes.leave(place)
    ring.mark(ring.DATALOADER)
    found = ring.read(tmp_path / "0.ring")
    assert found is not None and (found.rank, found.world_size, found.process) == (0, 2, os.getpid())
    assert (found.phase, found.folder) == ("dataloader.next", str(tmp_path))
    assert [entry.number for entry in found.entries] == [*range(11, ring.SLOTS + 11)]
    last = found.entries[-1]
    assert (last.operation, last.dtype, last.shape, last.state) == ("all_reduce", "bfloat16", (265,), ring.RETURNED)
    assert found.entries[-2].state == ring.OPEN and found.counts[:2] == (ring.SLOTS + 10, 1)
    assert [group["ranks"] for group in found.groups] == [[[0, 1]], [[0, 1]]]
    assert (tmp_path / "0.ring").stat().st_size == ring.SIZE < 40_000


def test_what_is_no_ring_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "0.ring").write_bytes(b"x" * ring.SIZE)
    (tmp_path / "1.ring").write_bytes(b"gaudi3r2")
    assert ring.read(tmp_path / "0.ring") is ring.read(tmp_path / "1.ring") is ring.read(tmp_path / "none") is None
    assert ring.ends(tmp_path / "0.ring") == ring.ends(tmp_path / "none") == ring.RUNNING
    (tmp_path / "2.ring").write_bytes(b"gaudi3r2" + b"\xff" * (ring.SIZE - 8))
    found = ring.read(tmp_path / "2.ring")
    assert found is not None and found.phase == "?"


def test_without_a_launcher_nothing_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ring, "_current", None)
    monkeypatch.delenv(ring.FOLDER, raising=False)
    assert ring.start(0, 2, 2) is None
    ring.mark(ring.FORWARD)
    ring.ending(ring.HUNG)


def test_a_process_that_hung_waits_until_the_launcher_has_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = made(tmp_path, monkeypatch)
    began = time.monotonic()
    notes.end(ring.FAILED)
    assert time.monotonic() - began < 1  # an error of its own is nothing to look at
    notes = made(tmp_path, monkeypatch, rank=1)
    ring.acknowledge(tmp_path / "1.ring")
    notes.end(ring.HUNG, seconds=60)
    notes.announce(ring.FAILED)  # what follows from the hang
    assert ring.ends(tmp_path / "1.ring") == ring.HUNG


@pytest.mark.parametrize(
    ("error", "how"),
    [
        (RuntimeError("[gloo/unbound_buffer.cc:84] Timed out waiting 6000ms for recv operation"), ring.TIMED_OUT),
        (RuntimeError("[gloo/pair.cc:1] Connection closed by peer [127.0.0.1]"), ring.LOST),
        (ValueError("gloo timed out"), ring.FAILED),
        (SystemExit(75), ring.LEFT),
    ],
)
def test_how_a_process_ends(error: BaseException, how: int) -> None:
    assert end_of(error) == how


def collectives(rank: int, folder: str) -> list[tuple[str, tuple[int, ...], int]]:
    """Makes some, and gives what was noted of them."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    from gaudi3_scale.hangs.counter import watch_gradients
    from gaudi3_scale.hangs.start import begin

    os.environ[ring.FOLDER] = folder
    begin(rank, 2, 2)
    begin(rank, 2, 2)  # a strategy after the job itself
    tensor = torch.ones(4, 2)
    dist.all_reduce(tensor)
    dist.all_reduce(tensor, group=dist.group.WORLD, async_op=True).wait()
    dist.broadcast(tensor=torch.ones(3), src=0)
    dist.all_gather([torch.ones(5), torch.ones(5)], torch.ones(5))
    dist.reduce_scatter_tensor(torch.ones(2), torch.ones(4))
    dist.barrier(group=dist.new_group([0, 1]))
    model = DistributedDataParallel(torch.nn.Linear(2, 3))
    watch_gradients(model)
    with model.no_sync():
        model(tensor).sum().backward()
    model(tensor).sum().backward()
    found = ring.read(Path(folder) / f"{rank}.ring")
    assert found is not None and found.stacks
    return [(entry.operation, entry.shape, entry.state) for entry in found.entries]


def test_collectives_of_torch_and_ddp_are_noted(tmp_path: Path) -> None:
    expected = [
        ("all_reduce", (4, 2), ring.RETURNED),
        ("all_reduce", (4, 2), ring.LAUNCHED),
        ("broadcast", (3,), ring.RETURNED),
        ("all_gather", (5,), ring.RETURNED),
        ("reduce_scatter", (2,), ring.RETURNED),
        ("barrier", (), ring.RETURNED),
        (ring.OPERATIONS[ring.GRADIENTS], (9,), ring.LAUNCHED),
    ]
    notes = tmp_path / "notes"
    notes.mkdir()
    for found in ranks.run(2, tmp_path, collectives, str(notes)):
        assert [each for each in found if each in expected] == expected
        assert len([each for each in found if each[0] != "barrier"]) == len(expected) - 1


PROGRAM = """
    import ctypes, os, sys, time
    from pathlib import Path
    from gaudi3_scale.hangs import ring, stacks
    notes = ring.start(int(sys.argv[1]), 3, 3)
    if stacks.offer(Path(os.environ[ring.FOLDER]) / f"{sys.argv[1]}.stacks"):
        notes.gives_stacks()
    print("there", flush=True)
    ctypes.PyDLL(None).sleep(60) if sys.argv[1] == "1" else time.sleep(60)
"""


def test_a_launcher_reads_processes_that_are_stopped_or_blocked_and_waits_for_none(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": PACKAGES, ring.FOLDER: str(tmp_path)}
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM)]
    started = [
        subprocess.Popen([*command, str(rank)], env=environment, stdout=subprocess.PIPE, text=True) for rank in range(3)
    ]
    try:
        for process in started:
            assert process.stdout is not None and process.stdout.readline() == "there\n"
        started[2].send_signal(signal.SIGSTOP)
        time.sleep(0.2)
        began = time.monotonic()
        node, _, found = look(tmp_path)
        assert time.monotonic() - began < 5
        assert [view.process for view in node.views] == ["running", "running", "stopped"]
        assert set(found) == {0, 1} and all("File " in text for text in found.values())
        assert all((tmp_path / f"{rank}.ring").read_bytes()[112] for rank in range(3))
    finally:
        for process in started:
            process.kill()
            process.communicate()


def test_stacks_that_are_alike_are_shown_once() -> None:
    same = 'Current thread 0x{} (most recent call first):\n  File "a.py", line 3 in wait'
    text = stacks.grouped({0: same.format("1f"), 1: same.format("2e"), 2: "Thread 0x3: elsewhere"})
    assert text.startswith("ranks 0, 1\n") and "rank 2\n" in text and text.count("a.py") == 1


class Store:
    """That of two nodes, in one process."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def set(self, key: str, value: str) -> None:
        self.values[key] = value

    def peek(self, key: str) -> Any:
        return self.values.get(key)


def test_a_node_without_a_hang_answers_one_that_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[list[Verdict]] = [[], []]
    store = Store()
    watches = []
    for number in range(2):
        (tmp_path / str(number)).mkdir()
        watch = HangWatch(tmp_path / str(number), lambda verdict, job, number=number: said[number].append(verdict))  # type: ignore[misc]
        watch.begin(Meeting(store, number, 2, number == 0))
        monkeypatch.setattr(ring, "_current", None)
        notes = ring.start(number, 2, 1)
        assert notes is not None
        notes.group(0, "all", "all", range(2))
        notes.mark(ring.DATALOADER if number == 0 else ring.BACKWARD)
        if number == 1:
            notes.enter(0, 0, 1, (7,), ring.OPEN)
            time.sleep(1.5)
            notes.announce(ring.HUNG)
        watches.append(watch)
    deadline = time.monotonic() + 20
    while not all(said) and time.monotonic() < deadline:
        time.sleep(0.1)
    for watch in watches:
        watch.end()
    assert [[verdict.kind for verdict in each] for each in said] == [["loader"], ["loader"]]
    assert said[0][0].sentence == said[1][0].sentence and said[0][0].ranks == (0,)


@pytest.mark.parametrize(
    ("last_shape", "expected", "stays"),
    [((5,), ["shape"], 0.0), ((7,), [], 0.0), ((5,), ["shape"], 1.5), ((7,), [], 1.5)],
)
def test_a_node_whose_process_died_lets_the_others_know_what_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last_shape: tuple[int, ...], expected: list[str], stays: float
) -> None:
    """gloo ends a process by a signal where it is sent more than it expects; any other death is no hang."""
    monkeypatch.setattr(watch, "LINGER", 60.0)  # which the other one's question ends
    said: list[list[Verdict]] = [[], []]
    store = Store()
    watches = []
    for number in range(2):
        (tmp_path / str(number)).mkdir()
        node = HangWatch(tmp_path / str(number), lambda verdict, job, number=number: said[number].append(verdict))  # type: ignore[misc]
        node.begin(Meeting(store, number, 2, number == 0))
        watches.append(node)
        child = os.fork()
        if not child:
            notes = ring.start(number, 2, 1)
            assert notes is not None
            notes.group(0, "all", "all", range(2))
            for shape in [(7,), (9,)] * 4:
                notes.leave(notes.enter(0, 0, 1, shape, ring.OPEN))
            notes.enter(0, 0, 1, last_shape if number else (7,), ring.OPEN)
            if number:
                notes.announce(ring.LOST)
            os._exit(0)
        os.waitpid(child, 0)
    time.sleep(stays)  # until it is asked, having no hang of its own
    leaves = threading.Thread(target=lambda: watches[0].end(last=True))
    leaves.start()
    leaves.join(90)
    store.values = {}  # it was that node's
    watches[1].end(last=True)
    found = [[(verdict.kind, verdict.ranks) for verdict in each] for each in said]
    wanted = [(kind, (1,)) for kind in expected]
    assert found[1] == wanted
    assert found[0] in ([], wanted), "it may have been asked before it had ended"


def test_the_launcher_adds_it_to_the_status_and_passes_it_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "status.json"
    outcome = JobOutcome(path, own=False)
    path.write_text(json.dumps({"schema": 1, "state": "failed", "error": "timed out", "updated_at": time.time() + 1}))
    monkeypatch.setenv("GAUDI3_LAST_HANG", "")
    outcome.hang(Verdict("loader", "Rank 1 on n did not enter it.", True, (1,), ("n",)), tmp_path)
    assert capsys.readouterr().err == "gaudi3-launch: Rank 1 on n did not enter it.\n"
    status = StatusFile(path).read()
    assert status["error"] == (
        "Rank 1 on n did not enter it. Started again, the job resumes from its newest checkpoint."
    )
    assert 0 <= time.time() - status["hang"].pop("at") < 60
    assert status["hang"] == {
        "sentence": "Rank 1 on n did not enter it.", "kind": "loader", "certain": True, "ranks": [1], "nodes": ["n"],
    }  # fmt: skip
    outcome.pass_on_hang()
    assert json.loads(os.environ["GAUDI3_LAST_HANG"])["ranks"] == [1]
    path.write_text(json.dumps({"schema": 1, "state": "finished", "error": None, "updated_at": time.time() + 1}))
    outcome.end(0)
    status = StatusFile(path).read()
    assert status["state"] == "finished" and status["error"] is None and status["hang"] is not None


def test_folders_of_launchers_that_were_killed_are_removed_and_no_others(tmp_path: Path) -> None:
    names = [f"gaudi3-rings-{name}" for name in ("held", "left", "new")]
    for name in names:
        (tmp_path / name).mkdir()
    (tmp_path / "other").mkdir()
    hold(tmp_path / names[0])
    (tmp_path / names[1] / "launcher").touch()
    remove_left_behind(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [names[0], names[2], "other"]
