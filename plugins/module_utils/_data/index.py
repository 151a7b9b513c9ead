# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The index of a prepared set of training data: which files it has, how large each is, and its digest."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from .._refusal import Refusal

FORMAT = 2
INDEX = "index.json"
CHECKED = "checked.json"
TOKENIZER = "tokenizer"
WIDTHS = {"uint8": 1, "uint16": 2, "uint32": 4}
LARGEST_INDEX = 64 * 2**20
"""Bytes: some hundred thousand files."""

_SHARD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,200}\.bin\Z")
LONGEST_KEY = 101
"""Characters of a set's name, so that files beside the set may have it in theirs."""
_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*\Z")
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")


class File(NamedTuple):
    """What a file of the set is by the index: bytes and SHA-256."""

    size: int
    sha256: str


def check_key(key: str) -> str:
    """The name of a set, if it is one that may stand in a path; Refusal if not."""
    if not _KEY.match(key):
        raise Refusal(
            f"{_short(key)} is no name of a set: letters, digits, - and _ are allowed; give a folder with index.json"
        )
    if len(key) > LONGEST_KEY:
        raise Refusal(
            f"The set's name has {len(key)} characters, and at most {LONGEST_KEY} are allowed: give its folder a "
            "shorter name"
        )
    return key


def read(text: bytes, where: str) -> dict[str, File]:
    """The files that an index names; Refusal where it is not one that can be believed. `where` is its path."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        raise Refusal(f"{where} is not JSON: prepare the data again with gaudi3-train prepare") from None
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        given = values.get("format") if isinstance(values, dict) else None
        raise Refusal(f"{where} has format {_short(given)}, and {FORMAT} is read: prepare the data again")
    dtype, shards = values.get("dtype"), values.get("shards")
    if not isinstance(dtype, str) or dtype not in WIDTHS:
        raise Refusal(f"{where} has dtype {_short(dtype)}, and {', '.join(WIDTHS)} are allowed: prepare the data again")
    if not isinstance(shards, list) or not shards:
        raise Refusal(f"{where} names no file of tokens: prepare the data again")
    found: dict[str, File] = {}
    for number, shard in enumerate(shards):
        for name, file in _files(shard, WIDTHS[dtype], f"{where}, shards[{number}]"):
            if name in found:
                raise Refusal(f"{where} names {name} twice: prepare the data again")
            found[name] = file
    return found


def total(files: dict[str, File]) -> int:
    """Bytes of all files."""
    return sum(file.size for file in files.values())


def _files(shard: Any, width: int, where: str) -> list[tuple[str, File]]:
    """The file of tokens and those beside it."""
    if not isinstance(shard, dict):
        raise Refusal(f"{where} is no mapping: prepare the data again")
    name = shard.get("file")
    if not isinstance(name, str) or not _SHARD.match(name):
        raise Refusal(f"{where} names the file {_short(name)}, and NAME.bin without a folder is allowed")
    tokens, documents = (_count(shard, each, where) for each in ("tokens", "documents"))
    stem = name[: -len(".bin")]
    files = [
        (name, File(tokens * width, _digest(shard, "sha256", where))),
        (f"{stem}.starts", File(documents * 8, _digest(shard, "starts_sha256", where))),
    ]
    if shard.get("learnt_sha256", "") != "":
        files.append((f"{stem}.learnt", File(tokens, _digest(shard, "learnt_sha256", where))))
    return files


def _count(shard: dict[str, Any], field: str, where: str) -> int:
    value = shard.get(field)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**60:
        raise Refusal(f"{where} has {field} {_short(value)}, and a whole number from 0 is allowed")
    return value


def _digest(shard: dict[str, Any], field: str, where: str) -> str:
    value = shard.get(field)
    if not isinstance(value, str) or not _SHA256.match(value):
        raise Refusal(f"{where} has {field} {_short(value)}, and a SHA-256 of 64 hexadecimal digits is allowed")
    return value


def _short(value: object) -> str:
    said = ascii(value)
    return said if len(said) <= 60 else f"{said[:57]}..."
