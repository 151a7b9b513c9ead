"""`gaudi3-train register`: a job's model as a version in the registry, with where it comes from."""

from __future__ import annotations

import json
import secrets
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gaudi3_scale.checkpoint.identity import FILE as JOB_FILE
from gaudi3_scale.config import Config
from gaudi3_scale.config.registered import checked_name
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.job import lineage
from gaudi3_scale.job.export import Precision, export
from gaudi3_scale.models.folder import refuse_adapters
from gaudi3_scale.registry import model_manifest as manifest
from gaudi3_scale.registry.model_manifest import ModelManifest, digest_of
from gaudi3_scale.registry.server import CONTENT_TAG, MANIFEST_TAG, TAG, RegistryServer, Version
from gaudi3_scale.tracking.trackers import RUNS
from gaudi3_scale.version import VERSION

CANDIDATE = "candidate"
ARTEFACTS = "registered"
"""Folder among a run's artefacts."""


@dataclass(frozen=True)
class ToRegister:
    """What is to be registered."""

    folder: Path
    """The job's output_dir."""
    name: str
    step: int | None = None
    """None: the newest whole checkpoint."""
    exported: Path | None = None
    """An export of the job; None: one is made, and deleted afterwards."""
    precision: Precision = "float32"
    commit: str | None = None
    """Of the code that trained it; None: as the checkpoint says."""
    description: str | None = None


@dataclass(frozen=True)
class Registered:
    """A version that is in the registry."""

    version: Version
    step: int
    is_new: bool
    """False: this very model was registered before."""


def register(
    config: Config, wanted: ToRegister, server: RegistryServer, log: Callable[[str], None]
) -> Registered | None:
    """Export unless that is done, upload, and make it the candidate. None for all processes but the first one.

    Everything that can be refused is, before the export; a version is made only when all of its files are there.
    """
    checked_name(wanted.name)
    if not wanted.folder.is_dir() or not any((wanted.folder / each).exists() for each in (JOB_FILE, "checkpoints")):
        raise ConfigError(
            f"{wanted.folder} is no output_dir of a job that has saved a checkpoint: give the one of the job, and a "
            "folder that `gaudi3-train export` wrote by --export."
        )
    server.names()  # before minutes are spent on an export
    if wanted.exported is not None:
        return _register(config, wanted, wanted.exported, server)
    made = wanted.folder / f".register-{secrets.token_hex(8)}"
    try:
        log(f"exporting the {'newest checkpoint' if wanted.step is None else f'checkpoint of step {wanted.step}'} ...")
        if export(config, made, wanted.step, merge=True, precision=wanted.precision) is None:
            return None
        return _register(config, wanted, made, server)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _register(config: Config, wanted: ToRegister, folder: Path, server: RegistryServer) -> Registered:
    refuse_adapters(folder)
    about = lineage.of_export(folder)
    step = about["checkpoint"]["step"]
    job = _job_of(wanted.folder)
    if job is not None and about["checkpoint"].get("job") not in (None, job):
        raise ConfigError(
            f"{folder} is an export of another job ({about['checkpoint']['job']}) than {wanted.folder} ({job}): give "
            "the folder of the job that it was exported from."
        )
    about |= {"results": lineage.results_of(wanted.folder, step), "registered_by": VERSION}
    about["commit"] = wanted.commit or about.get("commit")
    described = ModelManifest.of_folder(folder, about)
    same = _same(server, wanted.name, described)
    if same is not None:
        return Registered(same, step, False)
    text = described.dump()
    tags = {MANIFEST_TAG: digest_of(text), CONTENT_TAG: described.content, **_tags(about)}
    experiment = (about.get("configuration") or {}).get("tracking", {}).get("project", config.tracking.project)
    run = server.run_of(_run_of(wanted.folder), experiment, wanted.folder.resolve().name)
    place = f"{ARTEFACTS}/{digest_of(text)[:16]}"
    server.upload(run, folder, place)
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / manifest.FILE).write_text(text, encoding="utf-8")
        server.upload(run, Path(scratch) / manifest.FILE, place)
    source = f"{server.artefacts_of(run).rstrip('/')}/{place}"
    version = server.create(wanted.name, source, run, tags, wanted.description)
    server.set_alias(wanted.name, CANDIDATE, version.number)
    return Registered(version, step, True)


def _same(server: RegistryServer, name: str, described: ModelManifest) -> Version | None:
    """A version that has these very files."""
    if name not in server.names():
        return None
    return next((v for v in server.versions(name) if v.tags.get(CONTENT_TAG) == described.content), None)


def _tags(about: dict[str, Any]) -> dict[str, str]:
    """The lineage as far as it is short, for whoever looks at MLflow's pages."""
    results, cost = about["results"], about["results"]["cost"] or {}
    base = about.get("registered")
    software = about.get("software") or {}
    values = {
        "checkpoint_sha256": about["checkpoint"]["sha256"],
        "checkpoint_step": about["checkpoint"]["step"],
        "job": about["checkpoint"].get("job"),
        "data_sha256": about["data"].get("sha256"),
        "data_source": _source(about.get("configuration")),
        "commit": about["commit"],
        "trainer": about.get("trainer"),
        "release": software.get("plugin"),
        "torch": software.get("torch"),
        "validation_loss": results["validation_loss"],
        "cost": None if not cost else f"{cost['spent']:.2f} {cost['currency']}",
        "hours": None if results["hours"] is None else f"{results['hours']:.3f}",
        "base": f"{base['name']}@{base['version']}" if base else None,
    }
    return {f"{TAG}{name}": str(value) for name, value in values.items() if value is not None}


def _source(configuration: Any) -> str | None:
    data = configuration.get("data") if isinstance(configuration, dict) else None
    if not isinstance(data, dict):
        return None
    mixed = data.get("mixture") or []
    return ", ".join(str(each.get("source")) for each in mixed)[:500] or str(data.get("source"))[:500]


def _job_of(folder: Path) -> str | None:
    try:
        return str(json.loads((folder / JOB_FILE).read_text(encoding="utf-8"))["id"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _run_of(folder: Path) -> str | None:
    """The run that MLflow has of the job, where it was tracked."""
    try:
        found = json.loads((folder / RUNS).read_text(encoding="utf-8")).get("mlflow")
    except (OSError, ValueError, AttributeError):
        return None
    return found if isinstance(found, str) else None
