# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Prometheus' data while it runs: what it would find after a power cut, without its admin API and without a stop.

The API would let everybody who has the password delete series over the network, so the role leaves it off. A block
never changes. What is in no block yet is in the log (`wal`, and `wbl` for late samples), which only grows until a block
is made of it: the log is read first, so a block that comes meanwhile has samples twice and none is lost. Prometheus
drops a last line that was cut when it starts.
"""

from __future__ import annotations

import os
import re

from .._refusal import Refusal
from .manifest import Entry
from .tree import remove, take

_BLOCK = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
_LOG = re.compile(r"\d{8}|checkpoint\.\d{8}")
_LOGS = ("wal", "wbl")
_TRIES = 5


def copy(source: str, target: str, item: str) -> list[Entry]:
    """Copy it and say what it is; ``Refusal`` where it never stands still."""
    for _attempt in range(_TRIES):
        try:
            entries = take(source, target, item, names=())
            logs = {name: _segments(os.path.join(source, name)) for name in _LOGS if _is_folder(source, name)}
            for name, segments in logs.items():
                entries += take(os.path.join(source, name), os.path.join(target, name), item, name, segments)
            blocks = [name for name in sorted(os.listdir(source)) if _is_block(source, name)]
            for name in blocks:
                place = os.path.join(source, name)
                entries += take(place, os.path.join(target, name), item, name, link=True)
            if all({*segments} <= {*_segments(os.path.join(source, name))} for name, segments in logs.items()):
                return entries
        except FileNotFoundError:
            if not os.path.isdir(source):
                raise
        # A block was made of the log, or a larger one of blocks.
        remove(target)
    raise Refusal(f"{source} changed its blocks each time it was read: run again in a few minutes")


def _segments(folder: str) -> list[str]:
    return sorted(name for name in os.listdir(folder) if _LOG.fullmatch(name))


def _is_folder(source: str, name: str) -> bool:
    return os.path.isdir(os.path.join(source, name))


def _is_block(source: str, name: str) -> bool:
    return _BLOCK.fullmatch(name) is not None and os.path.exists(os.path.join(source, name, "meta.json"))
