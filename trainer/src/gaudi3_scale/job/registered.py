"""A job that trains on from a registered model: one version for all ranks, fetched once by each node.

A job keeps the version that it began with, whatever its alias means later: its checkpoints name it, and before the
first of them a file in output_dir does.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gaudi3_scale.config import Config
from gaudi3_scale.config.registered import NAME, Reference, is_registered
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.files import write_atomically
from gaudi3_scale.job.lineage import KEY
from gaudi3_scale.job.meanwhile import meanwhile
from gaudi3_scale.registry.fetching import fetch_version
from gaudi3_scale.registry.model_manifest import DIGEST
from gaudi3_scale.registry.server import MANIFEST_TAG, RegistryServer, Version
from gaudi3_scale.traces.spans import current

if TYPE_CHECKING:
    from gaudi3_scale.checkpoint.store import Checkpoint
    from gaudi3_scale.run import Run

FILE = "registered.json"
FOLDER = "registered"
"""In output_dir: what the job began with, and the folder of its files."""


def fetch_registered(run: Run, checkpoint: Checkpoint | None) -> Config:
    """What was asked for, with a folder of this node in the place of the registered model. Collective.

    Raises:
        ConfigError: On all ranks, where there is no such version, or a file is not what was registered.
    """
    config = run.config
    if not is_registered(config.model.name):
        return config
    reference = Reference.parse(config.model.name, "model.name")
    group = run.process_group
    chosen = group.must_all(lambda: _choose(config, reference, checkpoint) if run.rank == 0 else None)[0]
    assert chosen is not None
    folder = folder_of(config, chosen)

    def work() -> None:
        write_atomically(config.output_dir / FILE, json.dumps(chosen, indent=1) + "\n")
        version = Version(chosen["name"], chosen["version"], chosen["source"], {MANIFEST_TAG: chosen["digest"]})
        server = RegistryServer(config.tracking.mlflow_uri)
        fetch_version(server, version, reference.alias, folder)

    what = f"the fetch of {chosen['name']} version {chosen['version']}"
    with current().span("fetch the model"):
        check = run.interruption.check
        meanwhile(group, "fetch", work if group.writer else None, lambda: check(what, run.progress.step))
    run.registered = chosen
    run.console.log(
        f"training on from {chosen['name']} version {chosen['version']} of the registry, verified, in {folder}"
    )
    return with_folder(config, folder)


def folder_of(config: Config, chosen: dict[str, Any]) -> Path:
    """Where a version's files are on this node."""
    return (config.output_dir / FOLDER / f"{chosen['name']}-{chosen['version']}").absolute()


def with_folder(config: Config, folder: Path) -> Config:
    """The configuration with a folder in the place of the registered model, and of its tokenizer."""
    changed: dict[str, Any] = {"model": config.model.model_copy(update={"name": str(folder)})}
    if is_registered(config.data.tokenizer):
        changed["data"] = config.data.model_copy(update={"tokenizer": str(folder)})
    return config.model_copy(update=changed)


def _choose(config: Config, reference: Reference, checkpoint: Checkpoint | None) -> dict[str, Any]:
    """The version that the job began with, or that the reference means now."""
    begun = _of_checkpoint(checkpoint) or _remembered(config.output_dir / FILE, reference)
    if begun is None:
        version = RegistryServer(config.tracking.mlflow_uri).resolve(reference)
        return _record(reference, version)
    if begun["name"] != reference.name or (reference.alias is None and str(begun["version"]) != reference.which):
        raise ConfigError(
            f"model.name is registry:{reference}, and this job began with {begun['name']} version {begun['version']}: "
            f"give registry:{begun['name']}@{begun['version']}, or another output_dir."
        )
    return begun


def _of_checkpoint(checkpoint: Checkpoint | None) -> dict[str, Any] | None:
    made = checkpoint.manifest.about.get(KEY) if checkpoint is not None else None
    return _sound(made.get("registered")) if isinstance(made, dict) else None


def _remembered(path: Path, reference: Reference) -> dict[str, Any] | None:
    """What a job that has no checkpoint yet began with, if it was by this name."""
    try:
        found = _sound(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError):
        return None
    return found if found is not None and found["reference"] == str(reference) else None


def _record(reference: Reference, version: Version) -> dict[str, Any]:
    return {
        "reference": str(reference),
        "name": version.name,
        "version": version.number,
        "source": version.source,
        "digest": version.digest,
    }


def _sound(found: Any) -> dict[str, Any] | None:
    """What was recorded, if it is such a record: its name becomes a path."""
    if not isinstance(found, dict) or type(found.get("version")) is not int:
        return None
    texts = [found.get(name) for name in ("reference", "name", "source", "digest")]
    if not all(isinstance(text, str) for text in texts):
        return None
    return found if NAME.fullmatch(found["name"]) and DIGEST.fullmatch(found["digest"]) else None
