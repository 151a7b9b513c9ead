# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What is wrong with variables that are mappings or lists, as a user gave them, and where each fault stands."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable

from .._secret_words import names_secret, secret_kind
from .dictionaries import DICTIONARIES, dictionary_faults
from .job_config import config_faults, jobs_faults
from .shapes import Path


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
    encrypted: Callable[[Any], bool] = lambda part: False
    """Says whether a part of ``raw`` comes out of a vault."""

    def hides(self, path: Path, value: object) -> bool:
        """Whether the value at a path is not to be shown."""
        names = [self.name, *path]
        parts = list(_parts(self, path))
        return any(may_be_secret(name, part, value, self.encrypted) for name, part in zip(names, parts)) or any(
            names_secret(str(name)) for name in names[len(parts) :]
        )


def plain(container: Any, key: Any) -> Any:
    """The value of a key or item; ``...`` for each part that cannot be known before the run, as its template fails."""
    try:
        value = container[key]
        # A vaulted text is a kind of its own before ansible-core 2.19, and is shown nowhere.
        if type(value).__name__ == "AnsibleVaultEncryptedUnicode":
            return ...
        if isinstance(value, str):
            unknown = is_template(value) or value.startswith("__omit_place_holder__")
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
    if given.name == "trainer_jobs":
        found = jobs_faults(given.value, options)
    elif given.name in DICTIONARIES:
        found = dictionary_faults(given.name, given.value)
    else:
        found = config_faults(given.value)
    return [fault.said(given.name, _origin(given, fault.path), given.hides(fault.path, fault.value)) for fault in found]


def _parts(given: Given, path: Path) -> Iterator[Any]:
    """What was given, and which of its keys are on the path, as far as they were written out."""
    part = given.raw
    yield part
    for each in path:
        try:
            part = part[each]
        except (KeyError, IndexError, TypeError):
            return
        yield part


def _origin(given: Given, path: Path) -> str:
    """Where the faulty part was given, or else what it is part of."""
    place = ""
    for part in _parts(given, path):
        place = given.origin(part) or place
    return place


def may_be_secret(name: object, raw: object, value: object, encrypted: Callable[[Any], bool]) -> bool:
    """Whether a value is not to be shown: what a template or a vault makes, and what is a secret by name or form."""
    made = not isinstance(raw, (str, int, float, Mapping, Sequence, datetime.date, type(None))) or is_template(raw)
    return bool(made or encrypted(raw) or names_secret(str(name)) or (isinstance(value, str) and secret_kind(value)))


def is_template(value: object) -> bool:
    """Whether a text stands for something else."""
    return isinstance(value, str) and ("{{" in value or "{%" in value)


def has_template(value: object) -> bool:
    """Whether some part of a value stands for something else."""
    if isinstance(value, Mapping):
        return any(has_template(each) for pair in value.items() for each in pair)
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return any(has_template(each) for each in value)
    return is_template(value) or not isinstance(value, (str, int, float, bytes, datetime.date, type(None)))
