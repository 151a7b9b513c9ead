# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The judgement on a machine: a grade where every source answered, and what is against it.

======  ==========================================================================
A       every source answered and no rule is broken
B       a rule is broken that its owner can cure: a reset, a boot, a seat
C       a rule is broken that takes a part
none    a source did not answer, or the board is not known
======  ==========================================================================
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from .evidence import Evidence
from .rules import BROKEN, CARDS_OF, CURABLE, RULES, SECTIONS, notes
from .sources import silent

SOUND, NONE = "A", "none"


@dataclass(frozen=True)
class Finding:
    """One sentence of the page; ``grade`` is empty of a note."""

    section: str
    component: str
    said: str
    grade: str = ""
    rule: str = ""
    source: str = ""
    cure: str = ""

    @property
    def sentence(self) -> str:
        """The finding for people."""
        return f"{self.component}: {self.said}"


@dataclass(frozen=True)
class Judgement:
    """The grade, its reason, what breaks rules, what is noted, and which sources are silent."""

    grade: str
    why: str
    broken: tuple[Finding, ...]
    noted: tuple[Finding, ...]
    silent: dict[str, str]

    def as_facts(self) -> dict[str, Any]:
        """Plain data."""
        facts = asdict(self)
        return {**facts, "broken": list(facts["broken"]), "noted": list(facts["noted"])}


def assess(evidence: Evidence) -> Judgement:
    """The judgement on what was said of a machine."""
    broken = tuple(
        Finding(rule.section, component, said, rule.grade, rule.name, rule.source, rule.cure)
        for rule in RULES
        for component, said in rule.broken(evidence)
    )
    noted = tuple(
        sorted(
            (Finding(section, component, said) for section, component, said in notes(evidence)),
            key=lambda each: SECTIONS.index(each.section),
        )
    )
    quiet = silent(evidence)
    grade, why = _grade(evidence, broken, quiet)
    return Judgement(grade, why, broken, noted, quiet)


def _grade(evidence: Evidence, broken: tuple[Finding, ...], quiet: dict[str, str]) -> tuple[str, str]:
    if quiet:
        source, reason = next(iter(quiet.items()))
        more = f", and {len(quiet) - 1} more are silent" if len(quiet) > 1 else ""
        return NONE, f"no grade, because {source} did not answer: {reason}{more}"
    if evidence.board not in CARDS_OF:
        return NONE, f"no grade, because the board {evidence.board or 'without a name'} is not known"
    for grade in (BROKEN, CURABLE):
        worst = [each for each in broken if each.grade == grade]
        if worst:
            more = f", and {len(worst) - 1} more" if len(worst) > 1 else ""
            return grade, f"{worst[0].sentence} (rule {worst[0].rule}){more}"
    return SOUND, "every source answered and no rule is broken"
