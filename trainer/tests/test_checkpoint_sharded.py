"""Sharded checkpoints: exact, whole after the loss of a node's disk, and readable by another number of processes."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import ranks
import torch
import torch.distributed as dist
from training import Training, saver

from gaudi3_scale.checkpoint import CheckpointStore, peers, storage
from gaudi3_scale.checkpoint.peers import CheckpointPeers
from gaudi3_scale.checkpoint.resume import agree
from gaudi3_scale.checkpoint.store import BUILDING
from gaudi3_scale.errors import TrainerError

STEPS = 3


def node(folder: Path, rank: int) -> Path:
    """Every rank is a node of its own."""
    path = folder / f"node{rank}"
    path.mkdir(parents=True, exist_ok=True)
    return path


def train(rank: int, folder: Path, sharded: bool, copies: int = 2) -> Any:
    """Train, save after each step (asynchronously), train on; the losses and weights of the whole."""
    training, own = Training(sharded), CheckpointPeers.meet(node(folder, rank), 30)
    writer = saver(node(folder, rank) / "checkpoints", training, own, keep=2, copies=copies)
    for _ in range(STEPS):
        training.train(1)
        writer.save(training.done)
    losses = training.train(STEPS)
    assert writer.wait()
    return losses, training.weights(), sorted(p.name for p in writer.store.path(STEPS).iterdir())


def resume(rank: int, folder: Path, sharded: bool) -> Any:
    """Resume from whatever is there, and train as far as `train` does."""
    said: list[str] = []
    training, own = Training(sharded), CheckpointPeers.meet(node(folder, rank), 30)
    store = CheckpointStore(node(folder, rank) / "checkpoints", 2, said.append)
    found = agree(own.patient, store, log=said.append)
    if found is None:
        return None, None, said, []
    training.resume(found, own.patient)
    step = training.done
    weights = training.weights()
    losses = training.train(2 * STEPS - step)
    dist.is_initialized() and dist.barrier()
    return step, (weights, losses, training.weights()), said, sorted(p.name for p in found.path.iterdir())


def test_resumes_exactly_resharded_and_without_a_disk(tmp_path: Path) -> None:
    whole = ranks.run(2, tmp_path, train, tmp_path / "two", True)
    (losses, weights, files), (_, other, _) = whole
    assert weights == other
    # Each node has its own shard and a copy of the other's.
    assert files == [".metadata", "__0_0.distcp", "__1_0.distcp", "manifest.json", "state.safetensors"]
    assert CheckpointStore(node(tmp_path / "two", 1) / "checkpoints", 2).steps() == [2, 3]

    for step, (_, after_losses, after), said, _ in ranks.run(2, tmp_path, resume, tmp_path / "two", True):
        assert step == STEPS and said == []
        assert after_losses == losses and after == weights, "the same layout repeats to the bit"

    # A node lost its disk: everything is on the other one, and only what is needed comes back.
    shutil.rmtree(node(tmp_path / "two", 0))
    outcomes = ranks.run(2, tmp_path, resume, tmp_path / "two", True)
    assert [outcome[0] for outcome in outcomes] == [STEPS, STEPS]
    assert all(outcome[1][1] == losses and outcome[1][2] == weights for outcome in outcomes)
    assert outcomes[0][3] == [".metadata", "__0_0.distcp", "manifest.json", "state.safetensors"]

    # One process reads what two have written, from the disk that has all of it; and the other way round.
    alone = tmp_path / "alone"
    shutil.copytree(node(tmp_path / "two", 1), node(alone, 0), dirs_exist_ok=True)
    ((step, (restored, _, _), _, _),) = ranks.run(1, tmp_path, resume, alone, False)
    before = ranks.run(2, tmp_path, resume, tmp_path / "two", True)[0][1][0]
    assert step == STEPS and restored == before, "2 -> 1"

    ranks.run(1, tmp_path, train, tmp_path / "one", False)
    ((_, (single, _, _), _, _),) = ranks.run(1, tmp_path, resume, tmp_path / "one", False)
    outcomes = ranks.run(2, tmp_path, resume, tmp_path / "one", True)
    assert all(outcome[0] == STEPS and outcome[1][0] == single for outcome in outcomes), "1 -> 2"


def test_a_step_that_no_nodes_have_between_them_is_passed_over(tmp_path: Path) -> None:
    ranks.run(2, tmp_path, train, tmp_path, True, 1)  # no copies
    shard = node(tmp_path, 1) / "checkpoints" / "step-00000003" / "__1_0.distcp"
    shard.write_bytes(shard.read_bytes()[:-1])
    (step, _, said, _), (_, _, there, _) = ranks.run(2, tmp_path, resume, tmp_path, True)
    assert step == 2
    path = node(tmp_path, 0) / "checkpoints" / "step-00000003"
    assert said == [f"checkpoint {path} is damaged (__1_0.distcp is on no node) and is skipped"]
    assert there[0].startswith(f"checkpoint {shard.parent} is damaged (__1_0.distcp has ")


def fail_on_rank_1(rank: int, folder: Path, where: str) -> tuple[list[int], str]:
    """Rank 1's disk is full while step 2 is saved: who says what, and what is left."""
    training, own = Training(True), CheckpointPeers.meet(node(folder, rank), 30)
    writer = saver(node(folder, rank) / "checkpoints", training, own)
    training.train(1)
    writer.save(1)
    assert writer.wait()
    if rank == 1:
        write = storage.HashingFile.write

        def full(file: Any, data: Any) -> int:
            if str(file._file.name).endswith(where):
                raise OSError(errno.ENOSPC, "No space left on device")
            return write(file, data)

        storage.HashingFile.write = full  # type: ignore[method-assign]
    training.train(1)
    writer.save(2)
    words = "no error"
    try:
        writer.wait()
    except TrainerError as error:
        words = str(error)
    left = [path.name for path in writer.store.directory.iterdir() if not path.name.startswith("step-")]
    assert left == [], "a failed save gives its room back"
    return writer.store.steps(), words


def test_a_full_disk_on_one_node_is_known_to_all_and_commits_nothing(tmp_path: Path) -> None:
    for where in (".distcp", ".distcp.part", "state.safetensors"):  # its shard, the copy of the other's, the rest
        folder = tmp_path / where
        for steps, words in ranks.run(2, tmp_path, fail_on_rank_1, folder, where):
            assert steps == [1], where
            assert words.startswith("The checkpoint of step 2 could not be written to ")
            assert words.endswith(
                "(No space left on device): give the disk room or output_dir another place; started again, the job "
                "resumes from step 1."
            )


def die(rank: int, folder: Path, who: int, where: str) -> None:
    """All ranks end by SIGKILL while step 2 is saved: the first at a point of the commit, the others after it."""
    training, own = Training(True), CheckpointPeers.meet(node(folder, rank), 30)
    writer = saver(node(folder, rank) / "checkpoints", training, own)
    training.train(1)
    writer.save(1)
    assert writer.wait()

    def end(*arguments: Any, **named: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    if rank == who:
        if where == "copy":
            peers.CheckpointPeers.exchange = end  # type: ignore[method-assign]
        else:
            setattr(CheckpointStore, where, end)
    training.train(1)
    writer.save(2)
    with contextlib.suppress(TrainerError, RuntimeError):  # said by the other rank, or by gloo
        writer.wait()
    end()


def test_a_kill_between_the_phases_of_the_commit_loses_no_committed_step(tmp_path: Path) -> None:
    _, weights, _ = ranks.run(2, tmp_path, train, tmp_path / "whole", True)[0]
    # From `prepare` on the other node has everything, its own shard and the copy: it finishes the step when it resumes.
    for who, where, expected in ((0, "copy", 1), (1, "prepare", 2), (0, "commit", 2), (1, "commit", 2)):
        folder = tmp_path / f"{where}{who}"
        ranks.run(2, tmp_path, die, folder, who, where, killed=True)
        for step, (_, _, after), said, _ in ranks.run(2, tmp_path, resume, folder, True):
            assert (step, said) == (expected, []) and after == weights, f"{where} of rank {who}"
        left = [path.name for path in (folder / f"node{who}" / "checkpoints").iterdir()]
        assert not any(name.startswith(BUILDING) for name in left)


def elsewhere(rank: int, folder: Path) -> Any:
    """Four ranks at two places; the copies of a file of each, and the waves to three places that lack it."""
    own = CheckpointPeers.meet(node(folder, rank // 2), 30)
    from gaudi3_scale.checkpoint import Entry

    owners = {f"f{r}": (r, Entry(1, "")) for r in range(4)}
    copies = [(t.name, t.source, t.target) for t in own.copies(owners, 2)]
    spread = own.spread({0: {"a"}}, {1: {"a"}, 2: {"a"}, 3: {"a"}}, {"a": Entry(1, "")})
    return own.places, own.writer, copies, [[(t.source, t.target) for t in wave] for wave in spread]


def test_places_are_found_and_copies_go_to_the_next_one(tmp_path: Path) -> None:
    outcomes = ranks.run(4, tmp_path, elsewhere, tmp_path)
    assert [outcome[0] for outcome in outcomes] == [[0, 0, 2, 2]] * 4
    assert [outcome[1] for outcome in outcomes] == [True, False, True, False]
    assert outcomes[0][2] == [("f0", 0, 2), ("f1", 1, 3), ("f2", 2, 0), ("f3", 3, 1)]
    assert outcomes[0][3] == [[(0, 1)], [(0, 2), (1, 3)]], "whoever has a file passes it on"


def test_a_staged_shard_is_a_copy(tmp_path: Path) -> None:
    assert ranks.run(2, tmp_path, staged) == [(True, True, True)] * 2


def staged(rank: int) -> tuple[bool, bool, bool]:
    """A DTensor's staged copy: equal, of the same layout, in memory that is used again."""
    from torch.distributed.tensor import DTensor

    from gaudi3_scale.checkpoint.staging import Staging

    tensors, _ = (snapshot := Training(True).snapshot(0)).tensors, snapshot.shared
    staging = Staging()
    first = staging.stage(tensors)
    second = staging.stage(tensors)
    name = "model.0.weight"
    one, two, live = first[name], second[name], tensors[name]
    assert isinstance(one, DTensor) and isinstance(two, DTensor) and isinstance(live, DTensor)
    same = torch.equal(one.to_local(), live.to_local()) and one.placements == live.placements
    apart = one.to_local().data_ptr() != live.to_local().data_ptr()
    return same, apart, one.to_local().data_ptr() == two.to_local().data_ptr()
