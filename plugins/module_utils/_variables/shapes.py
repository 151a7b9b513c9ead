# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What is wrong with a nested value, by a table of its keys: names, types, choices and bounds.

A table names each key with its sections before it, and what it takes. ``name[].key`` is a key of the items of a list,
and a name with a ``*`` stands for keys that the user names.
"""

from __future__ import annotations

import datetime
import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

from .._printable import printable
from .near import nearest

#: Keys of mappings and numbers of items, from the whole value down to the one that is meant.
Path = tuple[Union[str, int], ...]
#: What each key takes, by its dotted name.
Fields = Mapping[str, Mapping[str, Any]]

#: What counts as a boolean, beside true and false.
_BOOLEANS = frozenset(("0", "1", "off", "on", "f", "t", "false", "true", "n", "y", "no", "yes"))
#: The variable in a sentence, with the job of a list and its configuration behind it.
_PLACE = re.compile(r"\{value\}|\{where\}((?:\[\d+\])?(?:\.(?:(?:node_)?config|interruption))?)")
_NUMBERS = {"int": "a whole number", "float": "a number"}
_KINDS = {
    "bool": "true or false",
    "str": "text",
    "date": "a date such as 2026-01-31",
    "list": "a list",
    "mapping": "a mapping",
    "scalar": "text, a number, true or false",
}


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong."""

    path: Path
    """Where it stands."""
    sentence: str
    """A sentence in which ``{where}`` stands for the variable and its origin, and ``{value}`` for the value."""
    value: object = None

    def said(self, where: str, origin: str = "", hidden: bool = False) -> str:
        """The sentence of a value that is called ``where``, and was given there (``origin``).

        Of a value that is ``hidden``, the type is said.
        """
        place = f" ({origin})" if origin else ""
        value = kind_of(self.value) if hidden else shown(self.value)
        return _PLACE.sub(lambda found: value if found[0] == "{value}" else f"{where}{found[1]}{place}", self.sentence)


@dataclass(frozen=True)
class Table:
    """The keys of a value, and what to say of one that is none of them."""

    fields: Fields
    root: str = ""
    """The name of the whole value, with which the names of the table begin."""
    otherwise: str = ""
    """What to say where no known name is like it; nothing means all that there are."""

    def written(self, name: str) -> str:
        """A name as the user writes it."""
        return name[len(self.root) :].lstrip("[].") if self.root and name.startswith(self.root) else name

    def advice(self, name: str) -> str:
        """What to do about a name that is like no other."""
        if self.otherwise:
            return self.otherwise
        above = name.rpartition(".")[0]
        return f"give {_or([each[len(above) + 1 :] for each in self.fields if each.rpartition('.')[0] == above])}."


def section_faults(values: Mapping[Any, Any], prefix: str, table: Table, path: Path = ()) -> Iterator[Fault]:
    """Everything that is wrong with a mapping, the names of whose keys have ``prefix`` before them in the table."""
    for key, value in values.items():
        place = (*path, key)
        name = _known(key, prefix, table.fields)
        if name is None:
            yield Fault(place, _unknown(f"{prefix}{key}", table))
        else:
            yield from field_faults(value, name, table, place)


def field_faults(value: object, name: str, table: Table, path: Path = ()) -> Iterator[Fault]:
    """Everything that is wrong with the value of one name of the table. A value of ``...`` is not known, and right."""
    field, fields = table.fields[name], table.fields
    if field["type"] == "section":
        if isinstance(value, Mapping):
            yield from section_faults(value, f"{name}.", table, path)
        elif value is not ... and not (value is None and field.get("null")):
            yield Fault(path, f"{_subject(path)}: give a mapping of its keys.", value)
    elif field["type"] == "list" and any(each.startswith(f"{name}[].") for each in fields):
        yield from _items(value, name, table, path)
    elif not takes(value, field):
        yield Fault(path, f"{_subject(path)}: give {wanted(field)}.", value)


def _known(key: object, prefix: str, fields: Fields) -> Optional[str]:
    """The name in the table that a key has, or one with a ``*`` that it matches."""
    if not isinstance(key, str) or (set(".[") & set(key) and f"{prefix}*" not in fields):
        return None
    if f"{prefix}{key}" in fields:
        return f"{prefix}{key}"
    # Keys of a section below are none of this one.
    open_names = (each for each in fields if each.startswith(prefix) and "*" in each[len(prefix) :])
    return next((each for each in open_names if fnmatch.fnmatchcase(key, each[len(prefix) :])), None)


def _items(values: object, name: str, table: Table, path: Path) -> Iterator[Fault]:
    """Of a list of mappings."""
    if values is ...:
        return
    if not isinstance(values, Sequence) or isinstance(values, str):
        yield Fault(path, f"{_subject(path)}: give a list of mappings.", values)
        return
    own = f"{name}[]."
    needed = [
        each[len(own) :] for each, field in table.fields.items() if each.startswith(own) and field.get("required")
    ]
    for number, each in enumerate(values):
        place = (*path, number)
        if not isinstance(each, Mapping):
            if each is not ...:
                yield Fault(place, f"{_subject(place)}: give a mapping.", each)
            continue
        yield from section_faults(each, own, table, place)
        for key in needed:
            if key not in each:
                yield Fault(place, f"In {{where}}, {_dotted(place)} has no {key}: give it.")


def takes(value: object, field: Mapping[str, Any]) -> bool:
    """Whether a field of a table takes a value."""
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
    if kind == "scalar":
        return isinstance(value, (str, int, float))
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
    """The number that a value stands for; None where it is none."""
    try:
        if isinstance(value, str):
            value = float(value) if kind == "float" else _whole(value)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or (kind == "int" and value != int(value)):
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


def _unknown(name: str, table: Table) -> str:
    # An item of a list has keys of its own, which are no names in the rest.
    above = name.rpartition("[].")[0]
    known = [each for each in table.fields if each.rpartition("[].")[0] == above and not name.startswith(f"{each}.")]
    whole = table.written(name)
    if name in table.fields:
        # With a dot in one key, as the command line of the trainer takes them.
        above, _dot, rest = whole.rpartition(".")
        return f"Key {printable(whole, 100)!r} in {{where}} is written as one: write {rest} as a key below {above}."
    near = nearest(whole, [table.written(each) for each in known if "*" not in each])
    hint = f"did you mean {near!r}?" if near else table.advice(name)
    return f"Unknown key {printable(whole, 100)!r} in {{where}}: {hint}"


def _subject(path: Path) -> str:
    return f"In {{where}}, {_dotted(path)} is {{value}}" if path else "{where} is {value}"


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
