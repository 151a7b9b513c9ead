"""Corpora made from a seed: in every form, compression and state of damage, with what has to come of each."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import pickle
import random
import sqlite3
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import zstandard
from pyarrow import parquet
from safetensors.numpy import save

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}
COMPANIONS = {
    "README.md": b"About the corpus.\n",
    "LICENSE": b"Apache-2.0\n",
    "_SUCCESS": b"",
    "dataset_infos.json": b'{"default": {}}',
}
DAMAGE = ("none", "none", "none", "cut off", "flipped", "empty", "NUL", "half a character", "BOM", "CRLF", "Latin-1")


@dataclass
class Made:
    """A corpus and what it has to be read as."""

    source: Path
    what: str
    documents: list[bytes] | None
    """None where it has to be refused."""
    either: bool = False
    """Damage that its form cannot show: read or refused, but never an error of another kind."""


def rows(rng: random.Random) -> list[str]:
    """Documents with what breaks readers: line ends, quotes, brackets, characters of several bytes."""
    letters = 'ab é\n{}[]",\\七\u2028\U0001f600' + "cdefgh" * 3
    return ["x" + "".join(rng.choices(letters, k=rng.randint(0, 80))) for _ in range(rng.randint(2, 12))]


def _line(row: str) -> str:
    return json.dumps({"id": len(row), "text": row}, ensure_ascii=len(row) % 2 == 0)


def _table(made: list[str]) -> pa.Table:
    return pa.table({"text": made, "n": range(len(made))})


def _arrow(made: list[str], new: Callable[..., object]) -> bytes:
    sink = pa.BufferOutputStream()
    with new(sink, _table(made).schema) as writer:  # type: ignore[attr-defined]
        writer.write_table(_table(made), max_chunksize=3)
    return bytes(sink.getvalue())


def _parquet(made: list[str]) -> bytes:
    sink = pa.BufferOutputStream()
    parquet.write_table(_table(made), sink, row_group_size=5)
    return bytes(sink.getvalue())


#: Forms that are read: the names that they have, and what writes them.
READ: dict[str, tuple[tuple[str, ...], Callable[[list[str]], bytes]]] = {
    "text": (("a.txt", "a.md", "a.py", "a"), lambda made: "\n".join(made).encode()),
    "JSON lines": (
        ("a.jsonl", "a.ndjson", "a.jsonlines", "part-00000", "a.jsonl.1"),
        lambda made: "\n".join(map(_line, made)).encode(),
    ),
    "JSON lines under .json": (("a.json",), lambda made: "".join(f"{_line(row)}\n" for row in made).encode()),
    "JSON array": (
        ("a.json", "part-00000"),
        lambda made: json.dumps([{"text": row} for row in made], indent=len(made) % 3 or None).encode(),
    ),
    "Parquet": (("a.parquet", "a.pq", "a"), _parquet),
    "Arrow stream": (("a.arrow", "a.feather", "a"), lambda made: _arrow(made, pa.ipc.new_stream)),
    "Arrow file": (("a.arrow", "a.feather", "a"), lambda made: _arrow(made, pa.ipc.new_file)),
}
JSON = ("JSON lines", "JSON lines under .json", "JSON array")
COLUMNS = ("Parquet", "Arrow stream", "Arrow file")


def _png() -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", 2, 2, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(6))) + chunk(b"IEND", b"")


def _numpy(save_it: Callable[..., None]) -> bytes:
    file = io.BytesIO()
    save_it(file, np.arange(300, dtype=np.uint16))
    return file.getvalue()


def _sqlite() -> bytes:
    with sqlite3.connect(":memory:") as base:
        base.execute("create table documents (text)")
        base.execute("insert into documents values ('a document')")
        base.commit()
        return base.serialize()


def _archive(kind: str) -> bytes:
    file = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(file, "w") as zipped:
            zipped.writestr("a.txt", "a document")
    else:
        with tarfile.open(fileobj=file, mode="w") as tar:
            tar.addfile(tarfile.TarInfo("a.txt"))
    return file.getvalue()


def _megatron() -> bytes:
    return b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, 8, 1, 2) + struct.pack("<iqqq", 300, 0, 0, 1)


#: Forms that are refused: the suffixes that they have elsewhere, and their bytes.
FOREIGN: dict[str, tuple[tuple[str, ...], Callable[[], bytes]]] = {
    "a table": ((".csv", ".tsv"), lambda: b"text,n\nfirst,1\nsecond,2\n"),
    "Megatron's index": ((".idx", "", ".txt"), _megatron),
    "token ids": ((".bin", "", ".txt", ".data"), lambda: np.arange(65_000, 65_500, dtype="<u2").tobytes()),
    "NumPy": ((".npy", "", ".bin"), lambda: _numpy(np.save)),
    "several of NumPy": ((".npz", ".zip", ""), lambda: _numpy(np.savez)),
    "PNG": ((".png", "", ".jpg", ".jsonl"), _png),
    "PDF": ((".pdf", "", ".txt"), lambda: b"%PDF-1.7\n1 0 obj\n<<>>\nendobj\ntrailer\n%%EOF\n"),
    "SQLite": ((".db", ".sqlite", "", ".json"), _sqlite),
    "pickle": ((".pkl", "", ".pt", ".txt"), lambda: pickle.dumps({"text": ["a document"]}, protocol=4)),
    "safetensors": ((".safetensors", "", ".txt"), lambda: save({"weight": np.arange(6, dtype=np.float32)})),
    "pointer": (
        (".txt", ".jsonl", ".json", ".parquet", ".arrow", ".jsonl.zst", ".bin", ""),
        lambda: b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 5\n",
    ),
    "HTML": (
        (".jsonl", ".json", ".parquet", ".arrow", ".jsonl.gz", ".json.zst", ".txt.xz"),
        lambda: b"<!doctype html>\n<title>404 Not Found</title>\n",
    ),
    "zip": ((".zip", "", ".docx", ".txt", ".jsonl"), lambda: _archive("zip")),
    "tar": ((".tar", "", ".tgz", ".txt"), lambda: _archive("tar")),
    "GGUF": ((".gguf", ""), lambda: b"GGUF\x03\x00\x00\x00" + bytes(16)),
    "HDF5": ((".h5", ".hdf5", ""), lambda: b"\x89HDF\r\n\x1a\n" + bytes(40)),
    "ORC": ((".orc", ""), lambda: b"ORC\x0a\x0b" + b"\x80\x81" * 9),
    "Avro": ((".avro", ""), lambda: b"Obj\x01\x02\x16avro.schema" + b"\x80\x81"),
    "UTF-16": ((".txt", "", ".jsonl", ".json"), lambda: '{"text": "naïve"}\n'.encode("utf-16")),
    "LZ4": ((".lz4", "", ".jsonl"), lambda: b"\x04\x22\x4d\x18" + bytes(range(90))),
    "WAV": ((".wav", ""), lambda: b"RIFF$\x00\x00\x00WAVEfmt \x10\x00\x00\x00"),
    "part of a download": ((".jsonl.part", ".json.crdownload", ".txt.aria2"), lambda: b'{"text": "a document"}\n'),
}


def make(rng: random.Random, folder: Path, form: str, sound: bool = False) -> Made:
    """A corpus of a form of `READ` or `FOREIGN` in a new folder; a sound one is neither damaged nor named wrongly."""
    folder.mkdir(parents=True)
    if form in FOREIGN:
        return _foreign(rng, folder, form)
    names, write = READ[form]
    name, documents = rng.choice(names), rows(rng)
    data, damage = write(documents), "none" if sound else rng.choice(DAMAGE)
    made: list[bytes] | None = ["\n".join(documents).encode()] if form == "text" else [d.encode() for d in documents]
    before = data
    if damage in ("empty", "NUL", "half a character", "BOM", "CRLF", "Latin-1"):
        data = _damaged(data, damage, form)
    packed = rng.choice(["", "", *COMPRESS]) if form not in COLUMNS else ""
    if packed:
        data = COMPRESS[packed](data)
    if damage in ("cut off", "flipped"):
        data = _broken(rng, data, damage)
    lies = packed and not sound and rng.random() < 0.25
    given = rng.choice([each for each in COMPRESS if each != packed]) if lies else packed
    if packed and not lies and rng.random() < 0.3:
        given = ""  # known by its content
    (folder / f"{name}{given}").write_bytes(data)
    what = f"{form} as {name}{given}, compressed as {packed or 'nothing'}, {damage}"
    if lies or (packed and damage in ("cut off", "flipped")):
        made = None
    elif damage != "none" and form in COLUMNS:
        return Made(folder, what, None, either=damage == "flipped" or (damage == "empty" and name == "a"))
    elif damage != "none":
        content = data if damage in ("cut off", "flipped") else _damaged(before, damage, form)
        made = _oracle(content, form, name)
        if name in ("part-00000", "a.jsonl.1") and damage in ("cut off", "flipped", "NUL", "empty"):
            return Made(folder, what, made, either=True)  # what is left may begin as text does
    return _beside(rng, folder, made, what, form)


def _foreign(rng: random.Random, folder: Path, form: str) -> Made:
    suffixes, write = FOREIGN[form]
    suffix, data = rng.choice(suffixes), write()
    packed = (
        rng.choice(["", "", *COMPRESS]) if not suffix.endswith((".gz", ".zst", ".xz")) and form != "pointer" else ""
    )
    if packed:
        data = COMPRESS[packed](data)
    (folder / f"b{suffix}{packed}").write_bytes(data)
    if rng.random() < 0.5:
        (folder / "a.jsonl").write_text('{"text": "a document"}\n')
    return Made(folder, f"{form} as b{suffix}{packed}", None)


def _beside(rng: random.Random, folder: Path, made: list[bytes] | None, what: str, form: str) -> Made:
    """With files that accompany a corpus, or that of another form which is read as well."""
    choice = rng.choice(["nothing", "nothing", "companions", "text", "lines"])
    if choice == "companions":
        for name, data in COMPANIONS.items():
            if form != "text" or not name.endswith(".json"):
                (folder / name).write_bytes(data)
        if form == "text" and made is not None:  # a text as others
            here = sorted(path.name for path in folder.iterdir())
            made = [COMPANIONS.get(name, made[0]) for name in here]
    elif choice != "nothing":
        name = "zz.txt" if choice == "text" else "zz.jsonl"
        (folder / name).write_text("more" if choice == "text" else '{"text": "more"}')
        made = None if made is None else [*made, b"more"]
    return Made(folder, f"{what}, beside {choice}", made or None)


def _damaged(data: bytes, damage: str, form: str) -> bytes:
    if damage == "empty":
        return b""
    if damage == "NUL":
        return data[:5] + b"\0" + data[5:]
    if damage == "BOM":
        return b"\xef\xbb\xbf" + data
    if damage == "CRLF":
        return data.replace(b"\n", b"\r\n")
    if damage == "half a character":
        half = b'{"text": "half \\ud83d"}'
        return (
            data + b"\n\xed\xa0\xbd"
            if form == "text"
            else data[:-1] + b"," + half + b"]"
            if data[:1] == b"["
            else (data.rstrip(b"\n") + b"\n" + half)
        )
    return data + b"\n" + "é".encode("latin-1")


def _broken(rng: random.Random, data: bytes, damage: str) -> bytes:
    if damage == "cut off":
        return data[: rng.randint(min(len(data) - 1, 24), len(data) - 1)]
    at = rng.randint(len(data) // 3, 2 * len(data) // 3)
    return data[:at] + bytes([data[at] ^ (1 << rng.randint(0, 7))]) + data[at + 1 :]


def _oracle(data: bytes, form: str, name: str) -> list[bytes] | None:
    """What plain bytes are, read in the plainest way."""
    try:
        if not data and form != "text":
            return []  # as a program writes that has no records for a part
        text = data.decode("utf-8-sig" if form != "text" else "utf-8")
        if form == "text":
            return None if "\0" in text else [data]
        if form == "JSON array":
            found = json.loads(text)
        elif name == "a.json":
            found, at = [], 0
            while text[at:].strip(" \t\r\n"):
                at += len(text[at:]) - len(text[at:].lstrip(" \t\r\n"))
                value, at = json.JSONDecoder().raw_decode(text, at)
                found.append(value)
        else:
            found = [json.loads(line) for line in text.split("\n") if line.strip(" \t\r")]
        return [each["text"].encode() for each in found]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
