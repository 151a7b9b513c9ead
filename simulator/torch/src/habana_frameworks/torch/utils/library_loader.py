"""Whether there is a card."""

from __future__ import annotations


def is_habana_available() -> bool:
    """As `torch.hpu.is_available`."""
    import habana_frameworks.torch.hpu as hpu

    return hpu.is_available()
