# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The file of a certificate: the evidence and the judgement on it. Its signature lies in a file beside it.

The text is canonical, so that the same content has the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace

from .._kinds import mapping, parsed
from .._printable import printable
from .._refusal import Refusal
from .evidence import Evidence, read
from .judge import Judgement, assess

#: Bytes that a certificate may have: sixteen cards with all their rows and ports have less.
LARGEST = 8 << 20


@dataclass(frozen=True)
class Certificate:
    """The evidence, the judgement on it, and the SHA-256 of the file, by which a printed page names it."""

    evidence: Evidence
    judgement: Judgement
    digest: str


def file_of(node: str) -> str:
    """Name of a node's certificate in the folder."""
    return f"{node}.certificate.json"


def write(evidence: Evidence) -> str:
    """The text of the file."""
    content = {"certificate": evidence.as_facts(), "judgement": assess(evidence).as_facts()}
    return json.dumps(content, indent=1, sort_keys=True, ensure_ascii=True) + "\n"


def load(text: str, name: str) -> Certificate:
    """The certificate in a file's text; Refusal where it is none, or its judgement is not that on its evidence."""
    content = mapping(parsed(text)) if len(text) <= LARGEST else {}
    if "certificate" not in content:
        raise Refusal(f"{printable(name, 300)} is no certificate: give a file NODE.certificate.json.")
    evidence = read(content["certificate"])
    judgement = assess(evidence)
    said = mapping(content.get("judgement")).get("grade")
    if said != judgement.grade:
        raise Refusal(
            f"{printable(name, 300)} says grade {printable(said, 40)}, and its evidence comes to {judgement.grade}: it"
            " was changed, or judged by the rules of another release; judge it with that release, or take a new one."
        )
    return Certificate(evidence, judgement, digest(text))


def digest(text: str) -> str:
    """The SHA-256 of a file's text."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def is_same(old: str, evidence: Evidence) -> bool:
    """Whether a kept file says the same as this evidence by today's rules, but for when that was."""
    try:
        kept = load(old, "the kept one").evidence
    except Refusal:
        return False
    return write(kept) == old and _without_times(kept) == _without_times(evidence)


def _without_times(evidence: Evidence) -> Evidence:
    return replace(evidence, taken_at=0.0, uptime_s=None, disks=())
