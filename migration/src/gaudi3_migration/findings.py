"""What a migration found: one line of the program at a time, and in all."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

Certainty = Literal["sure", "likely", "person"]
"""`sure`: a rule without exception. `likely`: what follows has the same purpose. `person`: somebody has to look."""

SUCCESSOR = re.compile(
    r"(?:(?:--|\.)?[a-z]\w*(?:\.\w+)*(?:\([^()]*\))?|accelerate launch|'\w+')(?=$|[;,:=]| \(| --)|--\w+(?= )", re.I
)
"""A name, an option or a call at the beginning of what follows, with an end to it."""
NOTHING = ("drop", "removed", "automatic", "None", "True", "False")


@dataclass(frozen=True, order=True)
class Finding:
    """What was met in one line of the original."""

    line: int
    """0 for what concerns the program as a whole."""
    what: str
    then: str
    """The successor, or "no successor: " and what to do."""
    certainty: Certainty = "sure"
    changes: bool = False
    """Whether the line means something else now, and has a comment in the program."""

    @property
    def successor(self) -> str | None:
        """The name, keyword or call that follows; None where nothing does, or it is no single one."""
        found = SUCCESSOR.match(self.then)
        return None if found is None or found[0] in NOTHING else found[0]


@dataclass
class Migrated:
    """One file, before and after."""

    path: Path
    before: str
    after: str
    findings: list[Finding] = field(default_factory=list)
    own: set[str] = field(default_factory=set)
    """Options of the command line that the program defines itself."""

    @property
    def left(self) -> list[Finding]:
        """What a person has to look at."""
        return [each for each in self.findings if each.certainty == "person"]

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "file": str(self.path),
            "changed": self.before != self.after,
            "findings": [{**asdict(each), "successor": each.successor} for each in self.findings],
        }


def text(files: list[Migrated]) -> str:
    """The report for a reader: what is left first."""
    lines = []
    for each in files:
        if not each.findings:
            lines.append(f"{each.path}: nothing of optimum-habana")
            continue
        lines.append(f"{each.path}: {len(each.findings)} findings, {len(each.left)} left for a person")
        for finding in sorted(each.findings, key=lambda found: (found.certainty != "person", found.line, found.what)):
            place = f"line {finding.line}" if finding.line else "program"
            lines.append(f"  {place:<10} {finding.certainty:<7} {finding.what}: {finding.then}")
    return "\n".join(lines) + "\n"


def record(files: list[Migrated]) -> dict[str, Any]:
    """The report for a program."""
    return {"files": [each.record() for each in files], "left": sum(len(each.left) for each in files)}
