# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Files and folders of a node that a job's configuration names, and that the job reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

#: Keys of the trainer's configuration whose value may be a path that the job reads. [] stands for each item of a list.
KEYS = (
    "model.name",
    "data.source",
    "data.mixture[].source",
    "data.tokenizer",
    "checkpoint.signing_key_file",
)


def config_paths(config: Mapping[str, Any]) -> dict[str, str]:
    """The absolute paths that a configuration names, each behind its key; other values name shapes or buckets."""
    found = {}
    for key in KEYS:
        for name, value in _values(config, key.split("."), ""):
            if isinstance(value, str) and value.startswith("/"):
                found[name] = value
    return found


def _values(value: object, keys: list[str], name: str) -> Iterator[tuple[str, object]]:
    if not keys:
        yield name, value
        return
    key = keys[0].removesuffix("[]")
    inner = value.get(key) if isinstance(value, Mapping) else None
    where = f"{name}.{key}" if name else key
    if key == keys[0]:
        yield from _values(inner, keys[1:], where)
    elif isinstance(inner, (list, tuple)):
        for number, each in enumerate(inner):
            yield from _values(each, keys[1:], f"{where}[{number}]")
