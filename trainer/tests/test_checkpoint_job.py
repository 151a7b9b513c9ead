"""Checkpoints know whose they are: jobs under one target neither take nor delete each other's."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import ranks
from conftest import Job
from test_checkpoint_sharded import node
from training import Training, saver

from gaudi3_scale.checkpoint import CheckpointStore
from gaudi3_scale.checkpoint.identity import key_of, remember, settle
from gaudi3_scale.checkpoint.peers import CheckpointPeers
from gaudi3_scale.checkpoint.resume import agree
from gaudi3_scale.checkpoint.target import DirectoryTarget
from gaudi3_scale.checkpoint.upload import Uploader
from gaudi3_scale.config import load
from gaudi3_scale.errors import TrainerError


def folders(target: Path) -> list[str]:
    """The committed checkpoints in a target."""
    return sorted(path.parent.name for path in target.glob("*/manifest.json"))


def test_another_job_does_not_take_a_jobs_checkpoints_nor_delete_them(text: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    under = ("checkpoint.every=2", "checkpoint.keep=1", f"checkpoint.target={target}", "train.log_every=1")
    under += ("train.warmup_steps=2",)
    first = Job(tmp_path / "a", text)
    first.run(*under, "train.max_steps=2")
    left = folders(target)
    assert len(left) == 1

    other = ("train.max_steps=4", "train.seed=7", "train.learning_rate=1e-4")
    second = Job(tmp_path / "b", text)
    (launcher,) = second.start(*under, *other)
    said = launcher.communicate(timeout=120)[0]
    assert launcher.returncode == 1, said
    assert f"The checkpoints in {target}, up to step 2, are of another job (" in said and "Traceback" not in said
    assert said.strip().endswith("set checkpoint.adopt=true to go on from the newest of them.")

    third = Job(tmp_path / "c", text)
    said = third.run(*under, *other, "checkpoint.adopt=true")
    assert "resuming from step 2" in said and "finished 4 steps" in said
    assert set(left) < set(folders(target)), "the first job's folder was deleted"

    shutil.rmtree(first.node())
    said = first.run(*under, "train.max_steps=3")
    assert "resuming from step 2" in said, "a job on a fresh disk knows its own, which are not the newest"
    shutil.rmtree(third.node())
    assert "resuming from step 4" in third.run(*under, *other, "train.max_steps=5"), "so does the other"


def run(rank: int, folder: Path, target: Path, steps: int, key: str, adopt: bool = False, keep: int = 1) -> Any:
    """A job, this rank being a node of its own: the step it resumed from, its id, and what it said."""
    said: list[str] = []
    folder = node(folder, rank)
    own, there = CheckpointPeers.meet(folder, 30), DirectoryTarget(target)
    store = CheckpointStore(folder / "checkpoints", keep, said.append)
    job, begun = settle(own.patient, folder, store, key, there, adopt)
    found = agree(own.patient, store, None, said.append, there, job, begun, adopt)
    remember(own.patient, folder, job)
    training = Training()
    if found is not None:
        training.resume(found, own.patient)
    uploader = Uploader(there, store, own, said.append, job=job)
    writer = saver(store.directory, training, own, keep=keep, uploader=uploader, job=job)
    writer.store = store
    while training.done < steps:
        training.train(1)
        writer.save(training.done)
        assert writer.close()
    return found.step if found else None, job.id, said


def test_jobs_that_began_together_under_one_target_go_on_apart(tmp_path: Path) -> None:
    target = tmp_path / "target"
    _, one, _ = run(0, tmp_path / "a", target, 0, "a")
    _, two, _ = run(0, tmp_path / "b", target, 2, "b")
    assert one != two
    assert run(0, tmp_path / "a", target, 1, "a") == (None, one, []), "it had begun when the other's were not there yet"
    assert run(0, tmp_path / "b", target, 3, "b") == (2, two, [])
    assert [name[:30] for name in folders(target)] == [f"step-00000001-{one}", f"step-00000003-{two}"]
    for _ in range(2):  # refused once, refused always: nothing is left that makes it known
        with pytest.raises(TrainerError, match="are of another job"):
            run(0, tmp_path / "c", target, 1, "c")
    assert run(0, tmp_path / "c", target, 4, "c", adopt=True)[0] == 3
    assert run(0, tmp_path / "b", target, 3, "b") == (3, two, [])
    assert run(0, tmp_path / "c", target, 4, "c", adopt=True)[0] == 4, "its own go first from now on"


def test_a_node_that_replaces_a_lost_one_is_of_the_job_and_a_job_that_lost_all_finds_itself(tmp_path: Path) -> None:
    nodes, target = tmp_path / "nodes", tmp_path / "target"
    first = ranks.run(2, tmp_path, run, nodes, target, 1, "x")
    (mine,) = {job for _, job, _ in first}
    for lost in ([0], [1], [0, 1]):
        for rank in lost:
            shutil.rmtree(node(nodes, rank))
        again = ranks.run(2, tmp_path, run, nodes, target, 1, "x")
        assert [(step, job, said) for step, job, said in again] == [(1, mine, [])] * 2, f"without the disks {lost}"
        assert json.loads((node(nodes, lost[0]) / "job-id").read_text()) == {"id": mine, "key": "x"}


def test_nodes_of_different_jobs_are_not_mixed(tmp_path: Path) -> None:
    nodes, target = tmp_path / "nodes", tmp_path / "target"
    run(0, nodes, target, 1, "x")
    run(0, tmp_path / "other", tmp_path / "elsewhere", 2, "y")
    shutil.copytree(node(tmp_path / "other", 0), node(nodes, 1), dirs_exist_ok=True)
    with pytest.raises(AssertionError, match="The output_dirs of the nodes are of different jobs"):
        ranks.run(2, tmp_path, run, nodes, target, 1, "x")


def test_checkpoints_that_do_not_say_whose_they_are_are_used_when_that_is_wanted(tmp_path: Path) -> None:
    folder, target = tmp_path / "nodes", tmp_path / "target"
    training = Training()
    training.train(2)
    old = saver(node(folder, 0) / "checkpoints", training)
    old.save(2)
    assert old.wait()
    with pytest.raises(TrainerError, match=r"up to step 2, are of no job that they name.* checkpoint.adopt"):
        run(0, folder, target, 3, "x")
    assert old.store.verify(2).step == 2
    step, job, said = run(0, folder, target, 3, "x", adopt=True)
    assert (step, said) == (2, []) and run(0, folder, target, 3, "x") == (3, job, [])


def test_what_else_lies_in_a_jobs_folder_is_left_alone(tmp_path: Path) -> None:
    folder, target = tmp_path / "nodes", tmp_path / "target"
    run(0, folder, target, 1, "x")
    run(0, tmp_path / "other", tmp_path / "elsewhere", 9, "y")
    there = node(folder, 0) / "checkpoints" / "step-00000009"
    shutil.copytree(node(tmp_path / "other", 0) / "checkpoints" / "step-00000009", there)
    step, _, said = run(0, folder, target, 3, "x")
    assert step == 1 and there.is_dir()
    assert said == [f"checkpoint {there} is not of this job and is left alone"]


def test_the_key_is_what_is_trained_and_not_how(tmp_path: Path) -> None:
    def key(*overrides: str) -> str:
        return key_of(load(None, overrides))

    same = ("train.max_steps=9", "train.micro_batch_size=3", "train.threads=2", "device=cpu", "output_dir=x")
    assert key() == key(*same, "checkpoint.every=3", "metrics.enabled=false", "data.prefetch=0")
    others = ("train.seed=1", "train.learning_rate=1", "model.layers=2", "data.source=x", "model.lora.rank=2")
    assert len({key(), *(key(other) for other in others)}) == 1 + len(others)
    assert key("checkpoint.job=name") == key("checkpoint.job=name", "train.seed=2") == "name"
