"""The card's generation."""

from __future__ import annotations

from enum import Enum, auto


class synDeviceType(Enum):
    """Generations by Synapse's names. Their numbers are not Synapse's: compare the members, not the values."""

    synDeviceGaudi = auto()
    synDeviceGaudi2 = auto()
    synDeviceGaudi3 = auto()


def _get_device_type() -> synDeviceType:
    return synDeviceType.synDeviceGaudi3
