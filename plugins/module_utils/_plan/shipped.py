# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Files that come with the collection and are written on nodes."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from .model import Values

COLLECTION = Path(__file__).resolve().parents[3]


@cache
def content_of(path: str) -> str:
    """What is in a file of the collection."""
    return (COLLECTION / path).read_text(encoding="utf-8")


#: Extras of the trainer, each with a list of what it brings.
EXTRAS = ("data", "diffusion", "lora", "mlflow", "report", "s3", "tensorboard", "traces", "tune", "wandb")


def requirements(values: Values) -> list[str]:
    """What is installed beside PyTorch, with the SHA-256 of every file that may be."""
    lines = content_of("roles/pytorch/files/requirements.txt").splitlines()
    for extra in EXTRAS:
        if extra in (values("pytorch_extras") or []):
            lines += content_of(f"roles/pytorch/files/extras/{extra}.txt").splitlines()
    return list(dict.fromkeys(lines))  # two extras may bring the same


@cache
def health_sources() -> tuple[str, ...]:
    """What the examination of nodes imports of the collection, as role node_health lists it."""
    text = content_of("roles/node_health/vars/main.yml")
    listed = text.partition("_node_health_sources:\n")[2].partition("\n_")[0]
    return tuple(line.strip().removeprefix("- ") for line in listed.splitlines() if line.strip())


def health_program(values: Values) -> list[dict[str, Any]]:
    """The examination of nodes and its engine, which is the one of this collection's modules.

    A change of them restarts no timer: the program is read at each examination.
    """
    folder = values("_node_health_folder")
    files = {
        "gaudi_node_health.py": content_of("roles/node_health/files/gaudi_node_health.py"),
        "engine/__init__.py": "",
        **{f"engine/{name}": content_of(f"plugins/module_utils/{name}") for name in values("_node_health_sources")},
    }
    return [{"path": f"{folder}/{name}", "content": content, "restart": False} for name, content in files.items()]
