"""Whose checkpoints these are: an identity that a job keeps through restarts, new nodes and fresh disks.

The id is drawn once and lies in `output_dir`, in every manifest, and in the names of the folders in the target. A node
that has none gets that of the others. Where no node has one, the checkpoints in the target tell: those with the same
key are of this job. The key is `checkpoint.job`, or else a digest of what the training is, so that a job that lost all
of its disks finds its own checkpoints, and another job under the same target does not take them.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from gaudi3_scale.checkpoint.manifest import DamagedCheckpointError, Job
from gaudi3_scale.checkpoint.peers import CheckpointPeers
from gaudi3_scale.checkpoint.store import CheckpointStore
from gaudi3_scale.checkpoint.target import Target
from gaudi3_scale.checkpoint.upload import committed, read_manifest
from gaudi3_scale.errors import TrainerError
from gaudi3_scale.files import write_atomically

if TYPE_CHECKING:
    from gaudi3_scale.config import Config

FILE = "job-id"
# Lists of what counts, so that a key that is added to the configuration later does not change the digest.
MODEL = ["name", "config", "hidden_size", "layers", "heads", "kv_heads", "intermediate_size", "vocab_size"]
MODEL += ["sequence_length", "lora"]
DATA = ["source", "format", "field", "tokenizer", "end_of_text", "validation_fraction"]
TRAIN = ["seed", "learning_rate", "schedule", "warmup_steps", "final_learning_rate", "decay_fraction", "betas"]
TRAIN += ["epsilon", "weight_decay", "gradient_clip", "precision"]


def key_of(config: Config) -> str:
    """What makes two runs on empty disks the same job: not how long, how fast or on how many processes it trains."""
    if config.checkpoint.job is not None:
        return config.checkpoint.job
    values = config.model_dump(mode="json")
    parts = {"model": MODEL, "data": DATA, "train": TRAIN}
    counted = {section: {name: values[section][name] for name in names} for section, names in parts.items()}
    later = {"mixture": [], "content": "text", "begin_of_text": "", "documents": False}
    counted["data"] |= {name: values["data"][name] for name, unset in later.items() if values["data"][name] != unset}
    return hashlib.sha256(json.dumps(counted, sort_keys=True).encode()).hexdigest()[:16]


def settle(
    peers: CheckpointPeers,
    folder: Path,
    store: CheckpointStore,
    key: str,
    target: Target | None = None,
    adopt: bool = False,
) -> tuple[Job, bool]:
    """The job that all ranks are of, and whether a node has begun it already. Collective.

    `folder` is each place's own; `remember` writes the id there. With an empty key a job that lost all of its disks
    does not know its checkpoints in the target.
    """
    told = peers.gather(of_folder(folder, store) if peers.writer else None)
    known = [(rank, job, step) for rank, each in enumerate(told) if each is not None for job, step in [each]]
    if known:
        # The same training, begun on several nodes apart: that which came furthest counts.
        _, job, _ = max(known, key=lambda each: (each[2], -each[0]))
        other = next((each for each in known if each[1].id != job.id and (each[1].key != job.key or not job.key)), None)
        if other is not None and not adopt:
            (mine,) = [rank for rank, each, _ in known if each is job]
            raise TrainerError(
                f"The output_dirs of the nodes are of different jobs ({job.id} at rank {mine}, {other[1].id} at rank "
                f"{other[0]}): empty those that are not of this job, or set checkpoint.adopt=true to make them so."
            )
        found = job.id
    else:
        found = peers.gather((_in_target(target, key) or uuid.uuid4().hex[:16]) if peers.rank == 0 else "")[0]
    return Job(found, key), bool(known)


def remember(peers: CheckpointPeers, folder: Path, job: Job) -> None:
    """Keep the id at every place, so that the job is known there from now on. Collective."""
    failure = None
    text = json.dumps({"id": job.id, "key": job.key})
    try:
        if peers.writer and (not (folder / FILE).is_file() or (folder / FILE).read_text(errors="replace") != text):
            write_atomically(folder / FILE, text)
    except OSError as error:
        failure = TrainerError(
            f"{folder / FILE} cannot be written ({error.strerror}): give output_dir a disk that has room and that this "
            "user may write."
        )
    for theirs in peers.gather(failure):
        if theirs is not None:
            raise theirs


def of_folder(folder: Path, store: CheckpointStore) -> tuple[Job, int] | None:
    """What a place remembers: its job, and how far that came here."""
    manifests = []
    for step in store.steps():
        try:
            manifests.append(store.read(step))
        except (DamagedCheckpointError, TrainerError):  # said when a checkpoint is chosen
            continue
    job: Job | None
    try:
        job = Job.load(json.loads((folder / FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        job = next((manifest.job for manifest in reversed(manifests) if manifest.job is not None), None)
    if job is None:
        return None
    return job, max((m.step for m in manifests if m.job is not None and m.job.id == job.id), default=-1)


def _in_target(target: Target | None, key: str) -> str | None:
    """The id under which a job with this key has left checkpoints; None if there is none, or no answer."""
    if target is None or not key:
        return None
    seen: set[str] = set()
    try:
        for _, job, name in committed(target):
            if job is None or job in seen:
                continue
            seen.add(job)
            try:
                there = read_manifest(target, name).job
            except (DamagedCheckpointError, TrainerError):
                seen.discard(job)  # an older one may tell
                continue
            if there is not None and there.key == key:
                return job
    except Exception:  # whatever the transport raises: said when a checkpoint is looked for
        return None
    return None


def foreign(where: str, job: Job | None, step: int, alternative: str, signed: bool = True) -> TrainerError:
    """The sentence about checkpoints that are not of this job."""
    whose = f"of another job ({job.id})" if job else "of no job that they name"
    if not signed:
        whose = "not signed with the key of checkpoint.signing_key_file"
    return TrainerError(
        f"The checkpoints in {where}, up to step {step}, are {whose}, and there is none of this job: give "
        f"{alternative}, or set checkpoint.adopt=true to go on from the newest of them."
    )
