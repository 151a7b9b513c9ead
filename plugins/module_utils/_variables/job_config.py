# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What is wrong with a job's configuration, found without the trainer: names of keys, types, choices and bounds.

What several keys have to do with each other is the trainer's to say, when it starts on the nodes.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

from .._printable import printable
from .job_fields import FIELDS
from .near import nearest

#: Keys of mappings and numbers of items, from the configuration down to the one that is meant.
Path = tuple[Union[str, int], ...]

#: What the trainer takes for a boolean, beside true and false.
_BOOLEANS = frozenset(("0", "1", "off", "on", "f", "t", "false", "true", "n", "y", "no", "yes"))
#: The variable in a sentence, with the job of a list and its configuration behind it.
_PLACE = re.compile(r"\{value\}|\{where\}((?:\[\d+\])?(?:\.(?:node_)?config)?)")
_NUMBERS = {"int": "a whole number", "float": "a number"}
_KINDS = {
    "bool": "true or false",
    "str": "text",
    "date": "a date such as 2026-01-31",
    "list": "a list",
    "mapping": "a mapping",
}


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong."""

    path: Path
    """Where it stands in the configuration."""
    sentence: str
    """A sentence in which ``{where}`` stands for the variable and its origin, and ``{value}`` for the value."""
    value: object = None

    def said(self, where: str, origin: str = "", hidden: bool = False) -> str:
        """The sentence of a configuration that is called ``where``, and was given there (``origin``).

        Of a value that is ``hidden``, the type is said.
        """
        place = f" ({origin})" if origin else ""
        value = kind_of(self.value) if hidden else shown(self.value)
        return _PLACE.sub(lambda found: value if found[0] == "{value}" else f"{where}{found[1]}{place}", self.sentence)


def config_faults(config: object) -> list[Fault]:
    """Everything that is wrong with a configuration; names before values, as a misspelt name explains most else.

    ``None`` stands for no configuration. A value of ``...`` is not known, and right.
    """
    if config is None or config is ...:
        return []
    if not isinstance(config, Mapping):
        return [Fault((), "{where} is {value}: give a mapping of the trainer's keys to values.", config)]
    found = list(_section(config, "", ()))
    return sorted(found, key=lambda fault: not fault.sentence.startswith("Unknown"))


def _section(values: Mapping[Any, Any], prefix: str, path: Path) -> Iterator[Fault]:
    for key, value in values.items():
        name, place = f"{prefix}{key}", (*path, key)
        field = FIELDS.get(name) if isinstance(key, str) and not set(".[") & set(key) else None
        if field is None:
            yield Fault(place, _unknown(name))
        elif field["type"] == "section":
            if isinstance(value, Mapping):
                yield from _section(value, f"{name}.", place)
            elif value is not ...:
                yield Fault(place, f"In {{where}}, {_dotted(place)} is {{value}}: give a mapping of its keys.", value)
        elif field["type"] == "list" and any(each.startswith(f"{name}[].") for each in FIELDS):
            yield from _items(value, name, place)
        else:
            yield from _value(value, field, place)


def _items(values: object, name: str, path: Path) -> Iterator[Fault]:
    """Of a list of mappings."""
    if values is ...:
        return
    if not isinstance(values, Sequence) or isinstance(values, str):
        yield Fault(path, f"In {{where}}, {_dotted(path)} is {{value}}: give a list of mappings.", values)
        return
    own = f"{name}[]."
    needed = [each[len(own) :] for each, field in FIELDS.items() if each.startswith(own) and field.get("required")]
    for number, each in enumerate(values):
        place = (*path, number)
        if not isinstance(each, Mapping):
            if each is not ...:
                yield Fault(place, f"In {{where}}, {_dotted(place)} is {{value}}: give a mapping.", each)
            continue
        yield from _section(each, own, place)
        for key in needed:
            if key not in each:
                yield Fault(place, f"In {{where}}, {_dotted(place)} has no {key}: give it.")


def _value(value: object, field: Mapping[str, Any], path: Path) -> Iterator[Fault]:
    if not takes(value, field):
        yield Fault(path, f"In {{where}}, {_dotted(path)} is {{value}}: give {wanted(field)}.", value)


def takes(value: object, field: Mapping[str, Any]) -> bool:
    """Whether the trainer takes a value for a field of the table, as far as the table says."""
    kind = field["type"]
    if value is ... or kind == "any":
        return True
    if value is None:
        return bool(field.get("null"))
    if kind == "one_of":
        return any(takes(value, each) for each in field["of"])
    if kind in _NUMBERS:
        return value in field.get("words", ()) or _in_bounds(_number(value, kind), field)
    if kind == "bool":
        text = value.lower() if isinstance(value, str) else value
        return text in _BOOLEANS if isinstance(text, str) else text in (0, 1) and isinstance(text, (int, float))
    if kind == "date":
        return _is_date(value)
    if kind == "str":
        return _is_text(value, field)
    if kind == "list":
        return _is_list(value, field)
    return isinstance(value, Mapping)


def _is_text(value: object, field: Mapping[str, Any]) -> bool:
    # A date is written out when the configuration is handed to a node.
    if isinstance(value, datetime.date):
        return "choices" not in field and "pattern" not in field
    if not isinstance(value, str) or len(value) < field.get("length", 0):
        return False
    if "pattern" in field and not re.search(field["pattern"], value):
        return False
    return "choices" not in field or value in field["choices"]


def _is_date(value: object) -> bool:
    """A date, its text, or seconds since 1970 at a midnight."""
    if isinstance(value, str):
        try:
            datetime.date.fromisoformat(value)
        except ValueError:
            return bool(re.fullmatch(r"-?\d+", value)) and int(value) % 86400 == 0
        return True
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return isinstance(value, datetime.date)
    return value * 0 == 0 and round(value, 6) % 86400 == 0


def _is_list(value: object, field: Mapping[str, Any]) -> bool:
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
        return False
    if not field.get("length", 0) <= len(value) <= field.get("most_items", len(value)):
        return False
    return all(takes(each, field["items"]) for each in value) if "items" in field else True


def _number(value: object, kind: str) -> Optional[float]:
    """The number that the trainer makes of a value; None where it makes none."""
    try:
        if isinstance(value, str):
            value = float(value) if kind == "float" else _whole(value)
        if not isinstance(value, (int, float)) or (kind == "int" and value != int(value)):
            return None
    except (ValueError, OverflowError):
        return None
    return value


def _whole(text: str) -> float:
    try:
        return int(text)
    except ValueError:
        if not re.fullmatch(r"\s*[+-]?[\d_]+\.0*\s*", text):
            raise
        return float(text)


def _in_bounds(number: Optional[float], field: Mapping[str, Any]) -> bool:
    return number is not None and (
        ("least" not in field or number >= field["least"])
        and ("most" not in field or number <= field["most"])
        and ("above" not in field or number > field["above"])
        and ("below" not in field or number < field["below"])
    )


def wanted(field: Mapping[str, Any]) -> str:
    """What a field takes, as the end of a sentence."""
    kind = field["type"]
    if kind == "one_of":
        said = " or ".join(wanted(each) for each in field["of"])
    elif "choices" in field:
        said = _or(field["choices"])
    elif kind in _NUMBERS:
        bounds = {"least": "of at least", "above": "above", "most": "of at most", "below": "below"}
        said = " and ".join(f"{bounds[each]} {field[each]}" for each in bounds if each in field)
        said = _or([f"{_NUMBERS[kind]} {said}".rstrip(), *field.get("words", ())])
    elif kind == "list":
        count = f" of {field['most_items']} items" if "most_items" in field else ""
        said = f"a list{count}" + (f", each {wanted(field['items'])}" if "items" in field else "")
    elif "pattern" in field:
        said = f"text that matches {field['pattern']}"
    else:
        said = _KINDS[kind] + (" that is not empty" if field.get("length") else "")
    return said + (" or null" if field.get("null") else "")


def _or(alternatives: Sequence[str]) -> str:
    return alternatives[0] if len(alternatives) == 1 else f"{', '.join(alternatives[:-1])} or {alternatives[-1]}"


def _unknown(name: str) -> str:
    # An item of a list has keys of its own, which are no names in the rest of the configuration.
    above = name.rpartition("[].")[0]
    known = [each for each in FIELDS if each.rpartition("[].")[0] == above and not name.startswith(f"{each}.")]
    near = nearest(name, known)
    hint = f"did you mean {near!r}?" if near else "`gaudi3-train config` prints all keys."
    return f"Unknown key {printable(name, 100)!r} in {{where}}: {hint}"


def _dotted(path: Path) -> str:
    text = ""
    for each in path:
        text += f"[{each}]" if isinstance(each, int) else f".{printable(each, 100)}"
    return text.removeprefix(".")


def shown(value: object) -> str:
    """A value for a sentence: a plain one itself, of any other its kind."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"'{printable(value, 100)}'"
    return str(value) if isinstance(value, (int, float)) else kind_of(value)


def kind_of(value: object) -> str:
    """What a value is, and nothing of what it holds."""
    kinds: tuple[tuple[Union[type, tuple[type, ...]], str], ...] = (
        (str, "a text"),
        (bool, "a boolean"),
        ((int, float), "a number"),
        (Mapping, "a mapping"),
        (Sequence, "a list"),
    )
    named = next((said for kind, said in kinds if isinstance(value, kind)), f"a {type(value).__name__}")
    return "null" if value is None else named


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
        elif key in ("config", "node_config"):
            for fault in config_faults(value):
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
