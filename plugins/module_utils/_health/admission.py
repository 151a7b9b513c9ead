# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Whether a node may start a job: its passport is checked on the controller, its present versions on the node.

The key stays on the controller. It says what is wrong with the passport, and which versions it holds for; the node
compares these with what it has.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from .._cards import pci
from .._hl_smi.card import read_cards
from .._hl_smi.command import HlSmi
from .._hl_smi.hl_smi import HlSmiError
from .._refusal import Refusal
from .passport import KEY, file_of, problem, read_key, versions_of
from .readings import HostReading, NodeReading

OFF, SHADOW, ENFORCE = "off", "shadow", "enforce"
MODES = (OFF, SHADOW, ENFORCE)


def of_the_controller(asked: Mapping[str, Any], node: str, now: int) -> dict[str, Any]:
    """What the controller adds to the option for a node: ``problem`` of its passport, and ``versions`` it holds for.

    In shadow mode a site without any passport is asked for none.
    """
    folder, depth = str(asked.get("folder") or ""), str(asked.get("depth") or "quick")
    if not folder and asked.get("mode") == ENFORCE:
        return {"problem": "no folder of passports is known, so set health_directory"}
    key_text = _read(os.path.join(folder, KEY)) if folder else None
    if key_text is None:
        if asked.get("mode") != ENFORCE:
            return {"mode": OFF}
        return {"problem": f"there is no key of passports in {folder}"}
    text = _read(os.path.join(folder, file_of(node)))
    try:
        versions = dict(json.loads(text or "")["passport"]["versions"])
    except (ValueError, KeyError, TypeError):
        versions = {}
    try:
        return {"problem": problem(text, read_key(key_text), node, now, versions, depth), "versions": versions}
    except Refusal as error:
        return {"problem": str(error).rstrip(".")}


def of_the_node(asked: Mapping[str, Any], hl_smi: HlSmi | None) -> str:
    """Why the node has no valid passport; empty where it has one. Asks hl-smi only where all else is in order."""
    if asked.get("problem"):
        return str(asked["problem"])
    wanted, found = dict(asked.get("versions") or {}), present_versions(hl_smi)
    changed = sorted(name for name in {*wanted, *found} if wanted.get(name) != found.get(name))
    if not changed:
        return ""
    was, present = (each.get(changed[0], "none") for each in (wanted, found))
    return f"{changed[0]} was {was} and is {present}"


def present_versions(hl_smi: HlSmi | None) -> dict[str, str]:
    """The versions that a passport holds for, as the node has them now; empty where they cannot be read."""
    if hl_smi is None:
        return {}
    try:
        cards = read_cards(hl_smi.query(), hl_smi.log(), {})
    except HlSmiError:
        return {}
    ordered = tuple(sorted(cards, key=lambda card: card.index))
    return versions_of(NodeReading(0.0, ordered, HostReading(driver_version=pci.driver_version("/sys"))))


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return None
