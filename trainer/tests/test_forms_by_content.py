"""Records are known by what they are where a name says nothing, and every form has one rule for what is missing."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_forms import DOCUMENTS, lines, pretty, read, refusal

from gaudi3_scale.data.json_file import CutOffError, NotJsonError, json_records

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

LONG = "x" * 2**17


def late(rows: list[str], indent: int | None = None) -> bytes:
    """Records whose first value is longer than what a look at a file reads."""
    return json.dumps([{"meta": LONG, "text": row} for row in rows], indent=indent).encode()


@pytest.mark.parametrize("name", ["part-0", "data.v2", "a.data", "a.jsonl.1", "records.foo"])
@pytest.mark.parametrize(
    "write",
    [
        late,
        lambda rows: late(rows, 1),
        pretty,
        lambda rows: b"\n".join(late([row])[1:-1] for row in rows),
        lambda rows: b"".join(late([row], 1)[1:-1].strip() for row in rows),
        lambda rows: b"\xef\xbb\xbf" + lines(rows),
    ],
    ids=["array", "pretty array", "short array", "lines", "objects", "marked lines"],
)
def test_records_are_known_wherever_their_field_begins(
    tmp_path: Path, name: str, write: Callable[[list[str]], bytes]
) -> None:
    (tmp_path / name).write_bytes(write(DOCUMENTS))
    assert read(tmp_path) == DOCUMENTS


@pytest.mark.parametrize("name", ["part-0", "data.v2", "part-0.gz"])
def test_an_object_under_a_name_that_says_nothing_is_never_taken_for_text(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    pack: Callable[[bytes], bytes] = gzip.compress if name.endswith(".gz") else bytes
    path.write_bytes(pack(b'{"body": "a"}\n{"body": "b"}'))
    assert refusal(path) == (
        f"{path} begins with JSON, of which the first value is an object without the field 'text', only 'body': set "
        "data.field to the field with the text of each object, or data.format to text."
    )
    assert read(path, field="body") == ["a", "b"]
    path.write_bytes(pack(late(DOCUMENTS)[:1000]))
    assert "begins with JSON and ends within its first value: download it again, or set data.format" in refusal(path)
    for values, what in ((b'["a", "b"]', "a string"), (b'[["a"], ["b"]]', "an array")):
        path.write_bytes(pack(values))
        assert f"{path} begins with JSON, of which the first value is {what}: set data.field to " in refusal(path)
    for document in ('["quoted"] and more', "[[Link]] of a wiki", '["a" b]', "[1] Smith et al."):
        path.write_bytes(pack(document.encode()))
        assert read(path) == [document]
    path.write_bytes(pack(b'{"begins": like, JSON and is the text of a document}'))
    assert read(path) == ['{"begins": like, JSON and is the text of a document}']


def test_an_object_in_a_file_of_a_program_is_text(tmp_path: Path) -> None:
    for name, text in (("a.ipynb", '{"cells": []}'), ("b.py", '{"a": x}'), ("c.js", '{"text')):
        (tmp_path / name).write_text(text)
    assert read(tmp_path) == ['{"cells": []}', '{"a": x}', '{"text']


def test_a_record_is_called_cut_off_wherever_it_is_cut(tmp_path: Path) -> None:
    whole = json.dumps({"a": [1, -2.5e-3, True, False, None, 'x\u00e9"y'], "b": {"c": "\U0001f600"}, "text": "e"})
    for end in range(1, len(whole)):
        with pytest.raises(CutOffError):
            list(json_records(io.BytesIO(whole[:end].encode()), tmp_path))
    assert len(list(json_records(io.BytesIO(whole.encode()), tmp_path))) == 1
    for text in ('{"a" b', "[[Link]]", '{"a": tr of', '{"a": 1.5 kg', '{"a": "\\u00 "}', "{'a", '{"a",'):
        with pytest.raises(NotJsonError):
            list(json_records(io.BytesIO(text.encode()), tmp_path))


def tables(rows: list[Any], names: list[str]) -> dict[str, bytes]:
    """A table in each form, by the name of a file."""
    made: dict[str, bytes] = {}
    table = pa.table([pa.array(rows, pa.string()) for _ in names], names=names)
    for name, writer in (("a.arrow", pa.ipc.new_stream), ("b.arrow", pa.ipc.new_file)):
        sink = pa.BufferOutputStream()
        with writer(sink, table.schema) as file:
            file.write_table(table)
        made[name] = bytes(sink.getvalue())
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink)
    return {**made, "c.parquet": bytes(sink.getvalue())}


def test_two_columns_of_one_name_are_refused_where_they_are_read(tmp_path: Path) -> None:
    for name, data in tables(DOCUMENTS, ["text", "text"]).items():
        path = tmp_path / name
        path.write_bytes(data)
        assert refusal(path) == f"{path} has 2 columns 'text': write it again with one of them."
    for name, data in tables(DOCUMENTS, ["n", "text", "n"]).items():
        (tmp_path / name).write_bytes(data)
        assert read(tmp_path / name) == DOCUMENTS


@pytest.mark.parametrize("content", ["text", "chat", "prompt"])
def test_a_null_is_refused_in_every_form(tmp_path: Path, content: str) -> None:
    names = {"text": ["text"], "chat": ["messages", "tools"], "prompt": ["prompt", "completion"]}[content]
    made = tables([None], names) | {
        "d.jsonl": json.dumps(dict.fromkeys(names)).encode(),
        "e.json": json.dumps([dict.fromkeys(names)]).encode(),
    }
    where = {"d.jsonl": "Line 1", "e.json": "Record 1"}
    for name, data in made.items():
        path = tmp_path / name
        path.write_bytes(data)
        assert refusal(path, content=content) == (
            f"{where.get(name, 'Row 0')} of {path} has null in {names[0]!r}: give it a value, or leave the record out."
        )


def test_a_field_that_stands_twice_is_refused_as_a_column_is(tmp_path: Path) -> None:
    for name, where in (("a.jsonl", "Line 2"), ("b.json", "Record 2"), ("part-0", "Line 2")):
        path = tmp_path / name
        path.write_text('{"text": "a"}\n{"text": "b", "text": "c"}\n')
        assert refusal(path) == f"{where} of {path} has the field 'text' twice: mend or delete it."
    path.write_text('[{"text": "a", "about": {"n": 1, "n": 2}}]')
    assert refusal(path) == f"Record 1 of {path} has the field 'n' twice: mend or delete it."


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.warc", b"WARC/1.0\r\nWARC-Type: conversion\r\n\r\nText.\r\n", "is an archive of web pages (WARC)"),
        ("a.jsonseq", b'\x1e{"text": "a"}\n', "is a sequence of JSON texts (RFC 7464)"),
        ("a.txt", b"/annex/objects/SHA256E-s1--0.txt\n", "is a pointer of git-annex and not the data"),
        ("a.jsonl.dvc", b"outs:\n- path: a.jsonl\n", "is a pointer of DVC and not the data"),
        ("a.txt.asc", b"-----BEGIN PGP MESSAGE-----\n\nhQEMA\n", "is encrypted by PGP"),
        ("a", b"age-encryption.org/v1\n-> X25519 a\n", "is encrypted by age"),
        ("a.jsonl.torrent", b"d8:announce", "is a description of a download"),
        ("a.jsonl.ab", b'half a record"}\n{"text": "a"}\n', "has .jsonl in its name, and begins with no record"),
        ("a.json.1.gz", gzip.compress(b'half a record"}\n'), "has .json in its name, and begins with no record"),
    ],
)
def test_what_stands_for_records_or_hides_them_is_no_text(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    assert said in refusal(tmp_path)


def test_a_name_of_text_may_have_anything_before_its_suffix(tmp_path: Path) -> None:
    (tmp_path / "about.json.txt").write_text("No record.")
    assert read(tmp_path) == ["No record."]
