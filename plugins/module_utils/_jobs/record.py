# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The one reader of ``job.json``, which says what was started.

It is root's. It is still read with a check of every type: a file may be cut off or edited by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from .._kinds import Kind, count, mapping, moment, plain, text, texts, truth
from .rules import HOST

_DIGEST = re.compile(r"[0-9a-f]{64}")
#: What systemd calls one run of a unit: 128 bits, as sd-id128(3) prints them.
_INVOCATION = re.compile(r"[0-9a-f]{32}")


def digest(value: object) -> Any:
    """A SHA-256 in hexadecimal digits."""
    return value if isinstance(value, str) and _DIGEST.fullmatch(value) else None


def _host(value: object) -> Any:
    return value if isinstance(value, str) and HOST.fullmatch(value) and len(value) <= 255 else None


def _ports(value: object) -> dict[str, Any]:
    """Of a trainer's configuration what other jobs of the node have to know."""
    metrics = mapping(mapping(value).get("metrics"))
    kinds: dict[str, Kind] = {"enabled": truth, "port": count}
    return {"metrics": _known(metrics, kinds)} if metrics else {}


def _known(given: Mapping[str, Any], kinds: Mapping[str, Kind]) -> dict[str, Any]:
    """What is of its kind; everything else is as if nobody had said it."""
    read = {name: kind(given[name]) for name, kind in kinds.items() if name in given}
    return {name: value for name, value in read.items() if value is not None}


_SPECIFICATION: dict[str, Kind] = {
    "name": text,
    "head_address": _host,
    "rdzv_port": count,
    "spares": count,
    "min_nodes": count,
    "nodes": texts,
    "command": texts,
    "chdir": text,
    "config": _ports,
    "container": lambda value: plain(value, 2) if isinstance(value, Mapping) else None,
}
_SHARE: dict[str, Kind] = {"config": _ports, "is_head": truth}
_SLURM: dict[str, Kind] = {"job": count, "user": text}
_FIELDS: dict[str, Kind] = {
    "schema": count,
    "spec_sha256": digest,
    "config_sha256": digest,
    "started_at": moment,
    "stopped_at": moment,
    "specification": lambda value: _known(mapping(value), _SPECIFICATION),
    "share": lambda value: _known(mapping(value), _SHARE),
    "slurm": lambda value: _known(mapping(value), _SLURM),
}


def record_of(value: object, invocations: Iterable[str] = ()) -> dict[str, Any]:
    """What is known of the last start of a job; what is missing or odd is left out.

    ``spec_sha256`` and ``config_sha256`` (64 hexadecimal digits), ``started_at`` and ``stopped_at`` (seconds since
    1970), ``specification`` (of its options those that others ask for), ``share`` (``config.metrics`` and ``is_head``),
    ``slurm`` (``job``, its number there, and ``user``; only of a job that was submitted to Slurm) and ``invocations``:
    what systemd called the job's last run, on each node that has its folder.
    """
    runs = {found for each in invocations if (found := each.strip()) and _INVOCATION.fullmatch(found)}
    return {**_known(mapping(value), _FIELDS), **({"invocations": sorted(runs)} if runs else {})}
