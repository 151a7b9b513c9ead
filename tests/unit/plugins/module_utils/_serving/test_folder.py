"""A folder is whole, or is refused in a sentence before a vLLM takes minutes to find that out."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._serving import folder


def weights(path: Path, size: int = 64) -> None:
    """A file of safetensors with one tensor."""
    header = json.dumps({"a": {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(size))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A whole one."""
    place = tmp_path / "model"
    place.mkdir()
    (place / "config.json").write_text(
        json.dumps({"architectures": ["LlamaForCausalLM"], "max_position_embeddings": 96})
    )
    (place / "tokenizer.json").write_text("{}")
    weights(place / "model.safetensors")
    return place


def test_a_whole_folder_says_what_is_in_it(model: Path) -> None:
    found = folder.read(str(model))
    assert (found.longest, found.files) == (96, ["config.json", "model.safetensors", "tokenizer.json"])
    assert found.weights_bytes < found.total_bytes == sum(path.stat().st_size for path in model.iterdir())
    assert folder.read(str(model)).identity == found.identity
    weights(model / "model.safetensors", 128)
    assert folder.read(str(model)).identity != found.identity


def _index(place: Path) -> None:
    (place / folder.INDEX).write_text(json.dumps({"weight_map": {"a": "model.safetensors", "b": "other.safetensors"}}))


def _cut(place: Path) -> None:
    os.truncate(place / "model.safetensors", 100)


def _endless(place: Path) -> None:
    header = b'{"a": {"data_offsets": [0, 1e999]}}'
    (place / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)


def _pipe(place: Path) -> None:
    (place / "config.json").unlink()
    os.mkfifo(place / "config.json")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (
            lambda place: (place / "config.json").unlink(),
            "cannot be served: it has no config.json, so it is no exported",
        ),
        (_endless, "model.safetensors is no file of weights ("),
        (_pipe, "config.json cannot be read (no file)"),
        (lambda place: (place / "config.json").write_text("{"), "config.json cannot be read (Expecting property name"),
        (
            lambda place: (place / "config.json").write_text("[]"),
            "config.json is no JSON object: export the model again.",
        ),
        (
            lambda place: (place / "model.safetensors").unlink(),
            "has no weights (*.safetensors): export the model again.",
        ),
        (
            _cut,
            "model.safetensors has 100 bytes, and by its header 135, so it was cut short or changed: copy or export",
        ),
        (lambda place: (place / "model.safetensors").write_bytes(b"x" * 20), "is no file of weights (a header of 868"),
        (_index, "lacks other.safetensors, which model.safetensors.index.json names: copy or export the model again."),
        (
            lambda place: (place / "tokenizer.json").unlink(),
            "has no tokenizer (tokenizer.json, tokenizer.model): export",
        ),
    ],
)
def test_a_damaged_one_is_refused(model: Path, damage: Callable[[Path], object], said: str) -> None:
    damage(model)
    with pytest.raises(Refusal) as refused:
        folder.read(str(model))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="/none is not there: give one that `gaudi3-train export` wrote as serving_model"):
        folder.read(str(tmp_path / "none"))
    (tmp_path / "file").write_text("")
    with pytest.raises(Refusal, match="/file is no folder"):
        folder.read(str(tmp_path / "file"))


def test_a_path_is_whole_and_a_share_that_keeps_root_out_is_said(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Refusal, match="serving_model is ~/llm: give the whole path of a folder on the host, from / on"):
        folder.read("~/llm")

    def closed(path: str) -> object:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", closed)
    with pytest.raises(Refusal, match=f"{model} cannot be read by root of this host .Permission denied.: put a copy"):
        folder.read(str(model))


def test_longer_sequences_than_the_models_are_refused(model: Path) -> None:
    found = folder.read(str(model))
    assert folder.length_problem(found, 0) == folder.length_problem(found, 96) == ""
    assert folder.length_problem(found, 128).startswith("serving_max_model_len is 128, and ")
    assert "was trained for 96 tokens" in folder.length_problem(found, 128)


def test_who_may_read_is_known_before_the_start(model: Path) -> None:
    for path in model.iterdir():
        path.chmod(0o644)
    for path in (model, *model.parents):
        if path.stat().st_uid == os.geteuid() and str(path).startswith("/tmp/"):
            path.chmod(0o755)
    found = folder.read(str(model))
    assert folder.unreadable(found, 54321, {54321}) == ""
    (model / "model.safetensors").chmod(0o600)
    assert folder.unreadable(found, 54321, {54321}) == str(model / "model.safetensors")
    assert folder.unreadable(found, os.geteuid(), set()) == folder.unreadable(found, 0, set()) == ""
    (model / "model.safetensors").chmod(0o640)
    assert folder.unreadable(found, 54321, {(model / "model.safetensors").stat().st_gid}) == ""
    model.chmod(0o700)
    assert folder.unreadable(found, 54321, {54321}) == str(model)
    model.chmod(0o755)
    model.parent.chmod(0o700)
    assert folder.unreadable(found, 54321, {54321}) == str(model.parent)


def test_names_need_not_be_text(model: Path) -> None:
    (Path(os.fsdecode(os.fsencode(model) + b"/n\xff\n.txt"))).write_text("")
    assert len(folder.read(str(model)).files) == 4


@pytest.mark.parametrize(
    ("path", "where"),
    [("/home/me/llm", "/home"), ("/root", "/root"), ("/tmp/x/../y", "/tmp"), ("/srv/home/x", ""), ("/homes/x", "")],
)
def test_folders_that_a_service_does_not_see(path: str, where: str) -> None:
    assert folder.hidden(path) == where
