# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What is wrong with a job's configuration, found without the trainer: names of keys, types, choices and bounds.

What several keys have to do with each other is the trainer's to say, when it starts on the nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .._printable import printable
from .job_fields import FIELDS
from .near import nearest
from .shapes import Fault, Table, field_faults, section_faults, takes, wanted

_ADVICE = "`gaudi3-train config` prints all keys."
_TABLE = Table(FIELDS, otherwise=_ADVICE)


def config_faults(config: object) -> list[Fault]:
    """Everything that is wrong with a configuration; names before values, as a misspelt name explains most else.

    ``None`` stands for no configuration. A value of ``...`` is not known, and right.
    """
    if config is None or config is ...:
        return []
    if not isinstance(config, Mapping):
        return [Fault((), "{where} is {value}: give a mapping of the trainer's keys to values.", config)]
    found = list(section_faults(config, "", _TABLE))
    return sorted(found, key=lambda fault: not fault.sentence.startswith("Unknown"))


def interruption_faults(section: object) -> list[Fault]:
    """Everything that is wrong with the section ``interruption`` of a configuration, given by itself."""
    table = Table(FIELDS, "interruption", _ADVICE)
    return [] if section is None else list(field_faults(section, "interruption", table))


def jobs_faults(jobs: object, options: Mapping[str, Mapping[str, Any]]) -> list[Fault]:
    """Everything that is wrong with a list of jobs, of which each may have the ``options`` of a specification."""
    if jobs is None or jobs is ...:
        return []
    if not isinstance(jobs, Sequence) or isinstance(jobs, str):
        return [Fault((), "{where} is {value}: give a list of jobs, each with its name.", jobs)]
    found: list[Fault] = []
    for number, job in enumerate(jobs):
        if isinstance(job, Mapping):
            found += _job(job, number, options)
        elif job is not ...:
            found.append(Fault((number,), f"{{where}}[{number}] is {{value}}: give a mapping with a name.", job))
    return sorted(found, key=lambda fault: not fault.sentence.startswith("Unknown"))


def _job(job: Mapping[Any, Any], number: int, options: Mapping[str, Mapping[str, Any]]) -> Iterator[Fault]:
    inner = f"{{where}}[{number}]"
    for key, value in job.items():
        option, path = options.get(key), (number, key)
        if option is None:
            near = nearest(str(key), list(options))
            hint = f"did you mean {near!r}?" if near else f"a job takes {', '.join(options)}."
            yield Fault(path, f"Unknown key {printable(key, 100)!r} in {inner}: {hint}")
        elif key in ("config", "node_config", "interruption"):
            for fault in interruption_faults(value) if key == "interruption" else config_faults(value):
                sentence = fault.sentence.replace("{where}", f"{{where}}[{number}].{key}", 1)
                yield Fault((*path, *fault.path), sentence, fault.value)
        else:
            # Ansible makes a text of a number, and a list of a text.
            field = {"type": {"dict": "mapping", "str": "any"}.get(option["type"], option["type"]), "null": True}
            if field["type"] == "list" and isinstance(value, (str, int, float)):
                continue
            if "choices" in option:
                field["type"] = "str"
            field.update({"choices": option["choices"]} if "choices" in option else {})
            if not takes(value, field):
                said = wanted({**field, "null": False})
                yield Fault(path, f"In {inner}, {key} is {{value}}: give {said}.", value)
    for key, option in options.items():
        if option.get("required") and key not in job:
            yield Fault((number,), f"{inner} has no {key}: give it.")
