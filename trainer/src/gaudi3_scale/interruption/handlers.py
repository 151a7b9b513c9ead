"""Keeps Lightning's own SIGTERM handler out of a Trainer.

Lightning 2.6 broadcasts from inside the handler: a rank that is told alone waits there for others, which wait for it in
another collective (seen: two ranks, SIGTERM to one, neither ended within 26 seconds). It broadcasts before every batch
besides, with a device synchronisation, and swallows the error if a rank is gone.
"""

from __future__ import annotations

from typing import Any


def own_signals(trainer: Any) -> None:
    """Leave signals to `Notices`: for a Trainer, of `lightning.pytorch` or its twin, that has not begun to fit."""
    connector: Any = getattr(trainer, "_signal_connector", None)
    loop: Any = getattr(getattr(trainer, "fit_loop", None), "epoch_loop", None)
    if not hasattr(connector, "register_signal_handlers") or not hasattr(loop, "_broadcast_sigterm_tensor"):
        raise RuntimeError("lightning handles signals in another way than 2.6 does: review own_signals")
    connector.register_signal_handlers = _nothing
    loop._broadcast_sigterm_tensor = _nothing


def _nothing() -> None:
    """Instead of what Lightning would do."""
