# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What is wrong with the variables of jobs as a user gave them, with the place where each fault stands."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable

from .job_config import Path, config_faults, jobs_faults


@dataclass(frozen=True)
class Given:
    """A variable of a host."""

    name: str
    raw: Any
    """As it was given, templates and all."""
    value: Any
    """What it stands for, from ``plain``."""
    origin: Callable[[Any], str]
    """Says where a part of ``raw`` was given; an empty text where that is unknown."""


def plain(container: Any, key: Any) -> Any:
    """The value of a key or item; ``...`` for each part that cannot be known before the run, as its template fails."""
    try:
        value = container[key]
        # A vaulted text is a kind of its own before ansible-core 2.19, and is shown nowhere.
        if type(value).__name__ == "AnsibleVaultEncryptedUnicode":
            return ...
        if isinstance(value, str):
            unknown = "{{" in value or "{%" in value or value.startswith("__omit_place_holder__")
            return ... if unknown else value
        if isinstance(value, Mapping):
            return {name: plain(value, name) for name in value}
        if isinstance(value, Sequence) and not isinstance(value, bytes):
            return [plain(value, number) for number in range(len(value))]
    except Exception:
        # Of any kind: a template may raise what it likes.
        return ...
    # Ansible has values of its own for what it cannot evaluate, and for what is left out.
    return value if value is None or isinstance(value, (bool, int, float, bytes, datetime.date)) else ...


def config_sentences(given: Given, options: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Every fault of such a variable; ``options`` are those of a job of trainer_jobs."""
    found = jobs_faults(given.value, options) if given.name == "trainer_jobs" else config_faults(given.value)
    return [fault.said(given.name, _origin(given, fault.path)) for fault in found]


def _origin(given: Given, path: Path) -> str:
    """Where the faulty part was given, or else what it is part of."""
    place, part = given.origin(given.raw), given.raw
    for each in path:
        try:
            part = part[each]
        except (KeyError, IndexError, TypeError):
            break
        place = given.origin(part) or place
    return place
