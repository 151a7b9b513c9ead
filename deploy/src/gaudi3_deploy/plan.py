"""A plan of Terraform's as this command has it: in a file of its own, until it is applied or discarded."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gaudi3_deploy.collection._terraform import plan


@dataclass
class Plan(plan.Plan):
    """What would change."""

    path: Path = field(default_factory=Path)

    def discard(self) -> None:
        """Remove it: it holds the variables."""
        shutil.rmtree(self.path.parent, ignore_errors=True)

    def as_dict(self) -> dict[str, Any]:
        """For a program."""
        lost = {"nodes_lost": self.machines_lost, "storage_lost": self.storage_lost}
        return {"changes": self.changes(), **lost, "warnings": self.warnings}

    @property
    def count(self) -> int:
        """Resources that change; one that is replaced counts twice, as terraform reports it twice."""
        return len(self.create) + len(self.update) + len(self.delete) + 2 * len(self.replace)
