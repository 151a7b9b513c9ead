"""A node that leaves when all have met, and before the processes start: the others meet again, without it."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest
from torch.distributed import DistStoreError, PrefixStore, TCPStore  # type: ignore[attr-defined]
from torch.distributed.elastic.agent.server.api import WorkerSpec
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
from torch.distributed.elastic.rendezvous import dynamic_rendezvous
from torch.distributed.elastic.rendezvous.api import RendezvousInfo, RendezvousStoreInfo
from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend

from gaudi3_scale import internals
from gaudi3_scale import meeting_store as meeting
from gaudi3_scale.launch import rendezvous_state


class Meetings:
    """A rendezvous of a store of its own, whose rounds have so many nodes; only this one writes anything."""

    def __init__(self, *sizes: int) -> None:
        self.sizes = list(sizes)
        self.store: Any = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, timeout=timedelta(seconds=9))

    def get_run_id(self) -> str:
        return "test"

    def get_backend(self) -> str:
        return "test"

    def next_rendezvous(self) -> RendezvousInfo:
        number = len(self.sizes)
        store = PrefixStore(f"round{number}", self.store)
        return RendezvousInfo(store, 0, self.sizes.pop(0), RendezvousStoreInfo("127.0.0.1", 29500))


def agent(handler: Any) -> Any:
    spec = WorkerSpec("default", 2, handler, entrypoint=print, monitor_interval=0.1)
    return internals.watched_agent()(spec, DefaultLogsSpecs())


@pytest.fixture(autouse=True)
def briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meeting, "MEETING_SECONDS", 0.3)


def test_the_others_meet_again(capsys: pytest.CaptureFixture[str]) -> None:
    meetings = Meetings(2, 2, 1)
    node = agent(meetings)
    group = node.get_worker_group()
    node._rendezvous(group)
    assert [worker.world_size for worker in group.workers] == [2, 2] and group.group_world_size == 1
    said = capsys.readouterr().err.splitlines()
    assert said == ["gaudi3-launch: a node left while the nodes met: they meet again"] * 2
    assert meetings.store.timeout == timedelta(seconds=9), "processes wait as long as they were given"


def test_they_do_not_meet_for_ever() -> None:
    meetings = Meetings(*[2] * 9)
    node = agent(meetings)
    with pytest.raises(DistStoreError):
        node._rendezvous(node.get_worker_group())
    assert len(meetings.sizes) == 9 - internals.MEETINGS


@pytest.mark.parametrize("where", ["participants", "wait_list", "redundancy_list"])
@pytest.mark.parametrize("is_late", [False, True])
def test_a_node_that_leaves_is_on_no_list(where: str, is_late: bool) -> None:
    """As one that is listed as waiting, it had the others stop every second, until its heartbeat was missed.

    One whose own heartbeat is late takes itself for gone already, and left the lists as they were.
    """
    store: Any = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)

    def handler() -> Any:
        backend = C10dRendezvousBackend(store, "test")
        return dynamic_rendezvous.DynamicRendezvousHandler.from_backend("test", store, backend, 2, 2)

    def add(context: Any, deadline: float) -> Any:
        listed = context.node in getattr(context.state, where)
        return actions.FINISH if listed else getattr(actions, f"ADD_TO_{where.upper()}")

    def lists() -> tuple[Any, ...]:
        other.num_nodes_waiting()  # reads the state
        state = other._state_holder.state
        return [*state.participants], state.wait_list, state.redundancy_list, [*state.last_heartbeats]

    actions: Any = dynamic_rendezvous._Action
    leaves, other = handler(), handler()
    leaves._op_executor.run(add, time.monotonic() + 10)
    assert sum(len(each) for each in lists()) == 2
    if is_late:
        state = leaves._state_holder.state
        state.last_heartbeats[leaves._this_node] -= timedelta(hours=1)
        leaves._state_holder.mark_dirty()
        leaves._state_holder.sync()
    agent(leaves).leave_rendezvous()
    found = rendezvous_state.read_state(C10dRendezvousBackend(store, "test").get_state()[0])
    assert ([*found.participants], found.wait_list, found.redundancy_list) == ([], set(), set())
    if not is_late:
        time.sleep(1.1)  # for which a state is kept
        assert lists() == ([], set(), set(), [])
