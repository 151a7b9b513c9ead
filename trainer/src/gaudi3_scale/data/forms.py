"""What form a file of documents has, by its content and its name. What is neither text nor records is refused.

A file that is read in another form than it has still trains a model, on the wrong bytes, and nobody notices.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gaudi3_scale.data.compressed import SUFFIXES as COMPRESSED
from gaudi3_scale.data.compressed import compression_of, open_bytes
from gaudi3_scale.data.conversation import kind as kind_of
from gaudi3_scale.data.json_file import CutOffError, NotJsonError, json_records
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.git_lfs import is_pointer

HEAD_BYTES = 2**16
RECORDS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".jsonlines": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
}
#: What begins with these bytes, in the words of the sentence that refuses it.
BINARY = {
    b"MMIDIDX\x00\x00": "the index of a data set that Megatron-LM has tokenised",
    b"\x93NUMPY": "an array of NumPy",
    b"PK\x03\x04": "a zip archive",
    b"7z\xbc\xaf\x27\x1c": "a 7-Zip archive",
    b"Rar!\x1a\x07": "a RAR archive",
    b"\x04\x22\x4d\x18": "compressed by LZ4",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"GIF8": "a picture",
    b"%PDF-": "a PDF document",
    b"SQLite format 3\x00": "a database of SQLite",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
    b"Obj\x01": "an Avro file",
    b"ORC": "an ORC file",
    b"WARC/": "an archive of web pages (WARC)",
    b"\x1e{": "a sequence of JSON texts (RFC 7464)",
    b"/annex/objects/": "a pointer of git-annex and not the data ('git annex get' fetches that)",
    b"-----BEGIN PGP MESSAGE": "encrypted by PGP",
    b"age-encryption.org/": "encrypted by age",
    b"\x80\x02": "a pickle of Python",
    b"\x80\x04": "a pickle of Python",
    b"\x80\x05": "a pickle of Python",
}
#: What the name says, where the content says nothing.
NAMED = {
    ".bin": "a binary file, such as token ids that Megatron-LM or nanoGPT has prepared for another tokenizer",
    ".idx": "the index of a binary file",
    ".npy": "an array of NumPy",
    ".npz": "arrays of NumPy",
    ".csv": "a table",
    ".tsv": "a table",
    ".tar": "a tar archive",
    ".tgz": "a tar archive",
    ".zip": "a zip archive",
    ".pt": "a file of PyTorch",
    ".pth": "a file of PyTorch",
    ".pkl": "a pickle of Python",
    ".pickle": "a pickle of Python",
    ".safetensors": "a file of tensors",
    ".gguf": "a file of weights",
    ".h5": "an HDF5 file",
    ".hdf5": "an HDF5 file",
    ".tfrecord": "a file of TensorFlow",
    ".tfrecords": "a file of TensorFlow",
    ".mds": "a shard of MosaicML Streaming",
    ".avro": "an Avro file",
    ".orc": "an ORC file",
    ".pdf": "a PDF document",
    ".docx": "a document of Word",
    ".dvc": "a pointer of DVC and not the data ('dvc pull' fetches that)",
    ".gpg": "encrypted by PGP",
    ".pgp": "encrypted by PGP",
    ".age": "encrypted by age",
    ".torrent": "a description of a download",
    ".metalink": "a description of a download",
    ".meta4": "a description of a download",
    ".lz4": "compressed by LZ4",
    ".lzma": "compressed by LZMA",
    ".z": "compressed by compress",
    ".br": "compressed by Brotli",
    ".7z": "a 7-Zip archive",
    ".rar": "a RAR archive",
    **dict.fromkeys(
        (".part", ".partial", ".filepart", ".incomplete", ".crdownload", ".aria2"), "an unfinished download"
    ),
}
ADVICE = (
    "convert it to text, JSON lines or Parquet, take it out of data.source, or set data.format to text to train on its "
    "bytes."
)
#: Files that accompany records and hold none.
COMPANION = re.compile(
    r"(README|LICEN[CS]E|COPYING|NOTICE|CITATION|CHANGELOG|DATASHEET)([._-].*)?|_SUCCESS|_(started|committed)_.*|"
    r"_metadata|_common_metadata|state\.json|dataset_infos?\.json|.*\.(crc|md5|sha256|sha512|asc|sig)|(MD5|SHA(1|256|512))SUMS?(\.txt)?",
    re.IGNORECASE,
)


JSON = re.compile(rb'(?:\xef\xbb\xbf)?\s*(?:\{\s*"|(\[)\s*(?:\{\s*"|\[|"))')
"""What an object of JSON begins with, or an array of objects, arrays or strings."""
UNTOLD = re.compile(r"(\.(v?\d+|data|dat|out|new|old|orig|bak))?", re.IGNORECASE)
"""A suffix that says nothing, or none. Behind another one, such as that of a program, an object may well be text."""
AS_TEXT = frozenset({".txt", ".text", ".md", ".rst"})
"""Suffixes of text, whatever the name has before them."""
LONGEST_LINE = 2**26
"""Bytes of a first line that is looked at whole; a longer one is read as an object among others."""


@dataclass(frozen=True, slots=True)
class Form:
    """How a file is read."""

    kind: str
    """text, jsonl, json, parquet or arrow."""
    compression: str | None
    strict: bool
    """Whether text has to be UTF-8 without NUL bytes; not where data.format says that it is text."""

    @property
    def of_records(self) -> bool:
        """It is known where a document begins and ends within it."""
        return self.kind != "text"

    @property
    def seekable(self) -> bool:
        """A reader can begin at any line of it."""
        return self.kind == "jsonl" and self.compression is None


def form_of(path: Path, given: str = "auto", names: Sequence[str] = ("text",)) -> Form:
    """The form of a file.

    Args:
        given: data.format, which is believed where it is not auto.
        names: The field with the text of a record, by each name that it may have.

    Raises:
        ConfigError: The file has no form that is read, or another one than its name says.
    """
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read ({error.strerror}): give this user the right to, or take it out of data.source."
        ) from None
    if is_pointer(head) and given != "text":
        raise ConfigError(f"{path} is a pointer of Git LFS and not the data: run 'git lfs pull' in its folder.")
    compression = compression_of(path, head, by_content=given != "text")
    if given != "auto":
        return Form(given, compression, given != "text")
    if compression is not None:
        with open_bytes(path, compression) as file:
            head = file.read(HEAD_BYTES)
    return Form(_kind(path, head, compression, names), compression, True)


def is_companion(path: Path) -> bool:
    """Whether a file beside records is none of them, by its name, such as README.md or _SUCCESS."""
    suffixes = [each.lower() for each in path.suffixes if each.lower() not in COMPRESSED]
    holds = bool(suffixes) and suffixes[-1] in RECORDS and suffixes[-1] != ".json"
    return not holds and COMPANION.fullmatch(path.name) is not None


def _kind(path: Path, head: bytes, compression: str | None, names: Sequence[str]) -> str:
    suffixes = [each.lower() for each in path.suffixes]
    while suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    suffix = suffixes[-1] if suffixes else ""
    known = RECORDS.get(suffix)
    if known in ("parquet", "arrow"):
        return known  # their readers say what is wrong with one
    if head.startswith(b"PAR1"):
        return _expect("a Parquet file", "parquet", known, path)
    if head.startswith((b"ARROW1\x00\x00", b"\xff\xff\xff\xff")):
        return _expect("an Arrow file", "arrow", known, path)
    what = next((each for magic, each in BINARY.items() if head.startswith(magic)), None)
    if head[257:262] == b"ustar":
        what = "a tar archive"
    if what is None and known is None:
        what = NAMED.get(suffix)
    if what is not None:
        raise ConfigError(f"{path} is {what}, which is not read: {ADVICE}")
    if known is not None:
        return known
    inner = next((each for each in suffixes[:-1] if each in RECORDS), None) if suffix not in AS_TEXT else None
    kind = _by_content(path, head, compression, names, suffix)
    if kind == "text" and inner is not None:
        raise ConfigError(
            f"{path} has {inner} in its name, and begins with no record: put the parts of a divided file together, "
            "mend its beginning, or set data.format to text to train on its bytes."
        )
    return kind


def _by_content(path: Path, head: bytes, compression: str | None, names: Sequence[str], suffix: str) -> str:
    begin = JSON.match(head)
    if begin is None:
        return "text"
    try:
        kind, first = _first_value(path, compression, lines=begin[1] is None)
    except CutOffError:
        if not UNTOLD.fullmatch(suffix):
            return "text"
        raise ConfigError(
            f"{path} begins with JSON and ends within its first value: download it again, or set data.format to text."
        ) from None
    if kind == "text":
        return kind
    record = first if isinstance(first, dict) else {}
    field = next((name for name in names if name in record), None)
    if field is None and UNTOLD.fullmatch(suffix):
        has = f"an object without the field {names[0]!r}, only {', '.join(map(repr, record))[:300]}"
        raise ConfigError(
            f"{path} begins with JSON, of which the first value is {has if record else kind_of(first)}: set data.field "
            "to the field with the text of each object, or data.format to text."
        )
    if field is not None and suffix in (".txt", ".text"):
        raise ConfigError(
            f"{path} is named as text, and it begins with a JSON object with the field {field!r}: set data.format to "
            f"{kind} or to text, or rename it."
        )
    return "text" if field is None else kind


def _expect(what: str, kind: str, known: str | None, path: Path) -> str:
    if known is not None:
        raise ConfigError(
            f"{path} is {what} by its content, and its name says otherwise: give it the name of what it is."
        )
    return kind


def _first_value(path: Path, compression: str | None, lines: bool) -> tuple[str, Any]:
    """The kind of a file that begins like JSON, and its first value. With `lines` it may be of an object per line.

    Raises:
        CutOffError: It ends within that value.
    """
    if lines:
        with open_bytes(path, compression) as file:
            line = file.readline(LONGEST_LINE).removeprefix(b"\xef\xbb\xbf")
        with suppress(ValueError, RecursionError):
            if isinstance(found := json.loads(line), dict):
                return "jsonl", found
    with open_bytes(path, compression) as file:
        try:
            values = json_records(file, path)
            _, first = next(values)
        except NotJsonError:
            return "text", None
        try:
            if not isinstance(first, dict):
                next(values, None)  # [[ and [" begin texts, too
        except ConfigError:
            return "text", None
    return "json", first
