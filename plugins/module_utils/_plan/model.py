# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What a phase asks a host, and how its answers decide whether the phase changes anything there.

A phase asks what its role's own tasks would do, with the options that those tasks have, each as in check mode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from .run import Run

#: The value of a variable of the roles on one host, by its name.
Values = Callable[[str], Any]
#: What a host answered, by the names of the questions. A host may have answered anything.
Answers = Mapping[str, Any]


@dataclass(frozen=True)
class Question:
    """What one task would do on a host, or a question that no task asks."""

    name: str
    """Key of the answer."""
    role: str
    task: str = ""
    """Name of the role's task whose module and options are asked."""
    module: str = ""
    """Where no task asks it: one of the parts of gaudi_node_look."""
    options: Optional[Callable[[Values], Mapping[str, Any]]] = None
    """Its options, in place of a task's."""
    applies: Callable[[Values], bool] = lambda _values: True
    tolerated: bool = False
    """Whether its failure refuses nothing: the phase runs then, and says it itself."""


@dataclass(frozen=True)
class Phase:
    """One phase of a site on one host."""

    name: str
    questions: Sequence[Question]
    asks: Callable[[Run, Values], bool]
    """Whether this run asks them."""
    unchanged: Callable[[Values, Answers], bool]
    """Whether it would change nothing, so that the host is left out of it. Never by an answer that cannot be read."""
    anywhere: bool = False
    """Whether hosts without cards have it, too."""
    details: Sequence[Question] = ()
    """Asked only where the driver is as it is to be, and with the first answers known."""


def mapping(answers: Answers, name: str) -> Mapping[str, Any]:
    """One answer; an empty one in place of what is missing, failed or is no mapping."""
    found = answers.get(name)
    if not isinstance(found, Mapping) or found.get("failed") or found.get("skipped"):
        return {}
    return found


def empty(answer: Mapping[str, Any], name: str) -> bool:
    """Whether a list is there and has nothing in it."""
    found = answer.get(name)
    return isinstance(found, (list, tuple)) and not found
