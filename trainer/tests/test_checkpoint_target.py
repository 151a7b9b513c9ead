"""Checkpoints in an object store or a shared directory: committed there, used when the nodes have nothing newer."""

from __future__ import annotations

import logging
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ranks
from test_checkpoint_sharded import node
from training import Training, saver

from gaudi3_scale.checkpoint import CheckpointStore
from gaudi3_scale.checkpoint.peers import CheckpointPeers
from gaudi3_scale.checkpoint.resume import agree
from gaudi3_scale.checkpoint.target import DirectoryTarget, S3Target, Target, open_target
from gaudi3_scale.checkpoint.upload import Uploader
from gaudi3_scale.errors import TrainerError

BUCKET = "checkpoints"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """An S3 API on loopback."""
    moto = pytest.importorskip("moto.server", reason="pip install 'moto[s3]' flask flask-cors")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "test")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        server = moto.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        server.start()
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
        server.stop()


@pytest.fixture(params=["s3", "directory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str | None]:
    """An empty target's URL and endpoint."""
    if request.param == "directory":
        return str(tmp_path / "target"), None
    endpoint: str = request.getfixturevalue("endpoint")
    import boto3

    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")
    client.create_bucket(Bucket=BUCKET)
    return f"s3://{BUCKET}/{request.node.name.partition('[')[0]}", endpoint


def truncated(target: Target, name: str) -> None:
    """Lose the last byte of a file in the target."""
    if isinstance(target, DirectoryTarget):
        path = Path(target.url) / name
        path.write_bytes(path.read_bytes()[:-1])
    else:
        assert isinstance(target, S3Target)
        key = target._prefix + name
        body = target._client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        target._client.put_object(Bucket=BUCKET, Key=key, Body=body[:-1])


def run(rank: int, folder: Path, place: tuple[str, str | None], steps: int, sharded: bool, die: str = "") -> Any:
    """Resume if there is something, train to `steps` with a checkpoint after each, all of them uploaded."""
    said: list[str] = []
    target, own = open_target(*place), CheckpointPeers.meet(node(folder, rank), 30)
    store = CheckpointStore(node(folder, rank) / "checkpoints", 2, said.append)
    found = agree(own.patient, store, None, said.append, target)
    training = Training(sharded)
    if found is not None:
        training.resume(found, own.patient)
    uploader = Uploader(target, store, own, said.append, patience=20)
    writer = saver(store.directory, training, own, uploader=uploader, log=said.append)
    if found is not None:
        uploader.catch_up(own, found)
        uploader.drain()
    if die:
        put = type(target).put

        def killing(self: Any, path: Path, name: str) -> None:
            if name.endswith(die) and f"{steps:08d}" in name:
                os.kill(os.getpid(), signal.SIGKILL)
            put(self, path, name)

        type(target).put = killing  # type: ignore[method-assign]
    while training.done < steps:
        training.train(1)
        writer.save(training.done)
        assert writer.close()
    return found.step if found else None, training.weights(), said


def test_what_no_node_has_any_more_comes_from_the_target(place: tuple[str, str | None], tmp_path: Path) -> None:
    nodes = tmp_path / "nodes"
    _, weights, said = run(0, nodes, place, 4, False)
    assert said == []
    target = open_target(*place)
    names = sorted(target.sizes())
    assert sorted({name[:13] for name in names}) == ["step-00000003", "step-00000004"], (
        "older ones are deleted there too"
    )
    assert sorted(name.partition("/")[2] for name in names) == sorted(
        2 * [".metadata", "__0_0.distcp", "manifest.json", "state.safetensors"]
    )
    shutil.rmtree(nodes)
    assert run(0, nodes, place, 4, False) == (4, weights, []), "from the target"

    # Damaged there: the one before is used, with a word.
    shutil.rmtree(nodes)
    tensors = next(name for name in names if name.startswith("step-00000004") and name.endswith("distcp"))
    truncated(target, tensors)
    step, after, said = run(0, nodes, place, 4, False)
    assert (step, after) == (3, weights)
    assert len(said) == 1 and said[0].startswith(
        f"checkpoint {target.url}/{tensors.partition('/')[0]} is damaged (__0_0"
    )
    assert said[0].endswith("and is skipped")
    assert tensors not in target.sizes(), "the step was saved again, and the damaged one is gone"


def test_a_kill_during_an_upload_leaves_the_target_usable_and_is_made_up_for(
    place: tuple[str, str | None], tmp_path: Path
) -> None:
    nodes, target = tmp_path / "nodes", open_target(*place)
    run(0, nodes, place, 1, False)
    ranks.run(1, tmp_path, run, nodes, place, 2, False, "manifest.json", killed=True)
    whole = [name for name in target.sizes() if name.endswith("manifest.json")]
    assert len(whole) == 1 and whole[0].startswith("step-00000001")
    assert any(name.startswith("step-00000002") for name in target.sizes()), "half of it is there"
    lost = tmp_path / "lost"
    assert run(0, lost, place, 0, False)[0] == 1, "nodes that lost everything fall back on what is whole"
    step, weights, said = run(0, nodes, place, 2, False)
    assert (step, said) == (2, []), "the node itself lost nothing"
    assert sorted(name[:13] for name in target.sizes() if name.endswith("manifest.json")) == [
        "step-00000001",
        "step-00000002",
    ]
    shutil.rmtree(nodes)
    assert run(0, nodes, place, 2, False) == (2, weights, [])


def test_nodes_upload_their_own_shards_and_a_new_pair_resumes(place: tuple[str, str | None], tmp_path: Path) -> None:
    first = ranks.run(2, tmp_path, run, tmp_path / "first", place, 2, True)
    assert [said for _, _, said in first] == [[], []]
    second = ranks.run(2, tmp_path, run, tmp_path / "second", place, 2, True)
    assert [(step, said) for step, _, said in second] == [(2, []), (2, [])]
    assert second[0][1] == second[1][1] == first[0][1]


def test_content_that_changed_in_the_target_is_passed_over(tmp_path: Path) -> None:
    place = (str(tmp_path / "target"), None)
    _, weights, _ = run(0, tmp_path / "first", place, 2, False)
    (path,) = (tmp_path / "target").glob("step-00000002-*/__0_0.distcp")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    step, after, said = run(0, tmp_path / "second", place, 2, False)
    assert (step, after) == (1, weights)
    assert said == [f"checkpoint {path.parent} is damaged (the content of __0_0.distcp has changed) and is skipped"]


def test_a_file_that_goes_while_a_shared_folder_is_listed_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another node removes old steps and renames its drafts at any time."""
    target = DirectoryTarget(tmp_path / "target")
    for name in ("a/1", "a/2", "b/3"):
        target.put(Path(__file__), name)
    look = os.stat

    def stat(path: Any, **more: Any) -> os.stat_result:
        if path == "2" and "dir_fd" in more:
            os.unlink(path, dir_fd=more["dir_fd"])
        return look(path, **more)

    monkeypatch.setattr(os, "stat", stat)
    assert sorted(target.sizes()) == ["a/1", "b/3"] and sorted(target.sizes("a")) == ["a/1"]


def test_nothing_is_committed_in_the_target_before_all_nodes_have_uploaded(tmp_path: Path) -> None:
    said: list[str] = []
    training = Training()
    training.train(1)
    writer = saver(tmp_path / "checkpoints", training)
    writer.save(1)
    assert writer.wait() and writer.committed is not None
    target = DirectoryTarget(tmp_path / "target")
    uploader = Uploader(target, writer.store, CheckpointPeers.single(), said.append, patience=0.3)
    uploader.offer(writer.committed, {"state.safetensors", ".metadata"})
    assert uploader.drain() and "__0_0.distcp, which another node uploads, did not come in 0.3 s" in said[0]
    assert not any(name.endswith("manifest.json") for name in target.sizes())
    uploader.offer(writer.committed, {"__0_0.distcp"})
    assert uploader.drain() and uploader.uploaded == 1
    assert any(name.endswith("manifest.json") for name in target.sizes())


def test_a_dead_target_costs_a_sentence_not_the_training(endpoint: str, tmp_path: Path) -> None:
    said: list[str] = []
    training = Training()
    store = CheckpointStore(tmp_path, 2, said.append)
    uploader = Uploader(open_target("s3://nowhere/x", endpoint), store, CheckpointPeers.single(), said.append)
    writer = saver(tmp_path, training, uploader=uploader)
    for _ in range(2):
        training.train(1)
        writer.save(training.done)
        assert writer.close()
    assert store.steps() == [1, 2] and uploader.failures == 2 and uploader.uploaded is None
    assert said[0].startswith("the checkpoint of step 1 could not be copied to s3://nowhere/x (")
    assert "NoSuchBucket" in said[0]
    assert said[0].endswith("): it is safe on the nodes' disks, and training goes on")


def test_a_target_that_does_not_answer_is_no_reason_to_start_anew(endpoint: str, tmp_path: Path) -> None:
    said: list[str] = []
    target = open_target("s3://nowhere/x", endpoint)
    with pytest.raises(TrainerError, match=r"No node has a checkpoint, and s3://nowhere/x gives none \(NoSuchBucket"):
        agree(CheckpointPeers.single(), CheckpointStore(tmp_path, 2, said.append), None, said.append, target)
    training = Training()
    training.train(1)
    writer = saver(tmp_path, training)
    writer.save(1)
    assert writer.wait()
    found = agree(CheckpointPeers.single(), writer.store, None, said.append, target)
    assert found is not None and found.step == 1
    assert said[-1].startswith("s3://nowhere/x cannot be asked for newer checkpoints (NoSuchBucket")
