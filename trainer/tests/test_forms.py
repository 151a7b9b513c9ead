"""Files of documents in every form, compression and state of damage: read for what they are, or refused by name."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import random
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gaudi3_scale.config import DataConfig
from gaudi3_scale.data import compressed, json_file
from gaudi3_scale.data.named_splits import split_of
from gaudi3_scale.data.sources import START, FileSource, open_source
from gaudi3_scale.errors import ConfigError

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
zstandard = pytest.importorskip("zstandard")

DOCUMENTS = ["one", "zwei drei", "", "vier\nfünf", 'six "quoted" \\ {[,]} \u2028', "七 \U0001f600"]
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


def lines(rows: list[str]) -> bytes:
    return "\n".join(json.dumps({"n": n, "text": row}) for n, row in enumerate(rows)).encode()


def pretty(rows: list[str]) -> bytes:
    return json.dumps([{"n": n, "text": row} for n, row in enumerate(rows)], indent=1, ensure_ascii=False).encode()


def arrow_stream(rows: list[str]) -> bytes:
    sink, table = pa.BufferOutputStream(), pa.table({"text": rows, "n": range(len(rows))})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return bytes(sink.getvalue())


def arrow_file(rows: list[str]) -> bytes:
    sink, table = pa.BufferOutputStream(), pa.table({"text": rows})
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return bytes(sink.getvalue())


def parquet_file(rows: list[str]) -> bytes:
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.table({"text": rows}), sink)
    return bytes(sink.getvalue())


def read(source: str | Path, **settings: Any) -> list[str]:
    """All documents, each once, and the same from each position between two of them."""
    opened = open_source(DataConfig(source=str(source), **settings))
    pieces = list(opened.pieces(START))
    for number in range(0, len(pieces), max(1, len(pieces) // 3)):
        again = open_source(DataConfig(source=str(source), **settings))
        assert list(again.pieces(pieces[number].after)) == pieces[number + 1 :]
    done = [opened.done(piece.after) for piece in pieces]
    assert done == sorted(done) and (not done or done[-1] <= opened.size)
    texts: list[str] = []
    held = b""
    for piece in pieces:
        held += piece.text if isinstance(piece.text, bytes) else piece.text.encode()
        if piece.ends:
            texts.append(held.decode())
            held = b""
    assert not held
    return texts


def refusal(source: str | Path, **settings: Any) -> str:
    with pytest.raises(ConfigError) as error:
        read(source, **settings)
    said = str(error.value)
    assert said.endswith(".") and "\n" not in said
    return said


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize(("name", "write"), [("a.jsonl", lines), ("a.json", lines), ("a.json", pretty)])
def test_records_of_json_are_read_in_every_compression(
    tmp_path: Path, suffix: str, name: str, write: Callable[[list[str]], bytes]
) -> None:
    (tmp_path / (name + suffix)).write_bytes(COMPRESS[suffix](write(DOCUMENTS)))
    assert read(tmp_path) == DOCUMENTS


@pytest.mark.parametrize("suffix", COMPRESS)
def test_text_is_read_in_every_compression(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"a.txt{suffix}").write_bytes(COMPRESS[suffix](DOCUMENTS[3].encode()))
    assert read(tmp_path / f"a.txt{suffix}") == [DOCUMENTS[3]]


@pytest.mark.parametrize("suffix", [each for each in COMPRESS if each])
def test_a_compressed_file_is_known_without_its_suffix_and_over_several_streams(tmp_path: Path, suffix: str) -> None:
    data = lines(DOCUMENTS)
    (tmp_path / "part-00000").write_bytes(COMPRESS[suffix](data[:40]) + COMPRESS[suffix](data[40:]))
    assert read(tmp_path) == DOCUMENTS


@pytest.mark.parametrize("name", ["part-00000", "a.data", "a.jsonl.1"])
def test_json_lines_are_known_without_their_suffix(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(lines(DOCUMENTS))
    assert read(tmp_path) == DOCUMENTS


@pytest.mark.parametrize(
    ("name", "write"),
    [("a.arrow", arrow_stream), ("a", arrow_stream), ("a.arrow", arrow_file), ("a", arrow_file), ("a", parquet_file)],
)
def test_columns_are_known_by_their_content(tmp_path: Path, name: str, write: Callable[[list[str]], bytes]) -> None:
    (tmp_path / name).write_bytes(write(DOCUMENTS))
    assert read(tmp_path / name) == DOCUMENTS


@pytest.mark.parametrize("write", [pretty, lambda rows: json.dumps([{"text": row} for row in rows]).encode()])
def test_an_array_and_companions_are_known_without_a_suffix(
    tmp_path: Path, write: Callable[[list[str]], bytes]
) -> None:
    (tmp_path / "part-00000").write_bytes(gzip.compress(write(DOCUMENTS)))
    (tmp_path / "part-00001").write_bytes(lines(DOCUMENTS))
    for name in ("README.md", "_SUCCESS"):
        (tmp_path / name).write_text("of the corpus")
    assert read(tmp_path) == DOCUMENTS * 2
    (tmp_path / "part-00001").write_bytes(write(DOCUMENTS)[:-3])
    assert "part-00001 is cut off: mend or delete it." in refusal(tmp_path)


def test_an_arrow_file_whose_bits_have_flipped_is_never_read_beyond_its_buffers(tmp_path: Path) -> None:
    rng, whole = random.Random(3), arrow_stream(["x" * 40] * 20)
    for number in range(150):
        at = rng.randrange(len(whole))
        path = tmp_path / f"{number}.arrow"
        path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << rng.randrange(8))]) + whole[at + 1 :])
        try:
            found = read(path)
        except ConfigError as error:
            assert str(path) in str(error)
        else:
            assert sum(map(len, found)) <= len(whole)


def test_what_datasets_saved_is_read_without_its_state(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    saved = datasets.Dataset.from_dict({"text": DOCUMENTS})
    saved.save_to_disk(tmp_path / "one", num_shards=2)
    assert read(tmp_path / "one") == DOCUMENTS
    assert FileSource(DataConfig(source=str(tmp_path / "one"))).left_out == ["dataset_info.json", "state.json"]
    # datasets keeps its cache of what is made of a saved dataset in the folder of that, and a second, smaller dataset
    # that is saved there leaves the files of the first.
    loaded = datasets.load_from_disk(str(tmp_path / "one"))
    loaded.map(lambda row: {"text": row["text"].upper()}).filter(lambda row: len(row["text"]) > 10)
    assert sum(path.name.startswith("cache-") for path in (tmp_path / "one").iterdir()) == 2
    assert read(tmp_path / "one") == DOCUMENTS
    saved.save_to_disk(tmp_path / "again", num_shards=2)
    saved.select([0]).save_to_disk(tmp_path / "again")
    assert read(tmp_path / "again") == DOCUMENTS[:1] == datasets.load_from_disk(str(tmp_path / "again"))["text"][:]
    assert FileSource(DataConfig(source=str(tmp_path / "again"))).left_out == [
        "data-00000-of-00002.arrow", "data-00001-of-00002.arrow", "dataset_info.json", "state.json",
    ]  # fmt: skip
    next((tmp_path / "one").glob("data-00001-*")).unlink()
    assert "one was saved with data-00001-of-00002.arrow, which is not there: copy the folder again." in refusal(
        tmp_path / "one"
    )
    datasets.DatasetDict({"train": saved, "test": saved}).save_to_disk(tmp_path / "two")
    assert "two holds several splits (dataset_dict.json): set data.source to the folder of one of them." in refusal(
        tmp_path / "two"
    )
    assert read(tmp_path / "two/train") == DOCUMENTS


def test_files_of_several_splits_are_refused(tmp_path: Path) -> None:
    hub, texts = tmp_path / "hub/data", tmp_path / "wiki"
    for folder in (hub, texts):
        folder.mkdir(parents=True)
    for name in ("train-00000-of-00001.jsonl", "test-00000-of-00001.jsonl", "more.jsonl"):
        (hub / name).write_bytes(lines(DOCUMENTS))
    assert refusal(hub.parent) == (
        f"{hub.parent} has files of several splits (train, test): set data.source to hf:{hub.parent}:train, or to "
        "a folder that has only what is to be trained on."
    )
    for name in ("wiki.train.tokens", "wiki.valid.tokens"):
        (texts / name).write_text("a document")
    assert "has files of several splits (train, validation): " in refusal(texts)
    # One more that names none: it is a folder of texts as any.
    (texts / "names.txt").write_text("a document")
    assert len(read(texts)) == 3
    (hub / "test-00000-of-00001.jsonl").unlink()
    assert read(hub) == DOCUMENTS * 2


def test_a_split_is_known_by_the_name_of_the_file_or_of_its_folder() -> None:
    assert [split_of(name) for name in ("a/train.jsonl", "train/x-1.parquet", "Dev.jsonl", "x_val_2.json")] == [
        "train", "train", "validation", "validation",
    ]  # fmt: skip
    assert [split_of(name) for name in ("trainer.jsonl", "latest.json", "test_train.jsonl", "contest/a.txt")] == [
        None
    ] * 4
    assert split_of("train/test.jsonl") == "test"


def test_companions_of_records_are_left_out_and_named(tmp_path: Path) -> None:
    (tmp_path / "part-0.jsonl").write_bytes(lines(DOCUMENTS))
    for name in ("README.md", "LICENSE", "_SUCCESS", "part-0.jsonl.crc", "SHA256SUMS", "dataset_infos.json"):
        (tmp_path / name).write_text("of the corpus")
    (tmp_path / "more.txt").write_text("a document")
    assert read(tmp_path) == ["a document", *DOCUMENTS]
    left_out = FileSource(DataConfig(source=str(tmp_path))).left_out
    assert left_out == ["LICENSE", "README.md", "SHA256SUMS", "_SUCCESS", "dataset_infos.json", "part-0.jsonl.crc"]


def test_a_folder_of_text_alone_has_no_companions(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("read me")
    (tmp_path / "b.py").write_text("pass")
    assert read(tmp_path) == ["read me", "pass"]


FOREIGN = {
    "a.idx": b"MMIDIDX\x00\x00" + bytes(20),
    "b.bin": struct.pack("<8H", *range(500, 508)),
    "c.npy": b"\x93NUMPY\x01\x00v\x00{'descr': '<u2'}",
    "d": b"\x93NUMPY\x01\x00v\x00{'descr': '<u2'}",
    "e.zip": b"PK\x03\x04more",
    "f.png": b"\x89PNG\r\n\x1a\nmore",
    "g.txt": "naïve".encode("utf-16"),
    "h.csv": b"text,n\none,1\n",
    "i.txt": b"one\x00two",
    "j.txt": "naïve".encode("latin-1"),
    "k.tar": b"one" + bytes(600),
    "l.jsonl.part": lines(DOCUMENTS),
    "m.pt": b"\x80\x02}q\x00.",
    "n.txt": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n",
    "n.parquet": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n",
    "o.txt": lines(DOCUMENTS),
    "p.json": b'"text"',
    "q.jsonl": arrow_stream(DOCUMENTS),
    "r.json": parquet_file(DOCUMENTS),
    "s.jsonl.gz": b"<html>not found</html>",
    "t.jsonl.gz": b"",
    "u.jsonl.xz": gzip.compress(lines(DOCUMENTS)),
    "v.json": pretty(DOCUMENTS)[:-3],
    "w.json": pretty(DOCUMENTS) + b" {}",
    "x.json": lines(DOCUMENTS) + b"\n{",
    "y.arrow": arrow_stream(DOCUMENTS)[:-8],
    "z.arrow": arrow_stream(DOCUMENTS)[:-30],
    "A.arrow": arrow_file(DOCUMENTS)[:-30],
    "B.parquet": parquet_file(DOCUMENTS)[:-30],
    "C.json": b'[{"text": "a"} {"text": "b"}]',
    "D.json": b'{"name": "a package"}',
    "E.jsonl": b'{"text": "half \\ud83d"}',
    "F.json": '[{"text": "naïve"}]'.encode("latin-1"),
    "G.lz4": b"\x04\x22\x4d\x18more",
}


@pytest.mark.parametrize("name", FOREIGN)
def test_what_is_neither_text_nor_records_is_refused_by_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(FOREIGN[name])
    (tmp_path / "0.txt").write_text("first")
    assert str(path) in refusal(tmp_path)


@pytest.mark.parametrize("name", ["b.bin", "h.csv", "i.txt", "j.txt", "o.txt", "D.json"])
def test_any_bytes_are_text_where_the_user_says_so(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(FOREIGN[name])
    pieces = list(open_source(DataConfig(source=str(tmp_path), format="text")).pieces(START))
    assert [piece.text for piece in pieces] == [FOREIGN[name]]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "i.txt",
            "has a NUL byte at byte 3, so it is no text: convert it to UTF-8, take it out of data.source, or set",
        ),
        ("j.txt", "has no UTF-8 at byte 2, so it is no text: "),
        ("n.txt", "is a pointer of Git LFS and not the data: run 'git lfs pull' in its folder."),
        ("s.jsonl.gz", "is not compressed by gzip, and its name ends with .gz: download it again, or give it the name"),
        ("t.jsonl.gz", "is empty, and its name ends with .gz: "),
        ("u.jsonl.xz", "is compressed by gzip, and its name ends with .xz: "),
        ("E.jsonl", "has half a character (\\ud83d) at position 5 of 'text': mend or delete the record."),
        ("v.json", "is cut off: mend or delete it."),
        ("F.json", "is not UTF-8 at byte 13: convert it."),
    ],
)
def test_the_sentence_names_the_place_and_what_to_do(tmp_path: Path, name: str, sentence: str) -> None:
    (tmp_path / name).write_bytes(FOREIGN[name])
    assert sentence in refusal(tmp_path / name)


@pytest.mark.parametrize("suffix", [each for each in COMPRESS if each])
@pytest.mark.parametrize("where", ["second stream", "end", "byte"])
def test_a_damaged_archive_is_named_and_never_read_in_part(tmp_path: Path, suffix: str, where: str) -> None:
    rng = random.Random(1)
    data = lines(["".join(rng.choices("abcdefgh ", k=400)) for _ in range(50)])
    if suffix == ".zst":  # by default without a checksum
        compress: Callable[[bytes], bytes] = zstandard.ZstdCompressor(write_checksum=True).compress
    else:
        compress = COMPRESS[suffix]
    whole = compress(data) * 2
    middle = len(whole) // 2
    made = {
        "second stream": whole[:middle] + b"junk" + whole[middle + 4 :],
        "end": whole[:-9],
        "byte": whole[: middle // 2] + bytes([whole[middle // 2] ^ 4]) + whole[middle // 2 + 1 :],
    }[where]
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(made)
    said = refusal(path)
    assert said.startswith(f"{path} is {'cut off' if where == 'end' else 'damaged'}") and said.endswith(
        "download it again."
    )


def test_records_of_json_are_read_over_the_borders_of_what_is_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_file, "CHUNK_BYTES", 5)
    for write in (lines, pretty):
        (tmp_path / "a.json").write_bytes(b"\xef\xbb\xbf" + write(DOCUMENTS))
        assert read(tmp_path) == DOCUMENTS


def test_a_broken_record_is_found_without_reading_on(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b'[{"text": "a"}, {"text": 1e}, ' + b" " * 5_000_000)
    with (
        path.open("rb") as file,
        pytest.raises(ConfigError, match=r"Record 2 of .*a\.json is not JSON: mend or delete"),
    ):
        list(json_file.json_records(file, path))
    with path.open("rb") as file:
        with pytest.raises(ConfigError):
            list(json_file.json_records(file, path))
        assert file.tell() <= json_file.CHUNK_BYTES


def test_links_are_followed_and_broken_or_endless_ones_stop_the_job(tmp_path: Path) -> None:
    for folder in ("data", "elsewhere/deep"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "data/a.txt").write_text("one")
    (tmp_path / "elsewhere/deep/b.txt").write_text("two")
    (tmp_path / "data/more").symlink_to(tmp_path / "elsewhere")
    assert read(tmp_path / "data") == ["one", "two"]
    (tmp_path / "data/gone.txt").symlink_to(tmp_path / "nowhere")
    assert f"gone.txt is a link to '{tmp_path}/nowhere', which is not on this node" in refusal(tmp_path / "data")
    (tmp_path / "data/gone.txt").unlink()
    (tmp_path / "elsewhere/deep/up").symlink_to(tmp_path / "elsewhere")
    assert "is a link to a folder that it lies in: delete the link." in refusal(tmp_path / "data")
    (tmp_path / "elsewhere/deep/up").unlink()
    os.mkfifo(tmp_path / "data/pipe")
    assert "pipe is no regular file: take it out of data.source." in refusal(tmp_path / "data")


#: Imports first, as another user may not enter the folder of root's own Python.
CLOSED = """
import os, sys
from gaudi3_scale.config import DataConfig
from gaudi3_scale.data.sources import open_source
from gaudi3_scale.data.tokenizer import load_tokenizer
from gaudi3_scale.errors import ConfigError
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
for source in sys.argv[1:]:
    try:
        if source.endswith("json"):
            load_tokenizer(DataConfig(tokenizer=source))
        print(len(open_source(DataConfig(source=source))._files))
    except ConfigError as error:
        print(error)
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users may enter: every start of pytest closes that of tmp_path to them."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_what_the_job_s_user_may_not_enter_or_read_stops_the_job(open_folder: Path) -> None:
    for name in ("closed/in.txt", "half/open/a.txt", "half/shut/b.txt", "file/a.txt", "b.json"):
        (open_folder / name).parent.mkdir(parents=True, exist_ok=True)
        (open_folder / name).write_text("text")
    for name in ("file/a.txt", "b.json"):
        (open_folder / name).chmod(0)
    for name in ("closed", "half/shut"):
        (open_folder / name).chmod(0)
    sources = [str(open_folder / each) for each in ("closed/in.txt", "closed", "half", "file", "half/open")]
    sources += [f"{open_folder}/closed/tokenizer.json", f"{open_folder}/b.json"]
    run = subprocess.run([sys.executable, "-c", CLOSED, *sources], capture_output=True, text=True, check=True)
    advice = "cannot be read (Permission denied): give this user the right to, or take it out of data.source."
    assert run.stdout.splitlines() == [
        f"{open_folder}/closed/in.txt {advice}",
        f"{open_folder}/closed {advice}",
        f"{open_folder}/half/shut {advice}",
        f"{open_folder}/file/a.txt {advice}",
        "1",
        *(
            f"data.tokenizer '{each}' cannot be read (Permission denied): give this user the right to."
            for each in sources[5:]
        ),
    ]


def test_every_compression_that_is_known_is_opened() -> None:
    assert set(compressed.MAGIC) == set(compressed.STREAMS) == set(compressed.SUFFIXES.values())


def _corpus(rng: random.Random, folder: Path) -> list[str] | None:
    """Make a folder of one to three files; its documents, or None where it has to be refused."""
    documents: list[str] | None = []
    for number in range(rng.randint(1, 3)):
        rows = ["".join(rng.choices('ab é\n{}[]",七', k=rng.randint(0, 60))) for _ in range(rng.randint(1, 9))]
        write, suffix = rng.choice(
            [(lines, ".jsonl"), (lines, ".json"), (pretty, ".json"), (lines, ""), (arrow_stream, ".arrow"),
             (arrow_file, ""), (parquet_file, ".parquet"), (lambda each: "".join(each).encode(), ".txt")]
        )  # fmt: skip
        made: bytes = write(rows)
        packed = rng.choice(list(COMPRESS)) if write in (lines, pretty) or suffix == ".txt" else ""
        made = COMPRESS[packed](made)
        damage = rng.choice(["none"] * 4 + ["cut", "name", "nul", "foreign"])
        name = f"{number}{suffix}{packed if rng.random() < 0.7 else ''}"
        if damage == "cut":
            made = made[: rng.randint(1, len(made) - 1)] if len(made) > 1 else made
            if not packed and write is not arrow_stream and write is not parquet_file and write is not arrow_file:
                damage = "none"  # half of a text is a text; of lines, it depends on where
                made = write(rows)
        elif damage == "name" and packed:
            name = f"{number}{suffix}{rng.choice([each for each in COMPRESS if each not in ('', packed)])}"
        elif damage == "nul" and suffix == ".txt" and not packed:
            made = made + b"\0"
        elif damage == "foreign":
            name, made = rng.choice([("9.npy", FOREIGN["c.npy"]), ("9.bin", FOREIGN["b.bin"]), ("9", b"\x89PNG\r\n")])
        else:
            damage = "none"
        (folder / name).write_bytes(made)
        if damage != "none":
            documents = None
        elif documents is not None:
            documents += ["".join(rows)] if suffix == ".txt" else rows
    return documents


@pytest.mark.parametrize("seed", range(25))
def test_made_corpora_are_read_for_what_they_are_or_refused(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    for number in range(20):
        folder = tmp_path / str(number)
        folder.mkdir()
        documents = _corpus(rng, folder)
        files = {path.name: path.read_bytes()[:40] for path in folder.iterdir()}
        if documents is None:
            assert str(folder) in refusal(folder), files
        else:
            assert read(folder) == documents, files
