# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Names the variables that a user has to correct where the evaluation of a role's variable failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ansible_collections.gaudi3.scale.plugins.module_utils._printable import printable

from .origin import origin_of
from .roles import DEFAULTS, SPECIFICATIONS

_OPTIONS = frozenset(name for options in SPECIFICATIONS.values() for name in options)


def failing(variables: Mapping[str, Any], evaluate: Callable[[Any], Any], error: Exception, host: str) -> str:
    """A sentence for each variable of ``variables`` that fails; else one with the error that was met."""
    found = list(sentences(variables, evaluate, host))
    return "\n".join(found) or (
        f"A variable of {host} cannot be evaluated ({_said(error)}): correct what its template names."
    )


def sentences(variables: Mapping[str, Any], evaluate: Callable[[Any], Any], host: str) -> Iterator[str]:
    """One for each variable of the roles that fails, with where it stands and what to do."""
    for name in sorted(_OPTIONS & variables.keys()):
        value = variables[name]
        if value == DEFAULTS.get(name):
            continue  # it fails for another's fault
        try:
            evaluate(value)
        except Exception as error:
            where = origin_of(value)
            advice = "correct its template, or define what it names"
            if "hostvars" in str(value) and "ansible_facts" in str(value):
                advice = (
                    "facts are not in hostvars before hosts are asked: write ansible_facts for those of the host "
                    "itself, or give the value in the inventory"
                )
            yield f"{name}{f' ({where})' if where else ''} cannot be evaluated on {host} ({_said(error)}): {advice}."


def _said(error: Exception) -> str:
    return printable(" ".join(str(error).split()), 300).rstrip(".")
