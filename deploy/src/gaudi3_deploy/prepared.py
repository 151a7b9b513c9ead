"""Whether `terraform init` and the choice of a workspace would do anything: each costs seconds, at every command.

A note in Terraform's own folder holds a digest of all that `init` reads and what it left there. A change of either, by
whomever, voids it, and so does a call of Terraform that failed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gaudi3_deploy.record import write_atomically

#: What of the environment `init` looks at.
SETTINGS = ("TF_CLI_ARGS", "TF_CLI_ARGS_init", "TF_CLI_CONFIG_FILE", "TF_PLUGIN_CACHE_DIR")


class Prepared:
    """What was done in a root module's folder, with an executable and an environment."""

    def __init__(self, directory: Path, executable: str, environment: Mapping[str, str]) -> None:
        self._directory = directory
        self._data = directory / environment.get("TF_DATA_DIR", ".terraform")
        self._note = self._data / "gaudi3-deploy.json"
        self._settings = [executable, *(environment.get(each, "") for each in SETTINGS)]

    def workspaces(self) -> set[str] | None:
        """The workspaces that were made or chosen since `init`; None where `init` must run."""
        noted = _json(self._note)
        return set(noted["workspaces"]) if noted and noted["digest"] == self._digest() else None

    def note(self, workspaces: Iterable[str]) -> None:
        """`init` has run, and these workspaces are there."""
        text = json.dumps({"digest": self._digest(), "workspaces": sorted(workspaces)})
        write_atomically(self._note, text + "\n")

    def void(self) -> None:
        """Everything is prepared again the next time."""
        self._note.unlink(missing_ok=True)

    def _digest(self) -> str:
        digest = hashlib.sha256(json.dumps(self._settings).encode())
        for path in self._read_by_init():
            content = path.read_bytes() if path.is_file() else b""
            digest.update(f"{path}\0{len(content)}\0".encode() + content)
        for path in sorted(self._data.glob("providers/*/*/*/*/*/*")):
            digest.update(f"{path}\0{path.stat().st_size}\0".encode())
        return digest.hexdigest()

    def _read_by_init(self) -> Iterator[Path]:
        """The configuration, what is locked, and what `init` noted of modules and of the backend."""
        modules = self._data / "modules" / "modules.json"
        yield from (self._directory / ".terraform.lock.hcl", modules, self._data / "terraform.tfstate")
        folders = {each.get("Dir", ".") for each in (_json(modules) or {}).get("Modules", ())}
        for folder in sorted(folders | {"."}):
            files = (each for each in os.scandir(self._directory / folder) if each.name.endswith((".tf", ".tf.json")))
            yield from sorted(Path(each.path) for each in files)


def _json(path: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(path.read_text())
        return found
    except (OSError, ValueError):
        return None
