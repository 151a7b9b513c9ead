"""Nodes to plan for, as they answer."""

from __future__ import annotations

from typing import Any

from ansible_collections.gaudi3.scale.plugins.module_utils._upgrade.state import NodeState, of_answer

OLD, NEW = "1.22.0-740", "1.23.0-695"
NAMES = ("habanalabs-dkms", "habanalabs-firmware", "habanalabs-firmware-odm", "habanalabs-thunk")
FIRMWARE = "hl-gaudi3-1.23.0-fw-61.3.2-sec-9"
CARDS = tuple(f"0000:{place}:00.0" for place in ("19", "1a", "43"))


def node(**more: Any) -> NodeState:
    """A node of 1.22.0 with three cards; ``more`` is laid over its answer, versions over its versions."""
    versions: dict[str, Any] = {
        "system": "Ubuntu 22.04",
        "kernel": "6.8.0-60-generic",
        "generation": "gaudi3",
        "driver": "1.22.0-5f8fa9f",
        "packages": dict.fromkeys(NAMES, OLD),
        "preboot": "Preboot version hl-gaudi3-1.22.0-fw-61.3.2-sec-9",
        **more.pop("versions", {}),
    }
    return of_answer({"versions": versions, "cards": len(CARDS), "fence": None, "jobs": [], **more})


def flashed(release: str) -> dict[str, str]:
    """Each card's firmware."""
    return dict.fromkeys(CARDS, f"Preboot version hl-gaudi3-{release}-fw-61.3.2-sec-9")
