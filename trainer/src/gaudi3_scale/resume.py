"""Where to resume: the newest checkpoint that any node has, brought to every node that lacks it. No shared storage."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gaudi3_scale.checkpoint import MANIFEST, Checkpoint, CheckpointStore
from gaudi3_scale.distributed import Team
from gaudi3_scale.errors import TrainerError


@dataclass(frozen=True)
class _Offer:
    step: int
    fingerprint: str
    manifest: dict[str, Any]
    metrics_size: int


def agree(team: Team, store: CheckpointStore, metrics: Path) -> Checkpoint | None:
    """The checkpoint all ranks resume from, present and whole on every node; None = start anew.

    Among different checkpoints of the newest step, that of the lowest rank counts. A node that receives the checkpoint
    receives the source's metrics.jsonl too, so that its own has no gap.
    """
    offer = None
    if team.writer:
        store.clean()
        own = store.newest()
        if own is not None:
            size = metrics.stat().st_size if metrics.exists() else 0
            offer = _Offer(own.step, own.fingerprint, own.manifest, size)
    offers = team.gather(offer)
    made = [o for o in offers if o is not None]
    if not made:
        return None
    newest = max(o.step for o in made)
    source, chosen = next((r, o) for r, o in enumerate(offers) if o is not None and o.step == newest)
    writers = team.gather(team.writer)
    lacking = [
        rank
        for rank, writes in enumerate(writers)
        if writes and ((o := offers[rank]) is None or o.fingerprint != chosen.fingerprint or o.step != newest)
    ]
    if lacking and team.writer:
        _send(team, store, metrics, chosen, source, lacking)
    team.barrier()
    return Checkpoint(newest, store.path(newest), chosen.manifest)


def _send(team: Team, store: CheckpointStore, metrics: Path, offer: _Offer, source: int, lacking: list[int]) -> None:
    """Broadcast from the source to all writers; those that have the checkpoint already throw it away."""
    rank = team.topology.rank
    here = store.path(offer.step) if rank == source else store.begin(offer.step)
    for name, entry in offer.manifest["files"].items():
        if Path(name).name != name or name == MANIFEST:
            raise TrainerError(f"The checkpoint {store.path(offer.step)} lists a file {name!r} outside itself.")
        team.share_file(source, here / name, entry["size"])
    # The step's line was written before its checkpoint, so what the source has by now covers it.
    received = metrics if rank == source else here / "metrics.jsonl"
    if rank != source or offer.metrics_size:
        team.share_file(source, received, offer.metrics_size)
    if rank == source:
        return
    if rank in lacking:
        received.replace(metrics)
        for name in offer.manifest["files"]:
            with (here / name).open("rb") as file:
                os.fsync(file.fileno())
        store.commit(offer.step, here, offer.manifest)
        store.verify(offer.step)
    else:
        store.clean()
