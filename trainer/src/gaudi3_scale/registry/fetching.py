"""A version's files on this node: verified one by one, and there as a whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from gaudi3_scale.config.registered import Reference
from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.files import sync_directory
from gaudi3_scale.registry import model_manifest as manifest
from gaudi3_scale.registry.model_manifest import ModelManifest, TamperedError
from gaudi3_scale.registry.server import TAG, RegistryServer, Version

SPARE = 2**20
"""Bytes that a disk must have beside the model."""


@dataclass(frozen=True)
class Fetched:
    """A model that was fetched."""

    name: str
    version: int
    alias: str | None
    digest: str
    """SHA-256 of its manifest."""
    folder: str

    def record(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self)


def fetch(server: RegistryServer, reference: Reference, folder: Path) -> Fetched:
    """Write a version's files into a folder that is not there, or is empty, or has this very version already.

    Raises:
        TamperedError: A file is not what was registered; nothing is left on the disk.
        ConfigError: There is no such version, or the folder holds something else.
    """
    return fetch_version(server, server.resolve(reference), reference.alias, folder)


def look(server: RegistryServer, reference: Reference, folder: Path) -> dict[str, object]:
    """Which version this is now, where it comes from, and whether a folder says that it holds it; nothing is written.

    For JSON: ``name``, ``version``, ``alias``, ``digest`` (SHA-256 of its manifest), ``folder``, ``there`` and
    ``lineage`` (the version's tags without their beginning). ConfigError where there is no such version.
    """
    version = server.resolve(reference)
    found = Fetched(version.name, version.number, reference.alias, version.digest, str(folder.absolute()))
    try:
        held = read_manifest(folder)
    except ConfigError:
        held = None
    lineage = {name.removeprefix(TAG): value for name, value in version.tags.items() if name.startswith(TAG)}
    return {**found.record(), "there": held is not None and held[1] == version.digest, "lineage": lineage}


def fetch_version(server: RegistryServer, version: Version, alias: str | None, folder: Path) -> Fetched:
    """The same of a version that is known."""
    done = Fetched(version.name, version.number, alias, version.digest, str(folder.absolute()))
    if _is_there(folder, version):
        return done
    folder = folder.absolute()
    building = folder.with_name(f".{folder.name}.{secrets.token_hex(8)}.tmp")
    try:
        building.mkdir(parents=True)
        (building / "files").mkdir()
        _download(server, version, building)
        try:
            (building / "files").rename(folder)
        except OSError:
            if not _is_there(folder, version):  # another process was quicker
                raise
        sync_directory(folder.parent)
    except OSError as error:
        raise TrainerError(
            f"{version} cannot be written to {folder} ({error.strerror or error}): give a folder on a disk that has "
            "room and that this user may write."
        ) from None
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return done


def read_manifest(folder: Path) -> tuple[ModelManifest, str] | None:
    """What a fetched folder says that it holds, and the digest of that; None for any other folder."""
    path = folder / manifest.FILE
    try:
        if path.is_symlink() or path.stat().st_size > manifest.LARGEST:
            return None
        text = path.read_bytes()
    except OSError:
        return None
    return ModelManifest.load(text, str(folder)), manifest.digest_of(text)


def _is_there(folder: Path, version: Version) -> bool:
    """Does the folder hold this version, whole? ConfigError where it holds something else."""
    if not os.path.lexists(folder) or (folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir())):
        return False
    found = read_manifest(folder) if folder.is_dir() else None
    if found is None or found[1] != version.digest:
        raise ConfigError(
            f"{folder} is there and holds something else than {version}: give the path of a folder to make, or delete "
            "this one."
        )
    for name in found[0].files:
        found[0].check(name, folder / name, str(folder))
    return True


def _download(server: RegistryServer, version: Version, building: Path) -> None:
    """Manifest first: what it does not name is never asked for."""
    text = server.download(version, manifest.FILE, building / "files").read_bytes()[: manifest.LARGEST + 1]
    if manifest.digest_of(text) != version.digest:
        raise TamperedError(
            f"In {version} the file {manifest.FILE} has another SHA-256 than the registry says (tag "
            "gaudi3.manifest_sha256): it is not used; find out who wrote to the registry's storage."
        )
    found = ModelManifest.load(text, str(version))
    room = shutil.disk_usage(building).free
    if found.size + SPARE > room:
        raise TrainerError(
            f"{version} has {found.size / 1e9:,.2f} GB, and the disk of {building.parent} has {room / 1e9:,.2f} GB: "
            "make room, or give a folder on another disk."
        )
    for name in found.files:
        (building / "files" / name).parent.mkdir(parents=True, exist_ok=True)
        arriving = building / f"arriving-{secrets.token_hex(4)}"
        arriving.mkdir()
        path = server.download(version, name, arriving)
        found.check(name, path, str(version))
        with path.open("rb") as file:
            os.fsync(file.fileno())
        # As this process makes files: whoever serves the model may be another user than who wrote it.
        path.chmod((building / "files").stat().st_mode & 0o666)
        path.rename(building / "files" / name)
        shutil.rmtree(arriving, ignore_errors=True)
    sync_directory(building / "files")
