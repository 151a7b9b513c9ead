# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What the examinations of all nodes found, to read: what is odd, what a phase cures, and what to type next.

A node may answer anything.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from .._printable import printable
from .failures import sentences
from .unreachable import Cause, Login, cause

#: What a phase of the site does away with, by the section and the beginning of the sentence.
CURES: tuple[tuple[str, str, str], ...] = (
    ("packages", "no package of the vendor", "drivers"),
    ("packages", "the vendor's packages are of", "drivers"),
    ("modules", "the driver (module habanalabs) is not loaded", "drivers"),
    ("modules", "no module file of the vendor for the running kernel", "drivers"),
    ("machine", "no huge pages are set aside", "tuning"),
    ("environment", "GC_KERNEL_PATH is set nowhere", "drivers"),
    ("metrics", "the exporter on port", "monitoring"),
)
#: The same on a node on which no driver runs, as these come with it.
WITH_THE_DRIVER: tuple[tuple[str, str, str], ...] = (
    ("device_files", "there is no device file below /dev/accel", "drivers"),
    ("device_files", "", "drivers"),
    ("cards", "cards without a device of the driver", "drivers"),
    ("cards", "no card has a network device for a port", "drivers"),
    ("tools", "hl-smi fails", "drivers"),
    ("environment", "there is no such file or folder", "drivers"),
)
#: What a phase does away with only if it is allowed to.
ALLOWED = (
    (
        "cards",
        "the IOMMU translates addresses",
        "The phase tuning does so with tuning_kernel_command_line_state=present and tuning_reboot_allowed=true",
    ),
)
_NO_TORCH = re.compile(r"\S+ has no (?:torch|habana-torch-plugin)")
#: Sentences of one node that are shown, each cut to so many characters.
_MOST, _LONGEST = 40, 600


@dataclass(frozen=True)
class Finding:
    """A sentence of a section, and the phase that cures it; empty where somebody has to."""

    section: str
    sentence: str
    phase: str = ""


@dataclass(frozen=True)
class Letter:
    """What is said of one node: what it is, what is odd, and the cause where it does not answer."""

    what: str
    findings: tuple[Finding, ...] = ()
    cause: Optional[Cause] = None

    def lines(self, of: str = "") -> list[str]:
        """The lines below the node's name; ``of`` says which node, where several share them."""
        if self.cause is not None:
            return [f"  {of}{self.cause.sentence}.", *([f"  {self.cause.command}"] if self.cause.command else [])]
        own = [each for each in self.findings if not each.phase]
        lines = [f"  {each.section}: {each.sentence}" for each in own]
        phases = list(dict.fromkeys(each.phase for each in self.findings if each.phase))
        for phase in phases:
            lines.append(f"  cured by the phase {phase}:")
            lines += [f"    {each.sentence}" for each in self.findings if each.phase == phase]
        return lines


def letter(answer: object, login: Login) -> Letter:
    """What is said of a node that gave this answer to gaudi_doctor_info."""
    given: Mapping[str, Any] = answer if isinstance(answer, Mapping) else {}
    if given.get("unreachable"):
        why = cause(given.get("msg") or "", login)
        return Letter(f"does not answer: {why.kind}", cause=why)
    report, summary = given.get("report"), given.get("summary")
    if not isinstance(report, Mapping) or not isinstance(summary, str):
        why_not = " ".join(sentences(given)) if given.get("failed") else "it gave no answer"
        return Letter("was not examined", (Finding("examination", printable(why_not)),))
    sections = report.get("sections")
    found = _findings(sections if isinstance(sections, Mapping) else {})
    own = sum(not each.phase for each in found)
    cured = len(found) - own
    said = [f"{own} to look at" if own else "", f"{cured} that a phase of the site cures" if cured else ""]
    counts = " and ".join(each for each in said if each) or "nothing odd"
    return Letter(f"{printable(summary.split(';')[0], _LONGEST)}; {counts}", tuple(found))


def _findings(sections: Mapping[Any, Any]) -> list[Finding]:
    found = [(printable(name, 40), sentence) for name in sections for sentence in _odd(sections[name])][:_MOST]
    driverless = any(section == "modules" and "is not loaded" in sentence for section, sentence in found)
    return [
        Finding(section, sentence + _allowed(section, sentence), _phase(section, sentence, driverless))
        for section, sentence in found
    ]


def _allowed(section: str, sentence: str) -> str:
    """What is added to a sentence about something that a phase may do away with."""
    said = [more for of, begin, more in ALLOWED if section == of and sentence.startswith(begin)]
    return f". {said[0]}" if said else ""


def _odd(section: object) -> list[str]:
    """The sentences of a section, each as one line."""
    if not isinstance(section, Mapping) or section.get("state") not in ("odd", "failed"):
        return []
    said = section.get("odd") if section.get("state") == "odd" else [section.get("error")]
    return [printable(each, _LONGEST) for each in said if each] if isinstance(said, (list, tuple)) else []


def _phase(section: str, sentence: str, driverless: bool) -> str:
    """The phase that cures what a sentence says."""
    for of, begin, phase in CURES + (WITH_THE_DRIVER if driverless else ()):
        if section == of and sentence.startswith(begin):
            return phase
    return "pytorch" if section == "python" and _NO_TORCH.match(sentence) else ""


def doctor_lines(answers: Mapping[str, object], logins: Mapping[str, Login], sources: Sequence[str]) -> list[str]:
    """The whole letter: nodes with the same findings together, and at its end what to type next."""
    letters = {host: letter(answers[host], logins.get(host, Login(host))) for host in answers}
    same: dict[tuple[object, ...], list[str]] = {}
    for host, each in letters.items():
        key = each.cause.group if each.cause is not None else (each.what, each.findings)
        same.setdefault(key, []).append(host)
    lines: list[str] = []
    for hosts in same.values():
        of = f"{hosts[0]}: " if len(hosts) > 1 else ""
        lines += [f"{', '.join(hosts)}: {letters[hosts[0]].what}", *letters[hosts[0]].lines(of)]
    return [*lines, *_next(list(letters.values()), sources)]


def _next(letters: Sequence[Letter], sources: Sequence[str]) -> list[str]:
    play = shlex.join(["ansible-playbook", *(word for source in sources for word in ("-i", source))])
    silent = next((each.cause for each in letters if each.cause is not None), None)
    if silent is not None:
        return [f"Next ({silent.kind}):", f"  {silent.command or f'{play} gaudi3.scale.doctor'}"]
    own = any(not each.phase for node in letters for each in node.findings)
    cured = any(each.phase for node in letters for each in node.findings)
    if own:
        behind = ", and what a phase cures can stay" if cured else ""
        return [f"Next, when you have looked at what is odd{behind}:", f"  {play} gaudi3.scale.site --check --diff"]
    return ["Next, to see what the site would change:", f"  {play} gaudi3.scale.site --check --diff"]
