"""Nodes that leave or are lost: a spare takes their place, or the others go on with the same batches."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import assert_same, free_port, kill, wait_for, workers
from killing import SETTINGS
from zygote import Client, Started

QUICK = "--rdzv-conf=keep_alive_interval=1,keep_alive_max_attempt=2,last_call_timeout=1,is_host="
STEPS = 40


class Cluster:
    """Nodes with one process each and a folder of their own, under launchers that replace what is lost."""

    def __init__(self, client: Client, folder: Path, text: Path, nnodes: str, *settings: str) -> None:
        self.client, self.folder, self.nnodes = client, folder, nnodes
        self.settings = (*SETTINGS, f"data.source={text}", f"train.max_steps={STEPS}", *settings)
        self.port = free_port()
        folder.mkdir()

    def start(self, node: int, **environment: str) -> Started:
        """Start a node's launcher; node 0 has the rendezvous."""
        here = self.folder / f"node{node}"
        here.mkdir(exist_ok=True)
        arguments = ["--replace", f"--status={here / 'status.json'}", f"--nnodes={self.nnodes}", "--nproc-per-node=1"]
        arguments += ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{self.port}", "--rdzv-id=test"]
        arguments += [QUICK + str(node == 0).lower(), "--max-restarts=1", "--monitor-interval=0.1", "--no-python"]
        arguments += ["gaudi3-train", "fit", *self.settings, f"output_dir={here}"]
        return self.client.start("launch", arguments, environment, self.folder / f"log{node}")

    def status(self, node: int) -> dict[str, Any]:
        """The content of status.json; empty before there is one."""
        path = self.folder / f"node{node}" / "status.json"
        status: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return status

    def losses(self, node: int) -> list[tuple[int, float]]:
        """Step and loss."""
        lines = (self.folder / f"node{node}" / "metrics.jsonl").read_text().splitlines()
        return [(line["step"], line["loss"]) for line in map(json.loads, lines)]

    def state(self, node: int) -> Any:
        """The content of the last checkpoint."""
        from gaudi3_scale.checkpoint.fetch import read_all

        return read_all(self.folder / f"node{node}" / "checkpoints" / f"step-{STEPS:08d}")


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """What starts the jobs."""
    client = Client()
    yield client
    client.close()


@pytest.fixture(scope="module")
def whole(client: Client, text: Path, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    """Two nodes to which nothing happened."""
    cluster = Cluster(client, tmp_path_factory.mktemp("elastic") / "whole", text, "2")
    for node in [cluster.start(0), cluster.start(1)]:
        assert node.wait(120) == 0, node.output()
    return cluster


def held(folder: Path, step: int) -> dict[str, str]:
    """Have rank 1 wait in a step until `go` is there."""
    return {"PAUSE_IN": str(folder), "PAUSE_PHASE": "forward", "PAUSE_STEP": str(step), "PAUSE_RANKS": "1"}


def test_a_spare_waits_and_takes_the_place_of_a_node_that_is_told_to_leave(
    client: Client, whole: Cluster, text: Path, tmp_path: Path
) -> None:
    cluster = Cluster(client, tmp_path / "job", text, "2")
    first = cluster.start(0, **held(cluster.folder, 7))
    second = cluster.start(1, **held(cluster.folder, 7))
    wait_for(lambda: (cluster.folder / "paused-1").exists(), "step 7", lambda: first.poll() is not None)
    spare = cluster.start(2)
    last = next(n for n in (0, 1) if "RANK=1" in environment(workers([first, second][n].pid)[0]))
    if last == 0:
        pytest.skip("the node with the rendezvous came second, and cannot be the one that leaves")
    wait_for(lambda: "rendezvous" in spare.output().lower() or True, "the spare")
    kill(second.pid, signal.SIGTERM)
    (cluster.folder / "go").touch()
    assert second.wait(60) == 75, second.output()
    assert (first.wait(120), spare.wait(120)) == (0, 0), first.output() + spare.output()
    assert cluster.status(1)["state"] == "interrupted" and cluster.status(1)["checkpoint_step"] >= 7
    assert cluster.status(0)["resumed_from_step"] == cluster.status(2)["resumed_from_step"] >= 7
    assert cluster.losses(0) == cluster.losses(2) == whole.losses(0)
    assert_same(cluster.state(2), whole.state(0))


def environment(pid: int) -> list[str]:
    """Of a process, as it is now."""
    return Path(f"/proc/{pid}/environ").read_text().split("\0")
