# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The firewall's table as nft lists it, compared with what nft listed right after the table was loaded.

Versions of nft write the same ruleset in different words, so the text that was loaded is not what is listed. The
listing of that moment is kept in a record beside the ruleset. Whatever somebody changes in the table makes another one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional

TABLE = "gaudi3_scale"
#: Where the record lies on a node.
RECORD = "/etc/gaudi3-scale/firewall.loaded.json"
#: What nft says of a table that does not exist.
NO_TABLE = "No such file or directory"


@dataclass(frozen=True)
class Listing:
    """The version of nft that wrote a listing, and what the table has, each as a line of JSON, in nft's order."""

    version: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Record:
    """What was loaded: the digest of the ruleset, the program that loaded it, and its listing."""

    nft: str
    ruleset: str
    listing: Listing


def record_path(ruleset_path: str) -> str:
    """Where the record of a ruleset's file lies."""
    return os.path.splitext(ruleset_path)[0] + ".loaded.json"


def list_argv(nft: str) -> list[str]:
    """The command whose output ``parse`` reads."""
    return [nft, "-j", "list", "table", "inet", TABLE]


def parse(output: str) -> Optional[Listing]:
    """What nft listed, without what changes by itself (handles, counters); None for anything but its JSON."""
    try:
        objects = json.loads(output)["nftables"]
        version = next(str(each["metainfo"]["version"]) for each in objects if "metainfo" in each)
        lines = [json.dumps(_steady(each), sort_keys=True) for each in objects if "metainfo" not in each]
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration, RecursionError):
        return None
    return Listing(version, tuple(lines))


def _steady(value: Any) -> Any:
    if isinstance(value, list):
        return [_steady(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: "counter" if key == "counter" and set(each or ()) == {"packets", "bytes"} else _steady(each)
        for key, each in value.items()
        if key != "handle"
    }


def record_text(record: Record) -> str:
    """The record's file."""
    kept = {"nft": record.nft, "ruleset": record.ruleset, "version": record.listing.version}
    return json.dumps({**kept, "table": record.listing.lines}, indent=1, sort_keys=True) + "\n"


def read_record(path: str) -> Optional[Record]:
    """The record of a file; None where there is none, or nothing that can be understood."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        listing = Listing(str(found["version"]), tuple(str(line) for line in found["table"]))
        return Record(str(found["nft"]), str(found["ruleset"]), listing)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def drift(wanted: Sequence[str], live: Sequence[str]) -> list[str]:
    """What differs between two listings, such as ``set cluster_v4`` and ``rules of chain input``."""
    different = [line for line in (*wanted, *live) if wanted.count(line) != live.count(line)]
    if not different and list(wanted) != list(live):
        return ["the order"]
    return list(dict.fromkeys(_part(line) for line in different))


def _part(line: str) -> str:
    """Which part of the table a line of a listing is about."""
    try:
        ((kind, found),) = json.loads(line).items()
        return f"rules of chain {found['chain']}" if kind == "rule" else f"{kind} {found['name']}"
    except (ValueError, KeyError, TypeError, AttributeError):
        return "something else"
