"""Manifests as text: one stream, or a folder with a file for each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gaudi3_scale.errors import ConfigError
from gaudi3_scale.files import write_atomically
from gaudi3_scale.job_file_text import as_text
from gaudi3_scale.kubernetes.manifests import KubernetesObject

HEAD = "# Written by gaudi3-train kubernetes, which overwrites it.\n"
APPLIED = (".yml", ".yaml", ".json")
"""Files of these names `kubectl apply -f FOLDER` applies."""


def text(manifest: KubernetesObject) -> str:
    """One object with what it is for."""
    return f"# {manifest.about}\n{as_text(manifest.document)}"


def documents(manifests: Sequence[KubernetesObject]) -> str:
    """All objects, for one call of `kubectl apply -f -`."""
    return HEAD + "---\n".join(map(text, manifests))


def write(manifests: Sequence[KubernetesObject], folder: Path) -> None:
    """A file for each object, and none that an earlier job left there.

    Raises:
        ConfigError: If the folder has manifests of others, which would be applied with these.
        OSError: If it cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    there = sorted(path for path in folder.iterdir() if path.suffix in APPLIED)
    wanted = {each.file: HEAD + text(each) for each in manifests}
    foreign = next((path for path in there if not path.read_bytes().startswith(HEAD.encode())), None)
    if foreign is not None:
        raise ConfigError(
            f"{foreign} was not written by this command, and `kubectl apply -f {folder}` would apply it with the "
            "rest: give another folder with --to."
        )
    for name, content in wanted.items():
        write_atomically(folder / name, content, durable=False)
    for path in there:
        if path.name not in wanted:
            path.unlink()
