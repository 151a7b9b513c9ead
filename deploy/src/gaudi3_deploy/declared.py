"""What a root module declares: its variables with their types, read from its files without starting Terraform.

A type is read as it is written: ``string``, ``list(object({name = string, port = optional(number)}))`` and so on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gaudi3_deploy.messages import meant, shown

WORD = re.compile(r"\s*([A-Za-z_]\w*|[(){}=,]|\"(?:[^\"\\]|\\.)*\"|-?[\d.]+|\[[^\]]*\])")
BLOCK = re.compile(r'^variable "(\w+)" \{(?:([^\n]*)\}$|\n(.*?)^\})', re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"^\s*(?:#|//).*$", re.MULTILINE)
#: What a value of a simple type may be; Terraform makes text of numbers, and numbers of text.
NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
EXAMPLES = {"string": "text", "number": "a number", "bool": "true or false", "list": "a list", "map": "a mapping"}


@dataclass(frozen=True)
class Type:
    """``kind`` is string, number, bool, list, map, object or any; ``of`` is a list's or a map's."""

    kind: str
    of: Type | None = None
    keys: Mapping[str, Type] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()
    """Those of ``keys`` that may be left out."""


@dataclass(frozen=True)
class Variable:
    """A variable of a root module."""

    name: str
    type: Type
    required: bool


def variables(directory: Path) -> dict[str, Variable]:
    """The variables of a root module, by name."""
    found = {}
    for path in sorted(directory.glob("*.tf")):
        for name, line, block in BLOCK.findall(COMMENT.sub("", path.read_text())):
            body = line or block
            written = re.search(r"^\s*type\s*=\s*", body, re.MULTILINE)
            kind = _type(_Tokens(body[written.end() :])) if written else Type("any")
            found[name] = Variable(name, kind, not re.search(r"^\s*default\s*=", body, re.MULTILINE))
    return found


def names(directory: Path) -> set[str]:
    """Names of a root module's variables."""
    texts = (path.read_text() for path in directory.glob("*.tf"))
    return {name for text in texts for name in re.findall(r'^variable "(\w+)"', text, re.MULTILINE)}


class _Tokens:
    """The tokens of a type, one after the other."""

    def __init__(self, text: str) -> None:
        self._text, self._place = text, 0

    def next(self) -> str:
        found = WORD.match(self._text, self._place)
        if found is None:
            return ""
        self._place = found.end()
        return found[1]

    def skip(self, count: int) -> None:
        for _word in range(count):
            self.next()

    def peek(self) -> str:
        found = WORD.match(self._text, self._place)
        return found[1] if found else ""


def _type(tokens: _Tokens) -> Type:
    kind = tokens.next()
    if kind in ("list", "set", "map"):
        tokens.skip(1)  # (
        of = _type(tokens)
        tokens.skip(1)  # )
        return Type("map" if kind == "map" else "list", of)
    if kind != "object":
        return Type(kind if kind in EXAMPLES else "any")
    tokens.skip(2)  # ({
    keys, optional = {}, set()
    while (name := tokens.next()) not in ("}", ""):
        tokens.skip(1)  # =
        if tokens.peek() == "optional":
            tokens.skip(2)  # optional(
            keys[name] = _type(tokens)
            optional.add(name)
            while tokens.next() not in (")", ""):  # and its default
                pass
        else:
            keys[name] = _type(tokens)
        if tokens.peek() == ",":
            tokens.skip(1)
    tokens.skip(1)  # )
    return Type("object", None, keys, frozenset(optional))


def wrong(value: Any, kind: Type, where: str) -> Iterator[str]:
    """Sentences on what of a value is not of a type; ``where`` names the value."""
    if value is None or kind.kind == "any":
        return
    if kind.kind == "list":
        if not isinstance(value, list):
            yield f"{where} is {shown(value)}: give a list, such as [{shown('a')}, {shown('b')}]"
            return
        for index, each in enumerate(value):
            yield from wrong(each, kind.of or Type("any"), f"{where}[{index}]")
    elif kind.kind in ("map", "object"):
        if not isinstance(value, dict):
            keys = f" with the keys {', '.join(kind.keys)}" if kind.keys else ""
            yield f"{where} is {shown(value)}: give a mapping{keys}"
            return
        if kind.kind == "map":
            for key, each in value.items():
                yield from wrong(each, kind.of or Type("any"), f"{where}.{key}")
        else:
            yield from _wrong_keys(value, kind, where)
    elif not _simple(value, kind.kind):
        yield f"{where} is {shown(value)}: give {EXAMPLES[kind.kind]}"


def _wrong_keys(value: Mapping[str, Any], kind: Type, where: str) -> Iterator[str]:
    for key in value:
        name, _sign, rest = (part.strip() for part in str(key).partition("="))
        if rest and name in kind.keys:
            yield f"{where} has {shown(key)}, as Terraform writes it: write it as YAML does, {name}: {rest}"
        elif key not in kind.keys:
            yield f"{where} has the key {shown(key)}, which is not known{meant(str(key), kind.keys)}"
    missing = [key for key in kind.keys if key not in kind.optional and value.get(key) is None]
    if missing and not set(value) - set(kind.keys):  # else the misspelt key is what is missing
        yield f"{where} lacks {', '.join(missing)}: give {'it' if len(missing) == 1 else 'them'}"
    for key, each in value.items():
        if key in kind.keys:
            yield from wrong(each, kind.keys[key], f"{where}.{key}")


def _simple(value: Any, kind: str) -> bool:
    if isinstance(value, (list, dict)):
        return False
    if kind == "string":
        return True
    if kind == "bool":
        return isinstance(value, bool) or str(value) in ("true", "false", "0", "1")
    return is_number(value)


def is_number(value: Any) -> bool:
    """Whether a value is a number, or the text of one."""
    return not isinstance(value, bool) and bool(NUMBER.fullmatch(str(value)))
