# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What a playbook registered of nodes and of their management controllers, as evidence by the nodes' names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .._kinds import mapping, text
from .._printable import printable
from .._refusal import Refusal
from .evidence import read, with_controller

_NO_ANSWER = "it gave no answer"


def answers(nodes: Mapping[str, object], controllers: Mapping[str, object]) -> dict[str, dict[str, Any]]:
    """The evidence of each node, under the inventory's name for it; ``why`` says why there is none."""
    return {node: _answer(node, nodes[node], controllers.get(node)) for node in sorted(nodes)}


def _answer(node: str, answer: object, controller: object) -> dict[str, Any]:
    try:
        evidence = replace(read(mapping(answer).get("evidence")), node=printable(node, 100))
    except Refusal:
        return {"evidence": {}, "why": text(mapping(answer).get("msg"), 300) or _NO_ANSWER}
    asked = mapping(controller)
    if asked and asked.get("skipped") is not True:
        facts = mapping(mapping(asked.get("ansible_facts")).get("gaudi_bmc"))
        why = "" if facts else text(asked.get("msg"), 300) or _NO_ANSWER
        evidence = with_controller(evidence, facts, why)
    return {"evidence": evidence.as_facts(), "why": ""}
