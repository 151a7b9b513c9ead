"""One checkpoint whole in one folder, for the process that exports it: from this node, the other nodes and the target.

Nothing in the job's own folders is changed, so that a job may run meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Set
from dataclasses import dataclass
from pathlib import Path

from gaudi3_scale.checkpoint.manifest import DamagedCheckpointError, Manifest
from gaudi3_scale.checkpoint.peers import CheckpointPeers, Transfer
from gaudi3_scale.checkpoint.store import Checkpoint, CheckpointStore
from gaudi3_scale.checkpoint.target import Target
from gaudi3_scale.checkpoint.upload import committed, download, read_manifest
from gaudi3_scale.errors import ConfigError, TrainerError

Fingerprint = tuple[int, str, str]
RANKS_FILE = re.compile(r"__(\d+)_\d+\.distcp")
"""The name of a file of tensors has the rank that wrote it."""


@dataclass(frozen=True)
class Wanted:
    """Which checkpoint."""

    step: int | None
    """None: the newest that is whole."""
    job: str | None
    """Id of the job whose output_dir this is, where the node has it."""
    keys: Collection[str]
    """Those that the job may have. Where no node has an id, a job in the target with a checkpoint of such a key is it,
    with all of its steps: the key of a job changes with its settings. See `gaudi3_scale.checkpoint.identity`."""


def collect(
    peers: CheckpointPeers, store: CheckpointStore, wanted: Wanted, target: Target | None, to: Path
) -> Checkpoint | None:
    """The checkpoint in the new folder `to` of rank 0; None on the other ranks. Collective.

    Raises ConfigError on all ranks if there is none, or not all files of the requested one are available.
    """
    mine = _manifests(store, wanted.step) if peers.writer else {}
    offered: dict[Fingerprint, Manifest] = {}
    for theirs in reversed(peers.gather(mine)):
        offered.update(theirs)
    jobs = {job for job in peers.gather(wanted.job) if job is not None}
    # What others left in the folder, or what was adopted from them, counts where the job has nothing of its own.
    offered = {print_: manifest for print_, manifest in offered.items() if _id(manifest) in jobs} or offered
    jobs |= {job for manifest in offered.values() if (job := _id(manifest)) is not None}
    there = _in_target(target, store, wanted, jobs) if peers.rank == 0 and target is not None else {}
    there = peers.gather(there)[0]
    reasons: list[str] = []
    for fingerprint, manifest in sorted({**there, **offered}.items(), key=lambda each: each[0][0], reverse=True):
        checked = store.check(mine[fingerprint]) if fingerprint in mine else {}
        everyone = peers.gather(checked)
        have = {rank: {n for n, reason in found.items() if reason is None} for rank, found in enumerate(everyone)}
        lacking = sorted(set(manifest.files) - set().union(*have.values()))
        if not lacking or fingerprint in there:
            failure = _bring(peers, store, manifest, have, target if lacking else None, to)
            if failure is None:
                return Checkpoint(manifest.step, to, manifest.with_here(manifest.files)) if peers.rank == 0 else None
        else:
            damage = [reason for found in everyone for reason in found.values() if reason is not None]
            failure = damage[0] if damage else _whose(store, mine.get(fingerprint), lacking, len(manifest.files))
        reasons.append(peers.gather(failure)[0] or "")
        if peers.rank == 0:
            store.report(manifest.step, reasons[-1])
    raise _refusal(peers, store, wanted.step, reasons)


def _manifests(store: CheckpointStore, step: int | None) -> dict[Fingerprint, Manifest]:
    found: dict[Fingerprint, Manifest] = {}
    for each in store.steps() if step is None else {step} & set(store.steps()):
        try:
            manifest = store.read(each)
        except DamagedCheckpointError as damage:
            store.report(each, damage)
            continue
        if store.signer is None or store.signer.good(manifest):
            found[manifest.fingerprint] = manifest
    return found


def _id(manifest: Manifest) -> str | None:
    return None if manifest.job is None else manifest.job.id


def _in_target(target: Target, store: CheckpointStore, wanted: Wanted, jobs: Set[str]) -> dict[Fingerprint, Manifest]:
    """The checkpoints there of these jobs; where none is known, of those with one of the keys."""
    found: list[Manifest] = []
    try:
        for step, job, name in committed(target):
            if jobs and (job not in jobs or wanted.step not in (None, step)):
                continue
            try:
                manifest = read_manifest(target, name)
            except (DamagedCheckpointError, TrainerError) as damage:
                store.log(f"checkpoint {target.url}/{name} is skipped ({damage})")
                continue
            if store.signer is None or store.signer.good(manifest):
                found.append(manifest)
    except Exception as error:  # whatever the transport raises
        store.log(f"{target.url} cannot be asked for checkpoints ({type(error).__name__}: {error})")
    jobs = jobs or {each.job.id for each in found if each.job is not None and each.job.key in wanted.keys}
    return {each.fingerprint: each for each in found if _id(each) in jobs and wanted.step in (None, each.step)}


def _bring(
    peers: CheckpointPeers,
    store: CheckpointStore,
    manifest: Manifest,
    have: dict[int, set[str]],
    target: Target | None,
    to: Path,
) -> str | None:
    """Put the files together at rank 0: links to its own, the others' over the network, the rest from the target."""
    here, failure = store.path(manifest.step), None
    rest = set(manifest.files)
    transfers = []
    for rank, names in sorted(have.items()):
        transfers += [Transfer(n, manifest.files[n], rank, 0) for n in sorted(names & rest) if rank != 0]
        rest -= names
    if peers.rank == 0:
        try:
            to.mkdir(parents=True, exist_ok=True)
            for name in have[0]:
                (to / name).unlink(missing_ok=True)
                (to / name).symlink_to((here / name).resolve())
        except OSError as error:
            failure = f"{to} cannot be written: {error.strerror}"
    broken = peers.exchange(transfers, to if peers.rank == 0 else here)
    failure = failure or (str(broken) if broken is not None else None)
    if peers.rank == 0 and target is not None and failure is None:
        try:
            download(target, manifest, sorted(rest), to)
        except DamagedCheckpointError as damage:
            failure = str(damage)
        except Exception as error:  # whatever the transport raises
            failure = f"{type(error).__name__}: {error}".splitlines()[0][:300]
    return next((each for each in peers.gather(failure) if each is not None), None)


def _whose(store: CheckpointStore, manifest: Manifest | None, lacking: list[str], files: int) -> str:
    """Which node has a file that is not here."""
    name, writer = lacking[0], ""
    match = RANKS_FILE.fullmatch(name)
    if match is not None and manifest is not None:
        hosts = Checkpoint(manifest.step, store.path(manifest.step), manifest).state().get("hosts") or []
        rank = int(match[1])
        writer = f", which rank {rank} wrote" + (f" on node {hosts[rank]}" if rank < len(hosts) else "")
    return f"{len(lacking)} of its {files} files are not here, as {name}{writer}"


def _refusal(peers: CheckpointPeers, store: CheckpointStore, step: int | None, reasons: list[str]) -> ConfigError:
    steps = ", ".join(map(str, peers.gather(store.steps())[0]))
    if any("files are not here" in reason for reason in reasons):
        reason = next(reason for reason in reasons if "files are not here" in reason)
        return ConfigError(
            f"The checkpoint in {store.directory} cannot be exported ({reason}): run gaudi3-train export on all nodes "
            "of the job under gaudi3_scale.launch, as fit was, or set checkpoint.target to where the job uploads to."
        )
    if step is not None:
        return ConfigError(
            f"The checkpoint {store.path(step)} cannot be exported ({reasons[0] if reasons else 'it is not there'}): "
            f"choose one of the steps {steps or '(there are none)'}."
        )
    return ConfigError(
        f"There is no whole checkpoint in {store.directory}: give the output_dir of a job that has saved one."
    )
