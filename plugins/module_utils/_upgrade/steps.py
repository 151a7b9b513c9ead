# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The steps that bring one node to a release, and those back; and how a look at the node shows that one is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Optional

from .._release.versions import version_of

FENCE, PACKAGES, DRIVER, PYTORCH = "fence", "packages", "driver", "pytorch"
HEALTH, PASSPORT, UNFENCE = "health", "passport", "unfence"
#: One for each card, named with the card's address behind it.
FIRMWARE = "firmware"
#: What a fence of an upgrade says; its step is the release.
REASON = "it is upgraded"

SAID = {
    FENCE: "take the node out of service; its jobs save a checkpoint and leave",
    PACKAGES: "bring the package set to {release}, and hold it",
    DRIVER: "take the driver out, and load that of {release}; no boot",
    PYTORCH: "install the PyTorch of {release}",
    HEALTH: "test the node at depth standard",
    PASSPORT: "issue its passport",
    UNFENCE: "give the node back to jobs",
}


def up(cards: Sequence[str], pytorch: bool) -> tuple[str, ...]:
    """The way to the release; ``cards`` are the addresses of those whose firmware is flashed, one at a time."""
    flash = tuple(f"{FIRMWARE} {address}" for address in cards)
    return (FENCE, PACKAGES, DRIVER, *flash, *([PYTORCH] if pytorch else []), HEALTH, PASSPORT, UNFENCE)


def back(begun: Sequence[str], planned: Sequence[str]) -> Optional[tuple[str, ...]]:
    """The way back after these steps of the way up were begun; None where only a person knows one.

    Firmware is not flashed back: nothing is known of older images on a card that had newer ones. A node that was only
    fenced is as it was, and is still tested before it returns. One that may be in service again is fenced first.
    """
    first = (FENCE,) if UNFENCE in begun else ()
    if any(is_flash(each) for each in begun):
        return first or None
    found: list[str] = [*first, *([PACKAGES, DRIVER] if PACKAGES in begun else [])]
    if PACKAGES in begun and PYTORCH in planned:
        found.append(PYTORCH)
    return (*found, HEALTH, PASSPORT, UNFENCE)


def leads_home(way: Sequence[str]) -> bool:
    """Whether a way back ends in service; the other one takes the node out of service for a person."""
    return UNFENCE in way


def is_flash(step: str) -> bool:
    """Whether a step flashes a card."""
    return step.startswith(f"{FIRMWARE} ")


def said(step: str, release: str) -> str:
    """A step in words."""
    if is_flash(step):
        address = step.partition(" ")[2]
        return f"take the driver out, flash the preboot firmware of {address} alone, load the driver and read it back"
    return SAID[step].format(release=release)


def is_done(step: str, wanted: Mapping[str, Any], look: Mapping[str, Any]) -> Optional[bool]:
    """Whether a look at the node shows that a step is done; None where no look can tell.

    ``wanted`` is what the way leads to: ``release``, ``firmware``, ``packages`` with versions, whether ``exact``, and
    with it ``held``. ``look`` is what the node shows now: ``packages``, ``held``, ``driver``, ``plugin``, ``fenced``,
    ``jobs`` that run, and ``firmware``.
    """
    if step in (HEALTH, PASSPORT):
        return None
    if step == FENCE:
        return bool(look.get("fenced")) and not look.get("jobs")
    if step == UNFENCE:
        # Without its fence a node may still lack the jobs that are to start again: repeated, it starts those alone.
        return False if look.get("fenced") else None
    if step == DRIVER:
        return version_of(look.get("driver")) == version_of(wanted["release"])
    if step == PYTORCH:
        return version_of(look.get("plugin")) == version_of(wanted["release"])
    if is_flash(step):
        flashed = (look.get("firmware") or {}).get(step.partition(" ")[2], "")
        return bool(wanted.get("firmware")) and wanted["firmware"] in flashed
    packages = look.get("packages") or {}
    if wanted.get("exact"):
        return packages == wanted["packages"] and sorted(look.get("held") or []) == sorted(wanted.get("held") or [])
    return all(packages.get(name) == version for name, version in wanted["packages"].items())
