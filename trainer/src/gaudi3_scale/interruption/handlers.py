"""Keeps Lightning's own SIGTERM handler out of a Trainer.

Lightning 2.6 broadcasts from inside the handler: a rank that is told alone waits there for others, which wait for it in
another collective (seen: two ranks, SIGTERM to one, neither ended within 26 seconds). It broadcasts before every batch
besides, with a device synchronisation, and swallows the error if a rank is gone.
"""

from __future__ import annotations

from typing import Any

from gaudi3_scale.internals import without_signals


def own_signals(trainer: Any) -> None:
    """Leave signals to `Notices`: for a Trainer, of `lightning.pytorch` or its twin, that has not begun to fit."""
    without_signals(trainer)
