"""Checkpoints in a user's own Trainer."""

from __future__ import annotations

import lightning.pytorch as pl


class GaudiCheckpoint(pl.Callback):
    """Saves and resumes."""
