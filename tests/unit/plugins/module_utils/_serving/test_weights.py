"""What a model's folder says of itself, with whatever lies in it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._serving.weights import read_config, weights_bytes

WIDTH = {"F32": 4, "BF16": 2, "F8_E4M3": 1, "I64": 8}


def write(path: Path, **tensors: tuple[str, list[int]]) -> None:
    """A safetensors file of zeros, by its published layout."""
    head, end = {"__metadata__": {"format": "pt"}}, 0
    entries: dict[str, Any] = dict(head)
    for name, (kind, shape) in tensors.items():
        count = WIDTH[kind]
        for each in shape:
            count *= each
        entries[name] = {"dtype": kind, "shape": shape, "data_offsets": [end, end + count]}
        end += count
    text = json.dumps(entries).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(end))


def test_bytes_are_those_of_the_served_type(tmp_path: Path) -> None:
    write(tmp_path / "model.safetensors", a=("F32", [10, 10]), b=("BF16", [3]), c=("F8_E4M3", [7]), d=("I64", [2]))
    assert weights_bytes(str(tmp_path)) == 200 + 6 + 7 + 16
    assert weights_bytes(str(tmp_path), "float32") == 400 + 6 + 7 + 16


def test_the_index_says_which_files_count(tmp_path: Path) -> None:
    for name in ("one", "two", "older"):
        write(tmp_path / f"{name}.safetensors", a=("BF16", [5]))
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}))
    assert weights_bytes(str(tmp_path)) == 20
    (tmp_path / "two.safetensors").unlink()
    with pytest.raises(Refusal, match=r"has no two\.safetensors, which its index names"):
        weights_bytes(str(tmp_path))
    for odd in ('{"weight_map": {"a": "../one.safetensors"}}', "[]", "{", '{"weight_map": [1]}'):
        index.write_text(odd)
        with pytest.raises(Refusal, match="export the model again"):
            weights_bytes(str(tmp_path))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"version https://git-lfs.github.com/spec/v1\n",
        (2**40).to_bytes(8, "little") + b"{}",
        (4).to_bytes(8, "little") + b"{a}}",
        (2).to_bytes(8, "little") + b"[]",
        (11).to_bytes(8, "little") + b'{"a": null}',
    ],
)
def test_what_is_no_safetensors_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(data)
    with pytest.raises(Refusal, match="is not a whole safetensors file"):
        weights_bytes(str(tmp_path))


def test_a_file_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    write(path, a=("F32", [100]))
    os.truncate(path, path.stat().st_size - 1)
    with pytest.raises(Refusal, match="its head says"):
        weights_bytes(str(tmp_path))


def test_a_folder_without_weights(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=r"has no \*\.safetensors"):
        weights_bytes(str(tmp_path))


def test_config(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="is no folder"):
        read_config(str(tmp_path / "none"))
    with pytest.raises(Refusal, match="cannot be read"):
        read_config(str(tmp_path))
    path = tmp_path / "config.json"
    for text in ("[]", '{"text_config": 1}'):
        path.write_text(text)
        with pytest.raises(Refusal, match="not a JSON object"):
            read_config(str(tmp_path))
    path.write_text("{" * 10)
    with pytest.raises(Refusal, match="is not JSON"):
        read_config(str(tmp_path))
    path.write_text('{"hidden_size": 8}')
    assert read_config(str(tmp_path)) == {"hidden_size": 8}
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(Refusal, match="not a regular file"):
        read_config(str(tmp_path))
