"""Which files of a folder are read: each once, and none that keeps its reader waiting."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from test_forms import read, refusal

from gaudi3_scale.config import DataConfig
from gaudi3_scale.data.sources import open_source


def test_a_source_that_is_a_pipe_or_a_device_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/null")):
        assert f"data.source is '{path}', which is no regular file" in refusal(path)


@pytest.mark.parametrize(("link", "to"), [("0.jsonl", "b.jsonl"), ("z.jsonl", "b.jsonl"), ("more/link", "../parts")])
def test_a_link_to_what_is_read_is_left_out_and_named(tmp_path: Path, link: str, to: str) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "more").mkdir()
    for name in ("b.jsonl", "parts/c.jsonl"):
        (tmp_path / name).write_text(f'{{"text": "{name}"}}\n')
    (tmp_path / link).symlink_to(to)
    said: list[str] = []
    open_source(DataConfig(source=str(tmp_path)), said.append)
    assert sorted(read(tmp_path)) == ["b.jsonl", "parts/c.jsonl"]
    (sentence,) = said
    assert "left out, as they are links to others of these files" in sentence and link in sentence


def test_a_link_from_elsewhere_and_a_second_name_of_a_file_are_read(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/a.txt").write_text("a")
    (tmp_path / "source").mkdir()
    (tmp_path / "source/b.txt").symlink_to("../kept/a.txt")
    assert read(tmp_path / "source") == ["a"]
    os.link(tmp_path / "kept/a.txt", tmp_path / "source/c.txt")
    assert read(tmp_path / "source") == ["a", "a"]


def test_the_cache_of_the_hub_is_not_read_twice(tmp_path: Path) -> None:
    for name in ("blobs", "refs", "snapshots/1"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "blobs/0").write_text('{"text": "a"}\n')
    (tmp_path / "refs/main").write_text("1")
    (tmp_path / "snapshots/1/a.jsonl").symlink_to("../../blobs/0")
    assert "set data.source to one of the folders in its snapshots." in refusal(tmp_path)
    assert read(tmp_path / "snapshots/1") == ["a"]
