"""What a job's time goes to, as the page names it. `gaudi3_scale.throughput.goodput` counts it."""

from __future__ import annotations

LABELS = {
    "compute": "kept steps",
    "data_wait": "data",
    "checkpoint_stall": "checkpoints",
    "evaluation": "evaluation",
    "startup": "start-up",
    "restart_loss": "restarts",
    "other": "other",
}
PARTS = {
    "compute": "steps whose result was kept",
    "data_wait": "waiting for the next batch",
    "checkpoint_stall": "training stood still for a checkpoint",
    "evaluation": "evaluation",
    "startup": "from the start of each process to its first step",
    "restart_loss": "steps done again, and time in which no process ran",
    "other": "everything else: logging, agreement, the end of the job",
}
"""The words of the trainer, which a monitoring host does not have."""
