"""Where to resume: the newest checkpoint whose files the nodes have between them. No shared storage is needed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from gaudi3_scale.checkpoint import Checkpoint, CheckpointStore, DamagedCheckpointError, Entry, Manifest
from gaudi3_scale.checkpoint.fetch import fetch
from gaudi3_scale.checkpoint.peers import Peers, Transfer
from gaudi3_scale.errors import TrainerError

Fingerprint = tuple[int, str, str]


@dataclass(frozen=True)
class _Found:
    """What a place has of a checkpoint."""

    manifest: Manifest
    good: frozenset[str]
    reasons: dict[str, str]


def agree(
    peers: Peers, store: CheckpointStore, metrics: Path | None = None, say: Callable[[str], None] = print
) -> Checkpoint | None:
    """The checkpoint all ranks resume from; None = start anew. Collective.

    A replicated one is whole on every node afterwards. Of a sharded one every node has the description; which shards
    it needs is known when the model is there, and `fetch.load` gets them then. Among different checkpoints of the same
    step, that of the lowest rank counts. A node that receives the checkpoint receives `metrics` too, so that its own
    has no gap.
    """
    mine = _own(store) if peers.writer else {}
    for fingerprint in _candidates(peers.gather(list(mine))):
        found = _look(store, mine.get(fingerprint))
        everyone = peers.gather(found)
        manifest = next(f.manifest for f in everyone if f is not None)
        have = {rank: set(f.good) for rank, f in enumerate(everyone) if f is not None}
        lost = sorted(set(manifest.files) - set().union(*have.values()))
        _explain(store, fingerprint[0], found, lost, say)
        if not lost:
            return _bring(peers, store, manifest, found, metrics)
    return None


def _own(store: CheckpointStore) -> dict[Fingerprint, Manifest]:
    """The checkpoints of this place that can be read at all."""
    store.clean()
    mine = {}
    for step in store.steps():
        try:
            manifest = store.read(step)
        except DamagedCheckpointError as damage:
            store.report(step, damage)
        else:
            mine[manifest.fingerprint] = manifest
    return mine


def _candidates(offers: list[list[Fingerprint]]) -> list[Fingerprint]:
    """Newest first, then those of the lowest rank."""
    ranks: dict[Fingerprint, int] = {}
    for rank, theirs in enumerate(offers):
        for fingerprint in theirs:
            ranks.setdefault(fingerprint, rank)
    return sorted(ranks, key=lambda fingerprint: (-fingerprint[0], ranks[fingerprint]))


def _look(store: CheckpointStore, manifest: Manifest | None) -> _Found | None:
    """Read this place's files of a checkpoint, and tell the good ones from the others."""
    if manifest is None:
        return None
    checked = store.check(manifest)
    reasons = {name: reason for name, reason in checked.items() if reason is not None}
    return _Found(manifest, frozenset(checked) - frozenset(reasons), reasons)


def _explain(
    store: CheckpointStore, step: int, found: _Found | None, lost: list[str], say: Callable[[str], None]
) -> None:
    """A word for whoever looks after this node."""
    damage = next(iter(found.reasons.values())) if found is not None and found.reasons else None
    if damage is None and lost:
        if found is not None:
            store.report(step, f"{lost[0]} is on no node")
    elif lost:
        store.report(step, damage)
    elif damage is not None:
        say(f"checkpoint {store.path(step)} is damaged ({damage}): another node has what is missing")


def _bring(
    peers: Peers, store: CheckpointStore, manifest: Manifest, found: _Found | None, metrics: Path | None
) -> Checkpoint:
    """Make the checkpoint usable at every place."""
    step, path = manifest.step, store.path(manifest.step)
    good = found.good if found is not None else frozenset()
    here = Checkpoint(step, path, manifest.with_here(good))
    failure: TrainerError | None = None
    try:
        if peers.writer and found is None:
            here = replace(here, path=store.begin(step, manifest.run))
        elif peers.writer and found is not None:
            for name in found.reasons:  # what is not in the way can be received
                (path / name).unlink(missing_ok=True)
    except OSError as error:
        failure = TrainerError(
            f"The checkpoint {path} cannot be received ({error.strerror}): give output_dir a disk that can be written."
        )
    for theirs in peers.gather(failure):
        if theirs is not None:
            raise theirs
    needed = set(manifest.files if manifest.layout == "replicated" else manifest.small)
    here = fetch(here, peers, needed)
    if peers.writer and found is None:
        here = store.commit(here.path, here.manifest)
    if metrics is not None:
        _bring_metrics(peers, metrics, lacking=found is None)
    peers.gather(None)
    return replace(here, path=path)


def _bring_metrics(peers: Peers, metrics: Path, lacking: bool) -> None:
    """The step's line was written before its checkpoint, so what a node with the checkpoint has covers it."""
    content = metrics.read_bytes() if peers.writer and not lacking and metrics.exists() else b""
    entry = Entry(len(content), hashlib.sha256(content).hexdigest())
    told = peers.gather((peers.writer, lacking, entry))
    sources = [rank for rank, (writes, lacks, theirs) in enumerate(told) if writes and not lacks and theirs.size]
    if not sources:
        return
    transfers = [
        Transfer(metrics.name, told[sources[0]][2], sources[0], rank)
        for rank, (writes, lacks, _) in enumerate(told)
        if writes and lacks
    ]
    failure = peers.exchange(transfers, metrics.parent)
    if failure is not None:
        raise TrainerError(f"{metrics} could not be received ({failure}): give output_dir a disk that can be written.")
