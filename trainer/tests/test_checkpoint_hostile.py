"""Whoever may write where checkpoints lie can lose them, and nothing else: none of their content is run."""

from __future__ import annotations

import contextlib
import copy
import random
import re
import shutil
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hostile
import pytest
import torch
from conftest import SOURCE, Job, assert_same
from training import Training, saver

from gaudi3_scale.checkpoint import DamagedCheckpointError
from gaudi3_scale.checkpoint.description import read_description
from gaudi3_scale.checkpoint.fetch import read_all
from gaudi3_scale.checkpoint.manifest import STATE
from gaudi3_scale.checkpoint.peers import CheckpointPeers
from gaudi3_scale.checkpoint.shape import OF_A_JOB, checked
from gaudi3_scale.checkpoint.state import pack, unpack
from gaudi3_scale.errors import TrainerError
from gaudi3_scale.job.contents import of_rank

Attack = Callable[[Path, Path], None]


@pytest.mark.parametrize("attack", hostile.ATTACKS)
def test_a_hostile_checkpoint_is_refused_and_runs_nothing(attack: Attack, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    training = Training()
    training.train(1)
    writer = saver(tmp_path / "checkpoints", training)
    writer.save(1)
    assert writer.wait()
    attack(writer.store.path(1), marker)
    found = writer.store.newest()
    assert found is not None, "it is whole by its digests"
    outcome: BaseException | None = None
    try:
        Training().resume(found, CheckpointPeers.single())
    except BaseException as error:
        outcome = error
    assert not marker.exists(), "the checkpoint has run code"
    assert isinstance(outcome, TrainerError), outcome
    assert re.search(
        r"unusable \(its \.metadata (refers to|says of) .*\): somebody may have made it to do harm", str(outcome)
    )


@pytest.mark.parametrize("attack", hostile.ATTACKS[:2])
def test_a_job_that_resumes_from_a_hostile_target_runs_nothing(attack: Attack, text: Path, tmp_path: Path) -> None:
    marker, target = tmp_path / "marker", tmp_path / "target"
    steps = ("train.max_steps=4", "checkpoint.every=2", "checkpoint.keep=1", f"checkpoint.target={target}")
    job = Job(tmp_path / "job", text)
    job.run(*steps)
    (folder,) = target.glob("step-00000004-*")
    attack(folder, marker)
    shutil.rmtree(job.node())
    (launcher,) = job.start(*steps, "train.max_steps=6")
    said = launcher.communicate(timeout=120)[0]
    assert not marker.exists(), "the checkpoint has run code"
    assert launcher.returncode == 1 and "Traceback" not in said, said
    assert "and yet unusable (its .metadata" in said


def test_nothing_of_a_checkpoint_is_given_to_torchs_unpickler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    training = Training()
    training.train(2)
    writer = saver(tmp_path, training)
    writer.save(2)
    assert writer.wait()

    def refuse(*arguments: Any, **named: Any) -> Any:
        raise AssertionError("torch.load was called, whose unpickler has had holes (CVE-2026-24747)")

    monkeypatch.setattr(torch, "load", refuse)
    resumed = Training()
    resumed.resume(writer.store.verify(2), CheckpointPeers.single())
    assert resumed.weights() == training.weights()


def test_a_state_comes_back_as_it_was(tmp_path: Path) -> None:
    state = {
        "numbers": [1, -(2**70), 0.1, float("inf"), -float("inf"), 1e-300, True, None, 3 + 4j],
        "texts": ["", "ä\ud800", b"\x00\xff", bytearray(b"x")],
        "nested": {"$": 1, "b": ({"c": {2, 1}}, ()), "a": OrderedDict([(3, "x"), ((1, "y"), frozenset({2}))])},
        "torch": [torch.Size([2, 3]), torch.bfloat16, torch.device("cpu")],
        "tensors": [
            torch.tensor(3.5),
            torch.empty(0, 4),
            torch.arange(6).reshape(2, 3).t(),
            torch.tensor([True, False]),
            torch.tensor([1.5, 2.5], dtype=torch.bfloat16),
            torch.tensor([1 + 2j]),
            torch.tensor([2**63], dtype=torch.uint64),
        ],
        "ranks": [{"random": torch.get_rng_state()}] * 2,
    }
    (tmp_path / STATE).write_bytes(pack(state))
    assert_same(unpack(tmp_path / STATE), state)
    assert pack(unpack(tmp_path / STATE)) == pack(state), "equal states are equal files"
    parameter = unpack(_written(tmp_path / STATE, pack({"p": torch.nn.Parameter(torch.ones(2))})))["p"]
    assert type(parameter) is torch.nn.Parameter and parameter.requires_grad
    nan = unpack(_written(tmp_path / STATE, pack({"n": float("nan")})))["n"]
    assert nan != nan
    for content in (b"", b"x" * 40, pack(state)[:-1], pack({"x": 1}).replace(b"x", b"$")):
        with pytest.raises(DamagedCheckpointError, match=r"state\.safetensors cannot be read"):
            unpack(_written(tmp_path / STATE, content))


def _written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_a_broken_description_is_no_traceback(tmp_path: Path) -> None:
    training = Training()
    training.train(1)
    writer = saver(tmp_path, training)
    writer.save(1)
    assert writer.wait()
    folder = writer.store.path(1)
    files = writer.store.read(1).files
    honest = (folder / ".metadata").read_bytes()
    assert read_description(folder, files).state_dict_metadata
    for place in range(2, len(honest), 7):
        (folder / ".metadata").write_bytes(honest[:place])
        with pytest.raises(DamagedCheckpointError):
            read_description(folder, files)
        changed = bytearray(honest)
        changed[place] ^= 1
        (folder / ".metadata").write_bytes(changed)
        with contextlib.suppress(DamagedCheckpointError):  # some changes make another honest description
            read_description(folder, files)


ODD: list[Any] = [None, True, -1, 10**400, "x", [], {}, [None], {"a": None}, torch.zeros(2), float("nan"), b"x", {1: 2}]
REST = {"samples": 8, "loss": 1.5, "first_loss": None, "skipped_steps": 0}


def mutated(state: dict[str, Any], chance: random.Random) -> tuple[dict[str, Any], str]:
    """The state with something odd at a random place, or without it, and where."""
    made = copy.deepcopy(state)
    where: Any = made
    path: list[str] = []
    while True:
        key = chance.choice(sorted(where) if isinstance(where, dict) else range(len(where)))
        path.append(str(key))
        inner = where[key]
        if isinstance(inner, dict | list) and inner and chance.random() < 0.7:
            where = inner
        elif chance.random() < 0.3:
            del where[key]
            return made, "/".join(path) + " is gone"
        else:
            where[key] = chance.choice(ODD)
            return made, f"{'/'.join(path)} is {str(where[key])[:20]}"


def test_a_state_with_odd_content_is_a_sentence_that_names_the_file(tmp_path: Path) -> None:
    """Whatever is odd, the checkpoint is restored or refused in one sentence, and never with a traceback."""
    training = Training()
    training.train(1)
    writer = saver(tmp_path / "checkpoints", training)
    writer.save(1)
    assert writer.wait()
    folder = writer.store.path(1)
    honest = {**unpack(folder / STATE), **REST}
    chance, refused = random.Random(0), 0
    for _ in range(150):
        state, what = mutated(honest, chance)
        (folder / STATE).write_bytes(pack(state))
        hostile.enter(folder, STATE)
        found = writer.store.verify(1)
        try:
            said = found.state(OF_A_JOB)
            Training().resume(found, CheckpointPeers.single())
            assert of_rank(said, 0, 1) is not None
            read_all(folder)
        except TrainerError as error:
            refused += 1
            assert str(folder) in str(error) and "\n" not in str(error), what
        except Exception as error:
            raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error
    assert refused > 50


@pytest.mark.parametrize(
    ("part", "value", "reason"),
    [
        ("plain", ..., "has no part 'plain'"),
        ("plain", {"a": 1}, "the part 'plain' is not a table of tensors"),
        ("training", {"groups": []}, "the part 'training' is not what belongs to a model"),
        ("ranks", [], "the part 'ranks' is not a list of what each rank had"),
        ("ranks", [{"random": {}}], "a rank has no 'loss_sum'"),
        ("samples", -1, "the part 'samples' is not a number of samples"),
        ("scheduler", {}, "the part 'scheduler' is not the position of a schedule"),
    ],
)
def test_what_is_odd_in_a_state_is_named(part: str, value: Any, reason: str) -> None:
    rank = {"random": {}, "loss_sum": 0.0, "loss_count": 0}
    parts = {"extra": {}, "groups": [], "values": []}
    state: dict[str, Any] = {"plain": {}, "training": parts, "ranks": [rank], "step": 1, "scheduler": {"last_epoch": 1}}
    state |= REST
    checked(state, STATE, OF_A_JOB)
    if value is ...:
        del state[part]
    else:
        state[part] = value
    with pytest.raises(DamagedCheckpointError, match=f"{STATE} .*{reason}|{STATE} {reason}"):
        checked(state, STATE, OF_A_JOB)


def test_every_reader_of_a_state_says_what_it_needs_or_asks_for_what_is_always_there() -> None:
    """A new reader has to name the parts that it indexes."""
    found = {
        (path.name, call)
        for path in SOURCE.rglob("*.py")
        for call in re.findall(r"\.state\((.*?)\)", path.read_text())
        if path.parts[-2] in ("gaudi3_scale", "checkpoint", "job", "batch_warmup")
    }
    assert found == {
        ("contents.py", "OF_A_JOB"),
        ("measurement.py", "OF_A_JOB"),
        ("fit_state.py", "OF_A_FIT"),
        ("export.py", ""),
        ("collect.py", ""),
        ("fetch.py", ""),
    }
