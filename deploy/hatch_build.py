"""Puts the Terraform tree into the package: its own files, and nothing that Terraform or its user has left there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SUFFIXES = (".tf", ".tftpl", ".sh", ".json", ".md", ".yaml", ".yml")
LEFT_OUT = {"terraform.tfstate.d", "tests", "__pycache__"}


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """What hatchling asks before it builds."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the files and their places; an editable installation has its checkout."""
        if version == "editable":
            return
        here = Path(self.root)
        if self.target_name == "sdist":
            links = (
                *here.glob("src/gaudi3_deploy/collection/_[!_]*.py"),
                *here.glob("src/*/collection/_cards/[!_]*.py"),
                *here.glob("src/*/collection/_fabric/[!_]*.py"),
                *here.glob("src/*/collection/_serving/[!_]*.py"),
            )
            for link in sorted(links):
                build_data["force_include"][str(link.resolve())] = str(link.relative_to(here))
        tree = next(each for each in (here / "terraform", here.parent / "terraform") if each.is_dir())
        target = "terraform" if self.target_name == "sdist" else "gaudi3_deploy/terraform"
        for parent, folders, names in os.walk(tree):
            folders[:] = [each for each in folders if not each.startswith(".") and each not in LEFT_OUT]
            for name in names:
                path = Path(parent, name)
                own = "tfstate" in name or "tfvars" in name or name == "backend.tf" or name.startswith(".")
                if name.endswith(SUFFIXES) and not own:
                    build_data["force_include"][str(path)] = f"{target}/{path.relative_to(tree)}"
