"""The rows of `programs.yml`: which programs run, how they are called, and what each has to do."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ENVIRONMENTS = {
    "suite": ROOT / ".venv",
    "frameworks": ROOT / ".cache" / "contract" / "frameworks",
    "optimum": ROOT / ".cache" / "contract" / "optimum",
}
SOURCES = "CONTRACT_SOURCES"


@dataclass(frozen=True)
class Row:
    """One call of one program."""

    id: str
    program: str
    source: str
    """Package and version, or OWNER/NAME@commit of a repository below CONTRACT_SOURCES."""
    calls: str
    """What is called, for the table."""
    run: str
    """`module NAME`, `file PATH` (below the repository) or `check NAME` (of `checks/`), and its
    arguments, in which `{repository}` is the repository's folder."""
    environment: str = "suite"
    cards: int = 1
    node: bool = False
    """Whether it runs on a simulated node instead of beside the device alone."""
    faults: tuple[str, ...] = ()
    """Faults of the node, as `KIND` or `KIND:CARD`."""
    variables: dict[str, str] = field(default_factory=dict)
    stand_ins: bool = False
    """Whether `stand_ins/` comes before what is installed."""
    limit: int = 300
    """Seconds."""
    prints: str = ""
    """What a run that passes has to print, as a regular expression."""
    refused: str = ""
    """Why the device refuses the program on purpose; empty where it has to pass."""
    refusal: str = ""
    """What the refusal says, as a regular expression."""
    fails: str = ""
    """Where the row is known to fail: what it still needs. A test of a known failure must fail."""
    quick: bool = False
    """Whether `make test` runs it."""

    @property
    def repository(self) -> str:
        """OWNER/NAME, or nothing for a package."""
        name = self.source.partition("@")[0]
        return name if "@" in self.source and "/" in name else ""

    def missing(self) -> str:
        """Why the row cannot run here; empty when it can."""
        python = ENVIRONMENTS[self.environment] / "bin" / "python"
        if not python.exists():
            return f"{python.relative_to(ROOT)} is missing: run `make contract`"
        if not self.repository:
            return ""
        folder = os.environ.get(SOURCES, "")
        if not folder:
            return f"{SOURCES} is not set"
        if not (Path(folder) / self.repository).is_dir():
            return f"{SOURCES} has no {self.repository}"
        return ""


def rows() -> list[Row]:
    """Every row, in the order of the file; ValueError for one that says nothing sensible."""
    read: list[dict[str, Any]] = yaml.safe_load((HERE / "programs.yml").read_text())
    found = []
    for each in read:
        each["faults"] = tuple(each.get("faults", ()))
        each["variables"] = {key: str(value) for key, value in each.get("variables", {}).items()}
        row = Row(**each)
        if row.environment not in ENVIRONMENTS or row.run.split()[0] not in ("module", "file", "check"):
            raise ValueError(f"Row {row.id} of programs.yml names no known environment or way to run.")
        if bool(row.refused) != bool(row.refusal):
            raise ValueError(f"Row {row.id} of programs.yml needs both refused and refusal, or neither.")
        found.append(row)
    if len({row.id for row in found}) != len(found):
        raise ValueError("Two rows of programs.yml have the same id.")
    return found
