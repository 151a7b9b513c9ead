"""Documents from every kind of source, from any position on, and the sentence for each that cannot be read."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from gaudi3_scale.config import DataConfig
from gaudi3_scale.data import sources
from gaudi3_scale.data.sources import START, open_source
from gaudi3_scale.errors import ConfigError

ROWS = ["one", "zwei drei", "", "vier\nfünf", "six"]


def texts(source: str | Path, **settings: Any) -> list[str]:
    """All documents; checked to be the same from every position between two of them."""
    opened = open_source(DataConfig(source=str(source), **settings))
    pieces = list(opened.pieces(START))
    for number, piece in enumerate(pieces):
        rest = list(open_source(DataConfig(source=str(source), **settings)).pieces(piece.after))
        assert rest == pieces[number + 1 :]
    done = [opened.done(piece.after) for piece in pieces]
    assert done == sorted(done) and done[-1] <= opened.size
    assert [piece.ends for piece in pieces] == [True] * len(pieces)
    return [piece.text if isinstance(piece.text, str) else piece.text.decode() for piece in pieces]


def jsonl(path: Path, rows: list[Any], field: str = "text") -> Path:
    """A file of one object per line, with a blank line between."""
    path.write_text("\n\n".join(json.dumps({field: row, "n": n}) for n, row in enumerate(rows)))
    return path


def test_jsonl_plain_and_compressed(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", ROWS)
    packed = tmp_path / "b.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert texts(path) == texts(packed) == ROWS
    assert texts(jsonl(tmp_path / "c.jsonl", ROWS, "body"), field="body") == ROWS


def test_parquet_over_several_row_groups(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({"n": range(5), "body": ROWS})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=2)
    assert texts(tmp_path / "a.parquet", field="body") == ROWS
    with pytest.raises(ConfigError, match=r"a.parquet has no column 'text', only 'n', 'body': set data.field to .*\.$"):
        texts(tmp_path / "a.parquet")


def test_a_hugging_face_dataset_and_the_hub_out_of_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("datasets")
    monkeypatch.setattr("datasets.config.HF_CACHE_HOME", tmp_path / "home")
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    folder = tmp_path / "set"
    folder.mkdir()
    jsonl(folder / "train.jsonl", ROWS)
    assert texts(f"hf:{folder}") == texts(f"hf:{folder}:train") == ROWS
    with pytest.raises(ConfigError, match=r"cannot be loaded \(Unknown split \"tset\".*\): check the name, config"):
        texts(f"hf:{folder}:tset")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    with pytest.raises(
        ConfigError, match=r"cannot be reached \(or HF_HUB_OFFLINE is set\).*copy the cache \(HF_HOME\)"
    ):
        texts("hf:nobody/nothing")


def test_a_folder_of_several_kinds_is_read_in_the_order_of_names(tmp_path: Path) -> None:
    jsonl(tmp_path / "b.jsonl", ["in", "lines"])
    (tmp_path / "a.txt").write_text("first")
    (tmp_path / "c").write_text("last")
    assert texts(tmp_path) == ["first", "in", "lines", "last"]
    assert texts(tmp_path / "b.jsonl", format="text") == [(tmp_path / "b.jsonl").read_text()]


def test_a_long_text_comes_in_pieces_that_end_with_a_line_or_a_character(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "PIECE_BYTES", 10)
    path = tmp_path / "long"
    path.write_text("12345678\nab\ncd\n" + "é" * 40)
    source = open_source(DataConfig(source=str(path)))
    pieces = list(source.pieces(START))
    assert b"".join(bytes(p.text) for p in pieces if isinstance(p.text, bytes)) == path.read_bytes()
    assert [p.ends for p in pieces] == [False] * (len(pieces) - 1) + [True]
    assert pieces[0].text == b"12345678\nab\n"
    assert all(isinstance(p.text, bytes) and p.text.decode() for p in pieces)
    assert list(source.pieces(pieces[1].after)) == pieces[2:]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('{"body": 1}', "Line 2 of {} has no field 'text', only 'body': set data.field to the one with the text, or "),
        ('{"text": 1}', "Line 2 of {} has a number in 'text': it has to be a string."),
        (
            "[1]",
            "Line 2 of {} is an array: it has to be an object with the field 'text', or set data.format to json if ",
        ),
        ("{text", "Line 2 of {} is not JSON: mend or delete it."),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, sentence: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(f'{{"text": "fine"}}\n{line}\n')
    with pytest.raises(ConfigError) as error:
        texts(path)
    assert str(error.value).startswith(sentence.format(path))


@pytest.mark.parametrize(("package", "name"), [("pyarrow", "a.parquet"), ("datasets", "hf:some/set")])
def test_a_missing_package_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, name: str
) -> None:
    for module in [package, *[m for m in sys.modules if m.startswith(f"{package}.")]]:
        monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    command = "pip install 'pyarrow>=20' 'datasets>=4' 'zstandard>=0.23'"
    with pytest.raises(ConfigError, match=rf"{package}, which is not installed: {command}\.$"):
        texts(name if ":" in name else tmp_path / name)
