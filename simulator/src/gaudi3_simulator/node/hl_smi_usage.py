"""What ``hl-smi`` answers to a call that it does not understand."""

from __future__ import annotations


class UsageError(Exception):
    """An option that hl-smi does not have, or a value that it does not take."""
