"""Checkpoints are whole or skipped, whatever happens to the process or the disk."""

from __future__ import annotations

import errno
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import ranks
import torch
from conftest import SMALL
from torch import nn
from training import Training, saver

from gaudi3_scale.checkpoint import CheckpointStore, DamagedCheckpointError, storage
from gaudi3_scale.checkpoint.fetch import read_all
from gaudi3_scale.checkpoint.manifest import STATE
from gaudi3_scale.checkpoint.peers import CheckpointPeers
from gaudi3_scale.checkpoint.reading import VerifiedReader
from gaudi3_scale.checkpoint.restore import TrainingState
from gaudi3_scale.checkpoint.resume import agree
from gaudi3_scale.config import load
from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.job.fit import fit
from gaudi3_scale.status import StatusFile

TENSORS = "__0_0.distcp"


def truncate(path: Path) -> None:
    """Lose the second half."""
    os.truncate(path / TENSORS, (path / TENSORS).stat().st_size // 2)


def flip(path: Path) -> None:
    """Change one bit."""
    data = bytearray((path / TENSORS).read_bytes())
    data[len(data) // 2] ^= 1
    (path / TENSORS).write_bytes(data)


def forget(path: Path) -> None:
    """Lose the commit marker."""
    (path / "manifest.json").unlink()


def lose(path: Path) -> None:
    """Lose the content."""
    (path / TENSORS).unlink()


def misname(path: Path) -> None:
    """Put another step's checkpoint in its place."""
    (path / "manifest.json").write_text((path / "manifest.json").read_text().replace('"step": 20', '"step": 10'))


def escape(path: Path) -> None:
    """Name a file outside the directory."""
    manifest = path / "manifest.json"
    manifest.write_text(manifest.read_text().replace("state.safetensors", "../state.safetensors"))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (truncate, rf"{TENSORS} has \d+ bytes instead of \d+"),
        (flip, f"the content of {TENSORS} has changed"),
        (forget, r"its manifest cannot be read \(FileNotFoundError\)"),
        (lose, rf"{TENSORS} (cannot be read \(No such file or directory\)|is on no node)"),
        (misname, "its manifest describes something else"),
        (escape, "its manifest describes something else"),
    ],
)
def test_a_damaged_newest_checkpoint_is_passed_over_with_its_reason(
    damage: Callable[[Path], None], reason: str, tmp_path: Path
) -> None:
    said: list[str] = []
    training = Training()
    writer = saver(tmp_path, training, log=said.append)
    for step in (10, 20):
        training.train(1)
        writer.save(step)
    assert writer.wait()
    store = writer.store
    assert (
        (found := agree(CheckpointPeers.single(), store, log=said.append)) is not None
        and found.step == 20
        and said == []
    )
    damage(store.path(20))
    with pytest.raises(DamagedCheckpointError, match=reason):
        store.verify(20)
    assert (found := agree(CheckpointPeers.single(), store, log=said.append)) is not None and found.step == 10
    assert len(said) == 1 and said[0].startswith(f"checkpoint {store.path(20)} is damaged (")
    writer.save(25)
    assert writer.wait()
    assert store.steps() == [10, 25], "a damaged checkpoint counts for nothing"


def committed(store: CheckpointStore, *steps: int) -> CheckpointStore:
    """Empty checkpoints of these steps, pruned after each."""
    from gaudi3_scale.checkpoint import Entry, Manifest

    for step in steps:
        building = store.begin(step, "abc")
        (building / STATE).touch()
        entry = Entry(0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
        store.commit(building, Manifest(step, "abc", "replicated", {STATE: entry}, (STATE,), {}))
        store.prune(step)
    return store


@pytest.mark.parametrize(
    "text",
    [
        '{"format": 3, "files": {"a\\u0000b": {"size": 0, "sha256": ""}}, "here": ["a\\u0000b"]',
        '{"format": 3, "files": {"a\\ud800": {"size": 0, "sha256": ""}}, "here": ["a\\ud800"]',
        '{"format": 3, "files": {"a\\u001b[2J": {"size": 0, "sha256": ""}}, "here": ["a\\u001b[2J"]',
        '{"format": 3, "files": {"a": {"size": 1e999, "sha256": ""}}, "here": ["a"]',
        '{"format": 3, "files": {"a": {"size": ' + "9" * 5000 + ', "sha256": ""}}, "here": ["a"]',
        '{"format": 3, "files": {"a": {"size": 0, "sha256": ""}}, "here": ["a"], "x": ' + "[" * 100_000,
        '{"format": 3, "files": {".": {"size": 0, "sha256": ""}}, "here": ["."]',
        "[]",
    ],
    ids=["nul", "surrogate", "escape", "infinite", "long", "deep", "dot", "list"],
)
def test_a_malformed_manifest_is_passed_over(text: str, tmp_path: Path) -> None:
    said: list[str] = []
    store = committed(CheckpointStore(tmp_path, 2, said.append), 10, 20)
    end = "" if text == "[]" else ', "step": 20, "run": "abc", "layout": "replicated"}'
    (store.path(20) / "manifest.json").write_text(text + end)
    assert (found := store.newest()) is not None and found.step == 10
    assert (found := agree(CheckpointPeers.single(), store, log=said.append)) is not None and found.step == 10
    assert len(said) == 2 and all(word.isprintable() and " is damaged (its manifest " in word for word in said)


def test_the_newest_and_the_milestones_are_kept(tmp_path: Path) -> None:
    assert committed(CheckpointStore(tmp_path / "a", 2), 5, 10, 15, 20).steps() == [15, 20]
    store = CheckpointStore(tmp_path / "b", 2, keep_every=10)
    assert committed(store, 5, 10, 15, 20, 25, 30, 35).steps() == [10, 20, 30, 35]


def test_a_run_that_was_set_back_keeps_its_own_checkpoint_not_the_later_damaged_one(tmp_path: Path) -> None:
    store = committed(CheckpointStore(tmp_path, 1), 10)
    assert committed(store, 20).steps() == [20]
    assert committed(CheckpointStore(tmp_path, 1), 15).steps() == [15]


def test_a_checkpoint_being_read_is_not_deleted(tmp_path: Path) -> None:
    store = committed(CheckpointStore(tmp_path, 1), 10)
    with store.held(10):
        assert committed(store, 20, 30).steps() == [10, 30]
    assert committed(store, 40).steps() == [40]


def test_what_is_restored_is_what_was_saved_though_training_went_on_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = threading.Event()
    write = storage.HashingFile.write
    monkeypatch.setattr(storage.HashingFile, "write", lambda file, data: (go.wait(30), write(file, data))[1])
    training = Training()
    training.train(3)
    writer = saver(tmp_path, training)
    before = training.weights()
    writer.save(3)
    expected = training.train(3)  # while nothing is written yet
    assert writer.committed is None and training.weights() != before
    go.set()
    assert writer.wait() and writer.committed is not None
    assert writer.last_stall < (writer.estimate() or 0)
    resumed = Training()
    resumed.train(1)
    resumed.resume(writer.store.verify(3), CheckpointPeers.single())
    assert resumed.weights() == before
    assert resumed.train(3) == expected and resumed.weights() == training.weights()


def test_one_save_is_in_flight_and_a_deadline_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go = threading.Event()
    commit = CheckpointStore.commit
    monkeypatch.setattr(CheckpointStore, "commit", lambda *arguments: (go.wait(30), commit(*arguments))[1])
    training = Training()
    training.train(1)
    writer = saver(tmp_path, training)
    assert writer.estimate() is None
    writer.save(1)
    assert not writer.wait(time.monotonic() + 0.01) and writer.estimate() is None
    threading.Timer(0.3, go.set).start()
    writer.save(2)
    assert writer.last_stall > 0.2, "the second save has waited for the first"
    assert writer.wait(time.monotonic() + 30) and writer.store.steps() == [1, 2]
    assert (writer.estimate() or 0) > 0.3
    writer.save(2)  # is saved already
    assert writer.last_step == 2 and writer.wait()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_full_disk_costs_a_sentence_and_the_one_before_stays(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    training = Training()
    training.train(1)
    writer = saver(tmp_path / "checkpoints", training, keep=1, log=said.append)
    writer.save(1)
    assert writer.wait()

    def full(*arguments: Any, **named: Any) -> int:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(storage.HashingFile, "write", full)
        writer.save(2)
        settled(2)
        writer.poll()  # after a step, as training goes on
    sentence = (
        f"The checkpoint of step 2 could not be written to {tmp_path}/checkpoints by rank 0 ({os.strerror(number)}): "
        "give the disk room or output_dir another place; started again, the job resumes from step 1."
    )
    assert said == [f"{sentence} Training goes on."]
    assert (writer.failures, writer.error) == (1, sentence)
    writer.poll()
    assert len(said) == 1, "said once"
    assert [path.name for path in writer.store.directory.iterdir()] == ["step-00000001"], "its room is given back"
    assert writer.store.verify(1).step == 1
    with monkeypatch.context() as patch:
        patch.setattr(CheckpointStore, "begin", full)
        writer.save(3)
    assert writer.failures == 2 and writer.last_step == 2 and "The checkpoint of step 3 could not be" in said[1]
    writer.save(3)
    assert writer.wait() and writer.store.steps() == [3] and writer.error is None

    with monkeypatch.context() as patch:  # nothing comes after the last one: the job must not end as if it were there
        patch.setattr(storage.HashingFile, "write", full)
        writer.save(4, last=True)
        with pytest.raises(TrainerError, match="The checkpoint of step 4 could not be written"):
            writer.wait()
    with monkeypatch.context() as patch:
        patch.setattr(CheckpointStore, "begin", full)
        with pytest.raises(TrainerError, match="The checkpoint of step 5 could not be written"):
            writer.save(5, last=True)
    assert writer.store.verify(3).step == 3


def test_a_job_whose_disk_is_full_for_a_while_goes_on_and_says_so(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    errors: list[str | None] = []
    write, writes = storage.HashingFile.write, StatusFile.write

    def full(file: Any, data: Any) -> int:
        if "00000004" in str(file._file.name):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(file, data)

    def noting(file: Any, state: Any, progress: Any, *error: Any) -> None:
        errors.append(progress.checkpoint_error)
        writes(file, state, progress, *error)

    monkeypatch.setattr(storage.HashingFile, "write", full)
    monkeypatch.setattr(StatusFile, "write", noting)
    short = ("train.max_steps=6", "checkpoint.every=2", "model.layers=1", "train.micro_batch_size=2")
    fit(load(None, [*SMALL, *short, f"data.source={text}", f"output_dir={tmp_path}", "checkpoint.asynchronous=false"]))
    status = StatusFile(tmp_path / "status.json").read()
    assert (status["state"], status["step"], status["checkpoint_step"]) == ("finished", 6, 6)
    assert status["checkpoint_error"] is None
    assert any(error is not None and "The checkpoint of step 4 could not be written" in error for error in errors)
    assert CheckpointStore(tmp_path / "checkpoints", 2).steps() == [2, 6]
    assert "started again, the job resumes from step 2. Training goes on." in "".join(capsys.readouterr())


def settled(step: int) -> None:
    """The thread that saves a step has ended."""
    while any(thread.name == f"checkpoint-{step}" for thread in threading.enumerate()):
        time.sleep(0.01)


def test_an_error_that_is_not_the_disks_is_raised_at_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = Training()
    training.train(1)
    writer = saver(tmp_path, training)

    def broken(file: Any, data: Any) -> int:
        raise ZeroDivisionError("no")

    monkeypatch.setattr(storage.HashingFile, "write", broken)
    writer.save(1)
    settled(1)
    with pytest.raises(TrainerError, match="ZeroDivisionError"):
        writer.poll()


def test_a_directory_that_cannot_be_written_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").touch()
    training = Training()
    training.train(1)
    with pytest.raises(
        TrainerError, match=r"step 1 could not be written to .*checkpoints by rank 0 \(Not a directory\)"
    ):
        saver(tmp_path / "checkpoints", training).save(1)


def save_and_be_killed(folder: Path, instant: int) -> int:
    """Save step 1, then be killed at a given call of those that change the disk while steps 2 and 3 are saved."""
    training = Training()
    training.train(1)
    writer = saver(folder, training)
    writer.save(1)
    assert writer.wait()
    calls = 0.0

    def counting(original: Callable[..., Any], share: float = 1.0) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal calls
            before, calls = calls, calls + share
            if instant and int(before) < instant <= calls:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*arguments, **named)

        return call

    for name in ("fsync", "rename", "replace", "unlink", "mkdir", "rmdir", "open"):
        setattr(os, name, counting(getattr(os, name)))
    storage.HashingFile.write = counting(storage.HashingFile.write, 1 / 64)  # type: ignore[method-assign]
    training.train(1)
    for step in (2, 3):
        writer.save(step)
        assert writer.wait()
    return int(calls)


def kill_everywhere(rank: int, folder: Path, stride: int) -> int:
    """A process killed at every `stride`-th of its calls; how many there are."""
    calls = instant = 1
    while instant <= calls:
        pid = os.fork()
        if pid == 0:
            calls = save_and_be_killed(folder / str(instant), instant if instant > 1 else 0)
            (folder / "calls").write_text(str(calls))
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == (0 if instant == 1 else -signal.SIGKILL), f"at {instant}"
        calls = int((folder / "calls").read_text())
        instant += stride
    return calls


def test_a_kill_at_any_instant_of_a_save_leaves_the_one_before_or_the_new_one(tmp_path: Path) -> None:
    stride = 4
    (calls,) = ranks.run(1, tmp_path, kill_everywhere, tmp_path, stride)
    assert calls > 60
    newest = []
    for instant in range(1 + stride, calls + 1, stride):
        folder = tmp_path / str(instant)
        words: list[str] = []
        found = agree(CheckpointPeers.single(), CheckpointStore(folder, 1, words.append), log=words.append)
        assert found is not None and words == [], f"at {instant}"
        assert all(path.name.startswith("step-") for path in folder.iterdir()), f"at {instant}"
        resumed, expected = Training(), Training()
        resumed.resume(found, CheckpointPeers.single())
        expected.train(1 if found.step == 1 else 2)
        assert resumed.weights() == expected.weights(), f"at {instant}"
        newest.append(found.step)
    assert newest == sorted(newest) and set(newest) == {1, 2, 3}, "a later kill loses less, and every case was met"


def test_a_checkpoint_cannot_run_code(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return os.system, ("true",)

    (tmp_path / ".metadata").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(DamagedCheckpointError, match=r"its \.metadata refers to posix\.system"):
        VerifiedReader(tmp_path, {}).read_metadata()


def test_a_parameter_that_had_no_gradient_has_no_state_afterwards_either(tmp_path: Path) -> None:
    def make() -> tuple[nn.Module, torch.optim.Optimizer]:
        torch.manual_seed(0)
        model = nn.ModuleList([nn.Linear(2, 2, bias=False) for _ in range(3)])
        model[2].requires_grad_(False)
        return model, torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])

    model, optimizer = make()
    model[0](torch.ones(2)).sum().backward()  # type: ignore[index]
    optimizer.step()
    saved, _ = TrainingState(model, [optimizer]).tensors, None
    other, fresh = make()
    state = TrainingState(other, [fresh])
    assert set(state.select(set(saved), "here")) == set(saved)
    assert [p in fresh.state for p in other.parameters()] == [True, False, False]
    with pytest.raises(ConfigError, match=r"is of another model or optimizer: model.3.weight is in only one of them"):
        state.select({*saved, "model.3.weight"}, "here")


def test_a_whole_checkpoint_can_be_read_without_its_model(tmp_path: Path) -> None:
    training = Training()
    training.train(2)
    writer = saver(tmp_path, training, about={"seed": 7})
    writer.save(2)
    assert writer.wait()
    whole = read_all(tmp_path / "step-00000002")
    assert whole["step"] == 2 and torch.equal(whole["tensors"]["model.0.weight"], training.model[0].weight)  # type: ignore
    assert writer.store.verify(2).manifest.about == {"seed": 7}
