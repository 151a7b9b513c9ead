"""Puts the packages that lie beside the trainer's into its wheel, so that one wheel brings a node all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BESIDE = {
    "benchmark-tool": "gaudi3_benchmark",
    "doctor": "gaudi3_doctor",
    "migration": "gaudi3_migration",
    "watch": "gaudi3_watch",
}
"""Folders beside this one and the packages that they have in `src`; in an sdist the folders are inside."""


PACKED = {".py", ".html", ".css", ".js", ".json", ".svg", ".txt"}
"""Suffixes of code, and of the pages that it serves."""


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """What hatchling asks before it builds."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the files and their places; an editable installation has them by `dev-mode-dirs`."""
        if version == "editable":
            return
        here = Path(self.root)
        for folder, package in BESIDE.items():
            inside = f"{folder}/src/{package}"
            source = next((each for each in (here / inside, here.parent / inside) if each.is_dir()), None)
            if source is None:
                raise FileNotFoundError(f"{folder}/ is not beside {here}: take both from one checkout")
            for path in (each for each in source.rglob("*") if each.is_file() and each.suffix in PACKED):
                below = path.relative_to(source).as_posix()
                build_data["force_include"][str(path)] = f"{inside if self.target_name == 'sdist' else package}/{below}"
