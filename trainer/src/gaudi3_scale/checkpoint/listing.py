"""What `gaudi3-train checkpoints` prints: every checkpoint of this node, read whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gaudi3_scale.checkpoint.manifest import DamagedCheckpointError
from gaudi3_scale.checkpoint.store import CheckpointStore
from gaudi3_scale.errors import ConfigError, TrainerError


@dataclass(frozen=True)
class Listed:
    """A checkpoint as it is found."""

    step: int
    size: int
    """Bytes of its files here."""
    good: bool
    condition: str
    """`verified`, or what is wrong."""


def listed(directory: Path) -> Iterator[Listed]:
    """The checkpoints below a job's output_dir, oldest first; ConfigError if it has none."""
    store = CheckpointStore(directory / "checkpoints", keep=1)
    steps = store.steps()
    if not steps:
        raise ConfigError(f"There are no checkpoints in {store.directory}: give a job's output_dir on this node.")
    for step in steps:
        size = sum(path.stat().st_size for path in store.path(step).iterdir() if path.is_file())
        try:
            manifest = store.verify(step).manifest
        except (DamagedCheckpointError, TrainerError) as error:
            yield Listed(
                step, size, False, f"damaged: {error}" if isinstance(error, DamagedCheckpointError) else str(error)
            )
            continue
        words = f"verified, {manifest.layout}"
        if len(manifest.here) < len(manifest.files):
            words += f", {len(manifest.here)} of {len(manifest.files)} files here"
        yield Listed(step, size, True, words)
