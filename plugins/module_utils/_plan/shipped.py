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


#: What the examination of nodes imports at depth quick, below module_utils; a test follows the imports.
HEALTH_SOURCES = (
    "_cards/__init__.py",
    "_cards/accel.py",
    "_cards/iommu.py",
    "_cards/pci.py",
    "_fabric/__init__.py",
    "_fabric/gaudinet.py",
    "_files.py",
    "_health/__init__.py",
    "_health/actions.py",
    "_health/boards.py",
    "_health/checks.py",
    "_health/checks_cards.py",
    "_health/checks_node.py",
    "_health/checks_ports.py",
    "_health/checks_tools.py",
    "_health/collect.py",
    "_health/engine.py",
    "_health/event_names.py",
    "_health/events.py",
    "_health/examine.py",
    "_health/fence.py",
    "_health/history.py",
    "_health/kernel.py",
    "_health/readings.py",
    "_health/sanity.py",
    "_health/verdicts.py",
    "_hl_smi/__init__.py",
    "_hl_smi/card.py",
    "_hl_smi/command.py",
    "_hl_smi/hl_smi.py",
    "_host/__init__.py",
    "_host/firewall_table.py",
    "_jobs/__init__.py",
    "_jobs/container.py",
    "_jobs/files.py",
    "_jobs/hangs.py",
    "_jobs/record.py",
    "_jobs/rules.py",
    "_jobs/secrets.py",
    "_jobs/spec.py",
    "_jobs/status.py",
    "_kinds.py",
    "_printable.py",
    "_progress/__init__.py",
    "_progress/screen.py",
    "_refusal.py",
    "_secret_words.py",
    "_traces.py",
)
#: Extras of the trainer, each with a list of what it brings.
EXTRAS = ("data", "diffusion", "lora", "mlflow", "report", "s3", "tensorboard", "traces", "tune", "wandb")


def requirements(values: Values) -> list[str]:
    """What is installed beside PyTorch, with the SHA-256 of every file that may be."""
    lines = content_of("roles/pytorch/files/requirements.txt").splitlines()
    for extra in EXTRAS:
        if extra in (values("pytorch_extras") or []):
            lines += content_of(f"roles/pytorch/files/extras/{extra}.txt").splitlines()
    return list(dict.fromkeys(lines))  # two extras may bring the same


def health_program(values: Values) -> list[dict[str, Any]]:
    """The examination of nodes and its engine, which is the one of this collection's modules.

    A change of them restarts no timer: the program is read at each examination.
    """
    folder = values("_node_health_folder")
    files = {
        "gaudi_node_health.py": content_of("roles/node_health/files/gaudi_node_health.py"),
        "engine/__init__.py": "",
        **{f"engine/{name}": content_of(f"plugins/module_utils/{name}") for name in HEALTH_SOURCES},
    }
    return [{"path": f"{folder}/{name}", "content": content, "restart": False} for name, content in files.items()]
