"""Whoever reaches the ports of a job's network sends it what they like, and nothing of it runs."""

from __future__ import annotations

import base64
import json
import pickle
import re
import signal
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import objects
import pytest
import ranks
import torch
from conftest import SOURCES, free_port, kill, wait_for
from torch.distributed import TCPStore
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.rendezvous import dynamic_rendezvous
from zygote import Client

from gaudi3_scale.checkpoint.manifest import Entry, Job, Manifest
from gaudi3_scale.checkpoint.saver import SaveFailedError
from gaudi3_scale.distributed import exchange
from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.interruption.notices import Notice
from gaudi3_scale.launch import rendezvous_state
from gaudi3_scale.launch.rendezvous_state import read_state


class Attack:
    """A pickle that makes a file when it is read."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return Path.touch, (self.marker,)


def state() -> Any:
    """A rendezvous that two nodes have joined and a third one waits for."""
    made: Any = dynamic_rendezvous._RendezvousState()
    one, two, three = (dynamic_rendezvous._NodeDesc(f"node{n}", 100 + n, n) for n in range(3))
    made.round, made.complete, made.deadline = 2, True, datetime(2026, 1, 1, tzinfo=UTC)
    made.participants, made.wait_list, made.redundancy_list = {one: 0, two: 1}, {three}, {two}
    made.last_heartbeats = {one: datetime(2026, 1, 2), two: datetime(2026, 1, 3, tzinfo=UTC)}
    return made


def test_a_signal_that_comes_while_the_state_is_read_is_no_fault_of_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    def told(values: Any, node: Any) -> None:
        raise SignalException("this process got signal: 15", signal.SIGTERM)

    monkeypatch.setattr(rendezvous_state, "_round", told)
    with pytest.raises(SignalException):
        read_state(pickle.dumps(state()))


@pytest.mark.parametrize("protocol", (pickle.DEFAULT_PROTOCOL, pickle.HIGHEST_PROTOCOL))
def test_a_state_of_the_rendezvous_comes_back_as_it_was(protocol: int) -> None:
    read = read_state(pickle.dumps(state(), protocol))
    assert type(read) is dynamic_rendezvous._RendezvousState and vars(read) == vars(state())


def odd(**fields: Any) -> bytes:
    """A state in which these fields are others."""
    made = state()
    vars(made).update(fields)
    return pickle.dumps(made)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"cos\nsystem\n(S'touch ran'\ntR.", "it refers to os.system"),
        (pickle.dumps(print, 4), "it refers to builtins.print"),
        (pickle.dumps([1]), "it is no state of a rendezvous"),
        (b"no pickle", "."),
        (b"", "."),
        (odd(more=1), "its fields are not those"),
        (odd(round=True), "it has a bool in place of a int"),
        (odd(deadline=5), "its deadline is no time"),
        (odd(participants={"node": 0}), "what it lists is no node"),
        (odd(participants={dynamic_rendezvous._NodeDesc(1, 2, 3): 0}), "a node's fields"),  # type: ignore[arg-type]
        (odd(last_heartbeats={dynamic_rendezvous._NodeDesc("a", 2, 3): "x"}), "neither a rank nor a time"),
        (b"c" + dynamic_rendezvous.__name__.encode() + b"\npickle.loads\n.", "it refers to"),
    ],
)
def test_what_is_no_state_of_the_rendezvous_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(pickle.UnpicklingError, match=reason):
        read_state(data)


def test_a_launcher_runs_nothing_that_stands_in_its_store_and_says_so(warm: Client, tmp_path: Path) -> None:
    port, marker, status = free_port(), tmp_path / "ran", tmp_path / "status.json"
    arguments = ["--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=c10d", "--rdzv-id=test", "--local-addr=127.0.0.1"]
    arguments += [f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-conf=is_host=true", f"--status={status}", "--say-ending"]
    launcher = warm.start("launch", [*arguments, "--no-python", "/bin/true"], {}, tmp_path / "log")
    try:
        store = TCPStore("127.0.0.1", port, is_master=False, wait_for_workers=False)
        key = "torch.rendezvous.test"
        wait_for(lambda: store.check([key]), "rendezvous", lambda: launcher.poll() is not None)
        hostile = base64.b64encode(pickle.dumps(Attack(marker)))
        while launcher.poll() is None and not marker.exists():
            store.set(key, hostile)
            time.sleep(0.1)
    except torch.distributed.DistError:
        pass  # the store went with the launcher
    finally:
        if marker.exists():
            kill(launcher.pid, signal.SIGKILL)
    assert not marker.exists()
    assert launcher.wait(60) == 1
    sentence = (
        rf"the rendezvous at 127\.0\.0\.1:{port} holds something that torchrun did not write there \(it refers to "
        r"pathlib[\w.]*\.Path\.touch\), and none of it was run: let only the job's nodes reach that port"
    )
    assert re.search(f"^gaudi3-launch: {sentence}", launcher.output(), re.MULTILINE), launcher.output()
    assert "Traceback" not in launcher.output()
    assert re.match(sentence, json.loads(status.read_text())["error"])


def test_objects_that_processes_send_each_other_come_back_as_they_were() -> None:
    entry = Entry(3, "ab")
    manifest = Manifest(1, "run", "sharded", {"a": entry}, ("a",), {"x": [1, 2.5, None]}, Job("0" * 16, ""), None)
    sent = (entry, manifest, Notice("SIGTERM", "why", 5.0), {"a", "b"}, {1: (b"bytes", float("inf"))}, None, True)
    assert exchange.loads(exchange.dumps(sent)) == sent
    tensor = exchange.loads(exchange.dumps({"random": torch.arange(5)}))["random"]
    assert torch.equal(tensor, torch.arange(5))
    for error in (TrainerError("a"), ConfigError("b"), SaveFailedError("c")):
        read = exchange.loads(exchange.dumps([error]))[0]
        assert type(read) is type(error) and str(read) == str(error)
    read = exchange.loads(exchange.dumps(OSError(28, "no space")))
    assert (read.errno, read.strerror) == (28, "no space")


def test_an_object_that_is_no_data_is_refused_on_all_ranks_alike() -> None:
    with pytest.raises(TrainerError, match=r"An object of type test_hostile_network\.Attack was to be sent"):
        exchange.loads(exchange.dumps(Attack(Path("/none"))))


def hostile_peer(rank: int, marker: Path) -> str:
    """What rank 0 says of a message of rank 1 that is a pickle, as all_gather_object would have it."""
    import torch.distributed as dist

    if rank:
        exchange.dumps = lambda value: pickle.dumps(Attack(marker))  # what another program would send
    try:
        return str(exchange.all_gather(rank, dist.group.WORLD))
    except TrainerError as error:
        return str(error)


def test_a_peer_that_sends_a_pickle_runs_nothing(tmp_path: Path) -> None:
    said = ranks.run(2, tmp_path, hostile_peer, tmp_path / "ran")
    assert not (tmp_path / "ran").exists()
    assert said[0].startswith("A process of the job sent a message that is no data of this job")


def test_the_trainer_asks_torch_for_no_exchange_that_unpickles() -> None:
    """What Lightning and torch.distributed.checkpoint would ask for fails in every job of the tests; see `objects`."""
    names = re.compile(r"(?<!def )\b(" + "|".join(sorted(objects.collectives())) + r")\(")
    found = [path.name for source in SOURCES for path in source.rglob("*.py") if names.search(path.read_text())]
    assert found == []
    assert {"all_gather_object", "gather_object", "broadcast_object_list", "scatter_object_list"} < {
        *objects.collectives()
    }


def exchanges(rank: int) -> tuple[Any, ...]:
    """What a rank gets by each way of sending an object, and what torch's own way does in the tests."""
    import torch.distributed as dist

    group = dist.group.WORLD
    said = exchange.broadcast(["a", Path("/b"), rank], 1)
    with pytest.raises(AssertionError, match="which unpickles what a peer sends"):
        dist.broadcast_object_list([rank])
    return said, exchange.gather("x" * (rank + 1), group, 1), exchange.scatter(["p", "qqq"] if rank else None, group, 1)


def test_objects_reach_the_ranks_they_are_for(tmp_path: Path) -> None:
    assert ranks.run(2, tmp_path, exchanges) == [
        (["a", Path("/b"), 1], None, "p"),
        (["a", Path("/b"), 1], ["x", "xx"], "qqq"),
    ]


def failing_plan(rank: int, folder: Path) -> str:
    """What rank 0 hears of a load that fails at rank 1."""
    import torch.distributed as dist

    from gaudi3_scale.checkpoint.manifest import DamagedCheckpointError
    from gaudi3_scale.checkpoint.tensors import read_tensors, write_tensors

    class Reader(torch.distributed.checkpoint.FileSystemReader):
        def prepare_local_plan(self, plan: Any) -> Any:
            if rank:
                raise DamagedCheckpointError("odd")
            return plan

    tensors = {"a": torch.arange(4.0)}
    write_tensors(tensors, torch.distributed.checkpoint.FileSystemWriter(folder), dist.group.WORLD)
    try:
        read_tensors(tensors, Reader(folder), dist.group.WORLD)
    except DamagedCheckpointError as damage:
        return str(damage)
    return "nothing"


def test_an_error_in_the_plans_of_a_sharded_checkpoint_is_everyones(tmp_path: Path) -> None:
    assert ranks.run(2, tmp_path, failing_plan, tmp_path / "saved") == ["odd", "odd"]
