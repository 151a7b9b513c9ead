"""Where to resume: the newest checkpoint whose files the nodes have between them. No shared storage is needed."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from gaudi3_scale.checkpoint import Checkpoint, CheckpointStore, DamagedCheckpointError, Entry, Manifest
from gaudi3_scale.checkpoint.fetch import fetch
from gaudi3_scale.checkpoint.identity import foreign
from gaudi3_scale.checkpoint.manifest import Job
from gaudi3_scale.checkpoint.peers import CheckpointPeers, Transfer
from gaudi3_scale.checkpoint.signing import Signer
from gaudi3_scale.checkpoint.target import Target
from gaudi3_scale.checkpoint.upload import committed, download, folder, read_manifest
from gaudi3_scale.distributed.exchange import record
from gaudi3_scale.errors import TrainerError

Fingerprint = tuple[int, str, str]


@record
@dataclass(frozen=True)
class _HeldCheckpoint:
    """What a place has of a checkpoint."""

    manifest: Manifest
    good: frozenset[str]
    reasons: dict[str, str]


def agree(
    peers: CheckpointPeers,
    store: CheckpointStore,
    metrics: Path | None = None,
    log: Callable[[str], None] = print,
    target: Target | None = None,
    job: Job | None = None,
    begun: bool = False,
    adopt: bool = False,
) -> Checkpoint | None:
    """The checkpoint all ranks resume from; None = start from the beginning. Collective.

    A replicated one is whole on every node afterwards. Of a sharded one every node has the description; which shards
    it needs is known when the model is there, and `fetch.load` gets them then. Among different checkpoints of the same
    step, that of the lowest rank counts. A node that receives the checkpoint receives `metrics` too, so that its own
    has no gap. If `target` has a newer one than the nodes have, it comes from there.

    With a `job` only its own checkpoints count. Where it has none, those of others are refused, unless `adopt`
    takes them; but a job that has `begun` under its target is not kept from going on by what others put there since.
    """
    found = _readable(store) if peers.writer else {}
    own = {print_: manifest for print_, manifest in found.items() if _is_own(manifest, job, store)}
    others = {print_: manifest for print_, manifest in found.items() if print_ not in own}
    best = _newest(peers, store, own, log)
    if target is not None:
        best = _from_target(peers, store, target, best, log, None if job is None else {job.id})
    if best is None and job is not None:
        best = _of_others(peers, store, target, others, job, begun, adopt, log)
    elif others:
        for manifest in others.values():
            if job is not None and manifest.job is not None and manifest.job.id == job.id:
                log(f"checkpoint {store.path(manifest.step)} is not signed with the key and is skipped")
            else:
                store.spare(manifest.step)
                log(f"checkpoint {store.path(manifest.step)} is not of this job and is left alone")
    return None if best is None else _bring(peers, store, *best, metrics)


def _is_own(manifest: Manifest, job: Job | None, store: CheckpointStore) -> bool:
    """Is it of this job, and signed if it has to be?"""
    if store.signer is not None and not store.signer.good(manifest):
        return False
    return job is None or (manifest.job is not None and manifest.job.id == job.id)


def _of_others(
    peers: CheckpointPeers,
    store: CheckpointStore,
    target: Target | None,
    others: dict[Fingerprint, Manifest],
    job: Job,
    begun: bool,
    adopt: bool,
    log: Callable[[str], None],
) -> tuple[Manifest, _HeldCheckpoint | None] | None:
    """Nothing of this job is there: what there is of others is taken if that is wanted, and refused if not."""
    newest = max(others.values(), key=lambda manifest: manifest.step, default=None)
    here = [each for each in peers.gather((str(store.directory), newest)) if each[1] is not None]
    there = peers.gather(_foreign(target, job) if peers.rank == 0 and target is not None else [])[0]
    if adopt:
        best = _newest(peers, store, others, log)
        if target is None or not there:
            return best
        return _from_target(peers, store, target, best, log, {theirs for _, theirs, _ in there})
    if here:
        where, manifest = here[0]
        assert manifest is not None
        signed = store.signer is None or store.signer.good(manifest)
        raise foreign(where, manifest.job, manifest.step, "another output_dir", signed)
    if target is not None and there and not begun:
        step, theirs, _ = there[0]
        other = None if theirs is None else Job(theirs, "")
        raise foreign(target.url, other, step, "checkpoint.target another place")
    return None


def _foreign(target: Target, job: Job) -> list[tuple[int, str | None, str]]:
    """The checkpoints of others in a target, newest first; none if it does not answer, which has been said."""
    try:
        return [each for each in committed(target) if each[1] != job.id]
    except Exception:  # whatever the transport raises
        return []


def _newest(
    peers: CheckpointPeers, store: CheckpointStore, mine: dict[Fingerprint, Manifest], log: Callable[[str], None]
) -> tuple[Manifest, _HeldCheckpoint | None] | None:
    """The newest checkpoint that is whole if all nodes' files are put together, and what this place has of it."""
    for fingerprint in _candidates(peers.gather(list(mine))):
        found = _look(peers, store, fingerprint, mine.get(fingerprint))
        everyone = peers.gather(found)
        manifest = next(f.manifest for f in everyone if f is not None)
        have = {rank: set(f.good) for rank, f in enumerate(everyone) if f is not None}
        lost = sorted(set(manifest.files) - set().union(*have.values()))
        _explain(store, fingerprint[0], found, lost, log)
        if not lost:
            return manifest, found
    return None


def _from_target(
    peers: CheckpointPeers,
    store: CheckpointStore,
    target: Target,
    best: tuple[Manifest, _HeldCheckpoint | None] | None,
    log: Callable[[str], None],
    jobs: set[str | None] | set[str] | None,
) -> tuple[Manifest, _HeldCheckpoint | None] | None:
    """A newer checkpoint of these jobs in the target, if it has one that is whole; each place fetches its share."""
    manifests, trouble = peers.gather(_listed(peers, target, best[0].step if best else -1, log, jobs, store.signer))[0]
    for manifest in manifests:
        share = sorted(manifest.files)[peers.writers.index(peers.folder_rank) :: len(peers.writers)]
        part = manifest.with_here(share)
        failure = _download(store, target, part) if peers.writer else None
        failures = [f for f in peers.gather(failure) if f is not None]
        building = store.building(manifest.step, manifest.run)
        if not failures:
            if peers.writer:
                store.commit(building, part)
            return manifest, _HeldCheckpoint(part, frozenset(share), {}) if peers.writer else None
        if peers.writer:
            shutil.rmtree(building, ignore_errors=True)
        trouble = failures[0]
        log(f"checkpoint {target.url}/{folder(manifest)} is damaged ({trouble}) and is skipped")
    if best is None and trouble is not None:
        raise TrainerError(
            f"No node has a checkpoint, and {target.url} gives none ({trouble}): mend that, or take checkpoint.target "
            "out of the configuration to start from the beginning."
        )
    return best


def _listed(
    peers: CheckpointPeers,
    target: Target,
    after: int,
    log: Callable[[str], None],
    jobs: set[str | None] | set[str] | None,
    signer: Signer | None,
) -> tuple[list[Manifest], str | None]:
    """Rank 0's word on what the target has that is newer, and what went wrong."""
    if peers.rank != 0:
        return [], None
    manifests: list[Manifest] = []
    trouble = None
    try:
        for step, job, name in committed(target):
            if step <= after or (jobs is not None and job not in jobs):
                continue
            try:
                manifest = read_manifest(target, name)
                if signer is not None and not signer.good(manifest):
                    raise DamagedCheckpointError("it is not signed with the key of checkpoint.signing_key_file")
                manifests.append(manifest)
            except DamagedCheckpointError as damage:
                trouble = str(damage)
                log(f"checkpoint {target.url}/{name} is damaged ({damage}) and is skipped")
    except TrainerError:
        raise
    except Exception as error:  # whatever the transport raises
        trouble = f"{type(error).__name__}: {error}".splitlines()[0][:300]
        log(f"{target.url} cannot be asked for newer checkpoints ({trouble})")
    return manifests, trouble


def _download(store: CheckpointStore, target: Target, part: Manifest) -> str | None:
    """Fetch this place's share of the files; what went wrong, or None."""
    try:
        download(target, part, part.here, store.begin(part.step, part.run))
    except DamagedCheckpointError as damage:
        return str(damage)
    except Exception as error:  # whatever the transport raises
        return f"{type(error).__name__}: {error}".splitlines()[0][:300]
    return None


def _readable(store: CheckpointStore) -> dict[Fingerprint, Manifest]:
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


def _look(
    peers: CheckpointPeers, store: CheckpointStore, fingerprint: Fingerprint, manifest: Manifest | None
) -> _HeldCheckpoint | None:
    """Read this place's files of a checkpoint, and tell the good ones from the others; what its writer has. Collective.

    All processes of the place read, each its share, since one would hold the others up for minutes. The writer reads
    what nobody found good: another node may see a shared directory as it was a moment ago.
    """
    told = peers.gather(_good_of_share(peers, store, fingerprint))
    if manifest is None:
        return None
    good = {name for rank, names in enumerate(told) if peers.places[rank] == peers.rank for name in names}
    good &= set(manifest.here)
    checked = store.check(manifest, [name for name in manifest.here if name not in good])
    reasons = {name: reason for name, reason in checked.items() if reason is not None}
    return _HeldCheckpoint(manifest, frozenset(manifest.here) - frozenset(reasons), reasons)


def _good_of_share(peers: CheckpointPeers, store: CheckpointStore, fingerprint: Fingerprint) -> list[str]:
    """The files of this process's share that are as they were written."""
    try:
        manifest = store.read(fingerprint[0])
    except (DamagedCheckpointError, TrainerError):  # the place's writer has said it
        return []
    if manifest.fingerprint != fingerprint:
        return []
    mine = peers.share({name: manifest.files[name] for name in manifest.here})
    return [name for name, reason in store.check(manifest, mine).items() if reason is None]


def _explain(
    store: CheckpointStore, step: int, found: _HeldCheckpoint | None, lost: list[str], log: Callable[[str], None]
) -> None:
    """A word for whoever looks after this node."""
    damage = next(iter(found.reasons.values())) if found is not None and found.reasons else None
    if damage is None and lost:
        if found is not None:
            store.report(step, f"{lost[0]} is on no node")
    elif lost:
        store.report(step, damage)
    elif damage is not None:
        log(f"checkpoint {store.path(step)} is damaged ({damage}): another node has what is missing")


def _bring(
    peers: CheckpointPeers,
    store: CheckpointStore,
    manifest: Manifest,
    found: _HeldCheckpoint | None,
    metrics: Path | None,
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


def _bring_metrics(peers: CheckpointPeers, metrics: Path, lacking: bool) -> None:
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
