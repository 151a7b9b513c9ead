# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What a playbook registered of management controllers, by the names of their machines: facts, and lines for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from .._kinds import count, mapping, text, texts


def facts_of(answer: object) -> Mapping[str, Any]:
    """The facts in a registered result of gaudi_bmc_facts; none where there are none."""
    return mapping(mapping(mapping(answer).get("ansible_facts")).get("gaudi_bmc"))


def lines(answers: Mapping[str, object]) -> list[str]:
    """A line for each machine: what its controller says, or why it says nothing."""
    return [f"{name}: {_said(answers[name])}" for name in sorted(answers)]


def _said(answer: object) -> str:
    facts = facts_of(answer)
    cards = count(facts.get("card_count"))
    if not facts or cards is None:
        why: Optional[str] = text(mapping(answer).get("msg"))
        return why or "its controller was not asked"
    return "; ".join(texts(facts.get("said")) or []) or f"{cards} cards, nothing to say"
