"""A job's nodes take nobody for one of them who has not the job's secret, and a stranger does not keep them apart."""

from __future__ import annotations

import ast
import pickle
import re
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import ranks
from conftest import ROOT, SOURCE, free_port, kill, wait_for
from torch.distributed import TCPStore
from torch.distributed.elastic.rendezvous import RendezvousParameters, dynamic_rendezvous
from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import create_backend
from zygote import Client

from gaudi3_scale import membership, secret
from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.meeting_store import MeetingStore, Seal
from gaudi3_scale.membership import ANSWER, KNOCKS, PREFIX, Doorkeeper, Membership, SealedBackend

OURS, THEIRS = b"o" * 32, b"t" * 32
SAID = "somebody without this job's secret writes into the rendezvous, or repeats what was written earlier"


@pytest.fixture
def store() -> Any:
    return TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)


def node(store: Any, said: list[str] | None = None, key: bytes = OURS) -> SealedBackend:
    return SealedBackend(store, key, "job", (said if said is not None else []).append)


def parameters(store: Any, hosts: bool) -> RendezvousParameters:
    endpoint = f"127.0.0.1:{store.port}" if store is not None else "127.0.0.1:0"
    return RendezvousParameters("c10d", endpoint, "job", 1, 2, is_host=hosts)


def test_the_state_of_one_node_is_that_of_the_others(store: Any) -> None:
    one, two = node(store), node(store)
    assert one.get_state() is None
    first = one.set_state(b"1")
    assert first is not None and first[0] == b"1" and first[2]
    found = two.get_state()
    assert found is not None and found[0] == b"1"
    assert two.set_state(b"2", found[1]) == (b"2", store.get(PREFIX + "job"), True)
    late = one.set_state(b"3", first[1])
    assert late is not None and (late[0], late[2]) == (b"2", False), "of two who write at a time one does"


def by_another_secret(store: Any) -> None:
    store.set(PREFIX + "job", node(store, key=THEIRS)._sealed(b"theirs"))


def by_torch(store: Any) -> None:
    store.set(PREFIX + "job", pickle.dumps(dynamic_rendezvous._RendezvousState()))


def deleted(store: Any) -> None:
    store.delete_key(PREFIX + "job")


def replayed(store: Any) -> None:
    store.set(PREFIX + "job", EARLIER[-1])


EARLIER: list[bytes] = []
FORGED = [by_another_secret, by_torch, deleted, replayed, lambda store: store.set(PREFIX + "job", "no seal")]


@pytest.mark.parametrize("forge", FORGED)
def test_what_a_stranger_writes_is_passed_over_and_put_back(store: Any, forge: Callable[[Any], None]) -> None:
    said: list[str] = []
    one, two = node(store, said), node(store, said)
    held = one.set_state(b"1")
    EARLIER[:] = [store.get(PREFIX + "job")]
    assert held is not None
    held = one.set_state(b"2", held[1])
    assert held is not None and two.get_state() == held[:2]
    forge(store)
    found = two.get_state()
    assert found is not None and found[0] == b"2" and store.get(PREFIX + "job") == found[1], "it was put back"
    forge(store)
    written = one.set_state(b"3", held[1])
    assert written is not None and written[0] in (b"2", b"3")
    if not written[2]:  # what was there had another token
        written = one.set_state(b"3", written[1])
    assert written is not None and written[0] == b"3" and written[2]
    assert two.get_state() == written[:2]
    assert all(line.startswith(SAID) for line in said) and bool(said) == (forge is not deleted)


@pytest.mark.parametrize("forge", [by_another_secret, by_torch, lambda store: store.set(PREFIX + "job", b"\xff\xfe")])
def test_a_stranger_who_was_first_is_passed_over(store: Any, forge: Callable[[Any], None]) -> None:
    forge(store)
    one = node(store)
    assert one.get_state() is None
    written = one.set_state(b"1")
    assert written is not None and written[0] == b"1" and written[2]
    found = node(store).get_state()
    assert found is not None and found[0] == b"1"


def test_nodes_that_meet_tell_each_other_nothing_that_a_stranger_can_say(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    met = {dynamic_rendezvous._NodeDesc("a", 1, 0): 0, dynamic_rendezvous._NodeDesc("b", 2, 0): 1}
    ours = Membership(OURS)
    ours._key = b"start"
    here = MeetingStore(store, seal=ours.seal_of(1, met))
    here.set("MASTER_ADDR", "10.0.0.1")
    assert MeetingStore(store, seal=ours.seal_of(1, dict(reversed(met.items())))).get("MASTER_ADDR") == b"10.0.0.1"
    here.multi_set(["x", "y"], ["1", b"2"])
    assert here.multi_get(["x", "y"]) == [b"1", b"2"]
    monkeypatch.setattr("gaudi3_scale.meeting_store.MEETING_SECONDS", 0.1)
    sealed = store.get("MASTER_ADDR")
    others = [ours.seal_of(2, met), ours.seal_of(1, {**met, dynamic_rendezvous._NodeDesc("c", 3, 0): 2}), Seal(THEIRS)]
    for other in others:
        with pytest.raises(Exception, match="nobody wrote MASTER_ADDR"):
            MeetingStore(store, seal=other).get("MASTER_ADDR")
    for name, value in (("MASTER_ADDR", b"10.0.0.66"), ("MASTER_PORT", sealed), ("MASTER_ADDR", sealed[:-1])):
        store.set(name, value)
        with pytest.raises(Exception, match="nobody wrote"):
            here.get(name)


def test_a_node_joins_whose_host_proves_itself(store: Any) -> None:
    host = Membership(OURS)
    _, served = host.join(create_backend, parameters(None, hosts=True))
    joining = Membership(OURS)
    joining.join(create_backend, parameters(served, hosts=False))
    assert joining._key == host._key
    again = Membership(OURS)
    again.join(create_backend, parameters(None, hosts=True))
    assert again._key != host._key, "what was sealed at an earlier start is worth nothing"


def test_a_node_does_not_join_a_host_without_the_secret(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(membership, "PROOF_SECONDS", 0.4)
    said: list[str] = []
    Doorkeeper(THEIRS, b"job", "0" * 32, said.append).watch(store)
    with pytest.raises(TrainerError, match=r"at 127\.0\.0\.1:\d+ did not prove within 0 s that it has this job's"):
        Membership(OURS).join(create_backend, parameters(store, hosts=False))
    wait_for(lambda: bool(said), "refusal", lambda: False)
    assert said == ["somebody without this job's secret asks to join it, and is refused"]


def test_an_answer_that_was_heard_before_lets_nobody_in(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(membership, "PROOF_SECONDS", 0.4)
    Doorkeeper(OURS, b"job", "0" * 32, print).answer(
        store, b"a." + secret.proof(OURS, b"knock", b"job", b"a").hex().encode()
    )
    heard = store.get(ANSWER + "a")

    def replay() -> None:
        while thread.is_alive() and not store.check([KNOCKS + "job"]):
            time.sleep(0.01)
        store.set(ANSWER + store.get(KNOCKS + "job").decode().partition(".")[0], heard)

    thread = threading.main_thread()
    threading.Thread(target=replay, daemon=True).start()
    with pytest.raises(TrainerError, match="did not prove"):
        Membership(OURS).join(create_backend, parameters(store, hosts=False))


@pytest.mark.parametrize(
    ("text", "mode", "reason"),
    [
        ("0" * 63, 0o600, "is not one line of 64 digits"),
        ("A" * 64, 0o600, "is not one line of 64 digits"),
        ("0" * 64, 0o644, "has mode 0644, with which every user reaches it"),
        (None, 0, "cannot be read"),
    ],
)
def test_a_file_that_is_no_secret_is_refused(text: str | None, mode: int, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "secret"
    if text is not None:
        path.write_text(text)
        path.chmod(mode)
    with pytest.raises(ConfigError, match=reason):
        secret.read_secret(path)


def a_secret(folder: Path, letter: str) -> Path:
    path = folder / f"secret-{letter}"
    path.write_text(letter * 64 + "\n")
    path.chmod(0o640)
    return path


def test_two_nodes_meet_and_a_stranger_is_no_node_of_theirs(warm: Client, tmp_path: Path) -> None:
    """With room for a third node, a launcher without the secret and one with another do not get in."""
    port, script = free_port(), tmp_path / "worker.py"
    script.write_text(
        "import os, sys, torch.distributed as dist\n"
        "from gaudi3_scale.distributed.process_group import ProcessGroup, Topology\n"
        "from gaudi3_scale.hpu.device import Device\n"
        "process_group = ProcessGroup(Topology.from_environment(), Device('cpu', 0, 'gloo'), 60)\n"
        f"open({str(tmp_path)!r} + '/' + sys.argv[1] + '-' + os.environ['RANK'], 'w').write(os.environ['WORLD_SIZE'])\n"
        "process_group.close()\n"
    )

    def start(name: str, hosts: bool, *more: str) -> Any:
        arguments = ["--nnodes=2:3", "--nproc-per-node=1", "--rdzv-backend=c10d", "--rdzv-id=test", *more]
        arguments += [f"--rdzv-conf=is_host={str(hosts).lower()},last_call_timeout=2", "--local-addr=127.0.0.1"]
        arguments += [f"--rdzv-endpoint=127.0.0.1:{port}", "--no-python", str(script), name]
        return warm.start("launch", arguments, {}, tmp_path / f"{name}.log")

    ours, other = f"--secret-file={a_secret(tmp_path, 'a')}", f"--secret-file={a_secret(tmp_path, 'b')}"
    started = [start("head", True, ours)]
    strangers = [start("bare", False), start("other", False, other)]
    try:
        knocked = "asks to join it, and is refused"
        wait_for(lambda: knocked in started[0].output(), "refusal", lambda: started[0].poll() is not None)
        started.append(start("node", False, ours))
        assert [each.wait(60) for each in started] == [0, 0], started[0].output() + started[1].output()
    finally:
        for each in (*started, *strangers):
            if each.poll() is None:
                kill(each.pid, signal.SIGKILL)
    ran = {path.name: path.read_text() for path in tmp_path.glob("*-[0-9]")}
    assert sorted(ran.values()) == ["2", "2"] and {name.partition("-")[0] for name in ran} == {"head", "node"}
    assert "a" * 64 not in started[0].output() + started[1].output()


def taken_rank(rank: int, ours: Path, theirs: Path) -> str:
    """What a rank says whose peer has another secret."""
    import os

    os.environ[secret.SECRET_FILE] = str(theirs if rank else ours)
    try:
        secret.proven_group()
    except TrainerError as error:
        return str(error)
    return "proven"


def test_a_rank_that_a_stranger_took_is_refused(tmp_path: Path) -> None:
    said = ranks.run(2, tmp_path, taken_rank, a_secret(tmp_path, "a"), a_secret(tmp_path, "b"))
    assert said[0].startswith("Rank 1 of 2 did not prove to rank 0 that it belongs to this job")
    assert said[1].startswith("Rank 0 of 2 did not prove to rank 1")
    assert ranks.run(2, tmp_path, taken_rank, *[a_secret(tmp_path, "a")] * 2) == ["proven", "proven"]


def test_every_process_group_of_the_package_is_proven() -> None:
    """A new place that makes a group has to ask its ranks, too."""
    asked = []
    for path in sorted([*SOURCE.rglob("*.py"), *(ROOT / "benchmark-tool" / "src").rglob("*.py")]):
        if "planning" in path.parts:  # which makes groups of one process
            continue
        for function in ast.walk(ast.parse(path.read_text())):
            if not isinstance(function, ast.FunctionDef):
                continue
            text = ast.unparse(function)
            if re.search(r"\b(init_process_group|new_group)\(", text):
                assert re.search(r"\bprove\(", text), f"{path.name}: {function.name} makes a group that is not proven"
                asked.append(path.name)
    assert {"process_group.py", "strategies.py", "export.py", "secret.py"} <= set(asked)
