"""How processes find each other and who writes."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch.distributed as dist

from gaudi3_scale.distributed.process_group import Topology, fresh_name
from gaudi3_scale.errors import ConfigError, TrainerError


def names(store: Any, size: int) -> list[str]:
    """What each rank of one start gets."""
    found: dict[int, str] = {}
    threads = [
        threading.Thread(target=lambda rank=rank: found.update({rank: fresh_name(store, rank, size, 10)}))
        for rank in reversed(range(size))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[rank] for rank in range(size)]


def test_restarted_processes_agree_on_a_name_that_their_dead_predecessors_did_not_have() -> None:
    store = dist.HashStore()  # type: ignore[attr-defined]
    store.set("gaudi3/ask/2", "of one that died asking")
    first, second = names(store, 4), names(store, 4)
    assert len(set(first)) == len(set(second)) == 1
    assert first[0] != second[0]


def test_a_process_that_does_not_come_up_is_not_waited_for_longer_than_agreed() -> None:
    with pytest.raises(TrainerError, match=r"^Not all 2 processes came up within 0.1 s: look at "):
        fresh_name(dist.HashStore(), 0, 2, 0.1)  # type: ignore[attr-defined]


def test_the_topology_is_torchruns(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert Topology.from_environment() == Topology(0, 0, 1, 1)
    for name, value in {"RANK": "5", "LOCAL_RANK": "1", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "4"}.items():
        monkeypatch.setenv(name, value)
    assert Topology.from_environment() == Topology(5, 1, 8, 4)
    assert Topology.from_environment().nodes == 2
    monkeypatch.setenv("WORLD_SIZE", "7")
    with pytest.raises(ConfigError, match=r"^7 processes in all are no multiple of the 4 on this node: "):
        Topology.from_environment()
    monkeypatch.delenv("LOCAL_RANK")
    with pytest.raises(ConfigError, match=r"^RANK is set, but not all of LOCAL_RANK, WORLD_SIZE and "):
        Topology.from_environment()
