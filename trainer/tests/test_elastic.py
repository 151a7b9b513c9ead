"""Nodes that leave or are lost: a spare takes their place, or the others go on with the same batches."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import assert_same, free_port, kill, wait_for, workers
from killing import SETTINGS
from zygote import Client, Started

from gaudi3_scale.config import Config, load
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.job.elastic import batch, same_batch

QUICK = "--rdzv-conf=last_call_timeout=1,is_host="
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

    def held(self, step: int) -> dict[str, str]:
        """Have rank 1, which is node 1, wait in a step until `go` is there."""
        return {"PAUSE_IN": str(self.folder), "PAUSE_PHASE": "forward", "PAUSE_STEP": str(step), "PAUSE_RANKS": "1"}

    def take(self, node: Started, killed: bool) -> None:
        """Reclaim a node: with a signal to its launcher, or all at once."""
        for pid in [*workers(node.pid), node.pid] if killed else [node.pid]:
            kill(pid, signal.SIGKILL if killed else signal.SIGTERM)
        time.sleep(0.2)  # the notice is heard while the step lasts
        (self.folder / "go").touch()

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
def whole(client: Client, text: Path, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    """Two nodes to which nothing happened, and a spare that was not needed."""
    cluster = Cluster(client, tmp_path_factory.mktemp("elastic") / "whole", text, "2")
    held = cluster.held(7)
    nodes = [cluster.start(0, **held), cluster.start(1, **held)]
    wait_for(lambda: (cluster.folder / "paused-1").exists(), "step 7", lambda: nodes[0].poll() is not None)
    nodes.append(cluster.start(2))
    (cluster.folder / "go").touch()
    for node in nodes:
        assert node.wait(120) == 0, node.output()
    return cluster


def test_a_spare_that_is_not_needed_ends_with_the_others_and_says_so(whole: Cluster) -> None:
    assert whole.status(0)["state"] == whole.status(1)["state"] == "finished"
    assert whole.status(2)["state"] == "spare"


@pytest.mark.parametrize("way", ["is told to leave", "is killed"])
def test_a_spare_takes_the_place_of_a_node_that(
    way: str, client: Client, whole: Cluster, text: Path, tmp_path: Path
) -> None:
    cluster = Cluster(client, tmp_path / "job", text, "2")
    held = cluster.held(7)
    first, second = cluster.start(0, **held), cluster.start(1, **held)
    wait_for(lambda: (cluster.folder / "paused-1").exists(), "step 7", lambda: first.poll() is not None)
    spare = cluster.start(2)
    cluster.take(second, killed=way == "is killed")
    assert (first.wait(120), spare.wait(120)) == (0, 0), first.output() + spare.output()
    if way == "is killed":
        assert second.wait(10) == -9
    else:
        assert second.wait(10) == 75, second.output()
        assert cluster.status(1)["state"] == "interrupted"
        assert cluster.status(0)["resumed_from_step"] == cluster.status(1)["step"] == 7  # not a step is lost
    assert cluster.status(0)["resumed_from_step"] == cluster.status(2)["resumed_from_step"]
    assert cluster.losses(0) == cluster.losses(2) == whole.losses(0)
    assert_same(cluster.state(2), whole.state(0))


def test_fewer_nodes_go_on_with_the_same_samples_in_each_step(
    client: Client, whole: Cluster, text: Path, tmp_path: Path
) -> None:
    cluster = Cluster(client, tmp_path / "job", text, "1:2")
    held = cluster.held(7)
    first, second = cluster.start(0, **held), cluster.start(1, **held)
    wait_for(lambda: (cluster.folder / "paused-1").exists(), "step 7", lambda: first.poll() is not None)
    cluster.take(second, killed=False)
    assert second.wait(60) == 75, second.output()
    assert first.wait(120) == 0, first.output()
    assert "1 process(es) instead of 2: accumulating 4 micro-batches instead of 2, so that " in first.output()
    status = cluster.status(0)
    assert (status["state"], status["resumed_from_step"], status["world_size"]) == ("finished", 7, 1)
    assert status["tokens"] == whole.status(0)["tokens"]
    for (step, loss), (other, expected) in zip(cluster.losses(0), whole.losses(0), strict=True):
        assert step == other and loss == pytest.approx(expected, rel=1e-4)


def about(config: Config, world_size: int, **more: object) -> dict[str, object]:
    """What the manifest of a job's first checkpoint says."""
    train = config.train
    samples = train.micro_batch_size * train.accumulation_steps * world_size
    return {"samples_per_step": samples, "world_size": world_size, "batch": batch(config), **more}


@pytest.mark.parametrize(
    ("before", "now", "accumulation"), [(4, 4, 2), (4, 2, 4), (4, 1, 8), (4, 8, 1), (2, 1, 4), (6, 4, 3)]
)
def test_accumulation_makes_up_for_processes(before: int, now: int, accumulation: int) -> None:
    config = load(None, ["train.micro_batch_size=6", "train.accumulation_steps=2"])
    assert same_batch(config, about(config, before), now) == accumulation


def test_a_second_change_still_knows_what_the_first_start_took() -> None:
    config = load(None, ["train.micro_batch_size=6"])
    manifest = {**about(config, 4), "world_size": 2}  # saved by two processes, begun by four
    assert same_batch(config, manifest, 2) == 2
    assert same_batch(config, manifest, 4) == 1


def test_a_configuration_that_asks_for_another_batch_gets_it() -> None:
    config = load(None, ["train.micro_batch_size=6"])
    changed = load(None, ["train.micro_batch_size=3"])
    assert same_batch(changed, about(config, 4), 4) == changed.train.accumulation_steps


def test_what_cannot_be_shared_out_is_refused_in_one_sentence() -> None:
    config = load(None, ["train.micro_batch_size=6"])
    with pytest.raises(ConfigError) as caught:
        same_batch(config, about(config, 4), 3)
    assert str(caught.value) == (
        "The job took 24 samples per step with 4 process(es), which 3 with train.micro_batch_size=6 cannot, as 18 at a "
        "time do not divide it: use another number of processes, or set train.micro_batch_size to a divisor of 8."
    )
    with pytest.raises(ConfigError, match=r"which 5 cannot share evenly: use a number of processes that divides it\.$"):
        same_batch(config, about(config, 4), 5)
