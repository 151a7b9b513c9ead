"""Signed checkpoints: whoever may write to the target, and has not the key, cannot have anything taken from there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import hostile
import pytest
from test_checkpoint_job import folders
from training import Training, saver

from gaudi3_scale.checkpoint import CheckpointStore
from gaudi3_scale.checkpoint.identity import remember, settle
from gaudi3_scale.checkpoint.peers import CheckpointPeers
from gaudi3_scale.checkpoint.resume import agree
from gaudi3_scale.checkpoint.signing import Signer
from gaudi3_scale.checkpoint.target import DirectoryTarget
from gaudi3_scale.checkpoint.upload import Uploader
from gaudi3_scale.errors import ConfigError, TrainerError

ALONE = CheckpointPeers.single()


def run(folder: Path, steps: int, key: bytes | None, adopt: bool = False) -> tuple[int | None, list[str]]:
    """A job with a target beside its folder: the step it resumed from, and what it said."""
    said: list[str] = []
    target = DirectoryTarget(folder.parent / "target")
    folder.mkdir(exist_ok=True)
    store = CheckpointStore(folder / "checkpoints", 2, said.append)
    store.signer = None if key is None else Signer(key)
    job, begun = settle(ALONE, folder, store, "x", target, adopt)
    found = agree(ALONE, store, None, said.append, target, job, begun, adopt)
    remember(ALONE, folder, job)
    training = Training()
    if found is not None:
        training.resume(found, ALONE)
    writer = saver(store.directory, training, uploader=Uploader(target, store, ALONE, said.append, job=job), job=job)
    writer.store = store
    while training.done < steps:
        training.train(1)
        writer.save(training.done)
        assert writer.close()
    return found.step if found else None, said


def test_what_was_changed_in_the_target_is_not_taken(tmp_path: Path) -> None:
    node, key = tmp_path / "node", os.urandom(32)
    assert run(node, 2, key) == (None, []) and run(node, 2, key) == (2, [])
    shutil.rmtree(node)
    assert run(node, 2, key) == (2, []), "from the target"
    shutil.rmtree(node)
    newest = tmp_path / "target" / folders(tmp_path / "target")[-1]
    data = bytearray((newest / hostile.TENSORS).read_bytes())
    data[len(data) // 2] ^= 1  # other weights, say, with their digest
    (newest / hostile.TENSORS).write_bytes(data)
    hostile.enter(newest, hostile.TENSORS)
    step, said = run(node, 1, key)
    assert step == 1 and "it is not signed with the key of checkpoint.signing_key_file" in said[0]
    shutil.rmtree(node)
    with pytest.raises(TrainerError, match=r"gives none \(it is not signed with the key"):
        run(node, 1, os.urandom(32))
    with pytest.raises(TrainerError, match=r"gives none \(it is not signed with the key"):
        run(node, 1, os.urandom(32), adopt=True)


def test_a_job_that_begins_to_sign_goes_on_from_its_disk_when_that_is_wanted(tmp_path: Path) -> None:
    node, key = tmp_path / "node", os.urandom(32)
    run(node, 2, None)
    shutil.rmtree(tmp_path / "target")
    with pytest.raises(TrainerError, match=r"up to step 2, are not signed with the key .* set checkpoint.adopt=true"):
        run(node, 3, key)
    assert run(node, 3, key, adopt=True) == (2, [])
    step, said = run(node, 3, key)
    assert step == 3 and said == [
        f"checkpoint {node}/checkpoints/step-00000002 is not signed with the key and is skipped"
    ]


def test_a_key_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    with pytest.raises(ConfigError, match=r"cannot be read \(No such file or directory\): make one with"):
        Signer.load(path)
    path.write_bytes(b"x" * 31)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="has 31 bytes, which are fewer than 32"):
        Signer.load(path)
    path.write_bytes(b"x" * 32)
    path.chmod(0o640)
    with pytest.raises(ConfigError, match="has the mode 0640, so that others can read the key: chmod 600 it"):
        Signer.load(path)
    path.chmod(0o600)
    assert Signer.load(path)
