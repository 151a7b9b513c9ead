# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Values of the roles' variables on one host, each evaluated once.

Ansible evaluates a variable again wherever a template names it, and compiles its template each time. A host's plan
needs about three hundred, most of which are plain values or name another variable and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError
from ansible.utils.unsafe_proxy import AnsibleUnsafe, wrap_var

from ansible_collections.gaudi3.scale.plugins.module_utils._plan.decisions import DECISIONS

from .roles import trusted

try:
    from ansible.template import is_trusted_as_template
except ImportError:
    is_trusted_as_template = None

#: A template that is one variable, or one with a default that is a plain text or number.
_NAME = re.compile(r"\{\{ ?(\w+) ?\}\}")
_DEFAULT = re.compile(r"\{\{ ?(\w+) \| default\((?:'([^'\\]*)'|(\d+)|(true|false))\) ?\}\}")
#: One that is the first of two or three variables, or the hosts of a group, or the first of them.
_FIRST = re.compile(r"\{\{ ?(\w+) \| default\((\w+)(?: \| default\((\w+)\))?\) ?\}\}")
_GROUP = re.compile(r"\{\{ ?groups\['(\w+)'\] \| default\(\[\]\)( \| first \| default\(''\))? ?\}\}")
#: One that is a decision of this collection's own, or a part of a variable that is one.
_DECISION = re.compile(r"\{\{ ?lookup\('gaudi3\.scale\.plan', '(\w+)'\) ?\}\}")
_PART = re.compile(r"\{\{ ?(_\w+)\.(\w+) ?\}\}")
_TEMPLATE = re.compile(r"\{[{%#]")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_WORD = re.compile(r"(?<![.\w])[a-z_]\w*")
#: A file of a role that is rendered.
_FILE = re.compile(r"lookup\('ansible\.builtin\.template', role_path ~ '/\.\./(\w+/templates/[\w.-]+)'\)")
#: What Ansible itself puts among the variables: of all hosts, or what hosts answered.
_OTHERS = frozenset({"hostvars", "vars", "groups", "ansible_facts", "omit", "environment", "_gaudi_plan"})
#: What changes while a host is asked.
_ANSWERS = frozenset({"ansible_facts", "_gaudi_plan"})
ROLES = Path(__file__).resolve().parents[2] / "roles"


class RoleValues:
    """The variables of a host, as its inventory, the roles and its own answers have them."""

    def __init__(self, given: Mapping[str, Any], template: Callable[[Any, dict[str, Any]], Any]) -> None:
        """``template`` evaluates a value with these variables."""
        self._raw: dict[str, Any] = dict(given)
        self._template = template
        self._known: dict[str, Any] = {}
        self._texts: dict[str, Any] = {}
        self._follows: dict[str, bool] = {}
        self._busy: set[str] = set()
        self._decided: dict[str, Any] = {}
        self._deciding: list[str] = []

    def answered(self, **answers: Any) -> None:
        """The host has answered more, so that what follows from its answers may have other values."""
        self._raw.update(answers)
        self._decided = {}
        self._known = {name: value for name, value in self._known.items() if not self._changes(name)}
        self._texts = {text: value for text, value in self._texts.items() if not self._changes_in(text)}

    def __getitem__(self, name: str) -> Any:
        """The value of a variable, None where it has none."""
        if name in _OTHERS or name not in self._raw:
            return self._raw.get(name)
        if name not in self._known:
            self._known[name] = plain(self.evaluate(self._raw[name]))
        return self._known[name]

    def evaluate(self, value: Any) -> Any:
        """A value with its templates evaluated, without what is omitted."""
        if isinstance(value, str):
            return self._text(value)
        omitted = self._raw.get("omit")
        if isinstance(value, dict):
            found = {name: self.evaluate(each) for name, each in value.items()}
            return {name: each for name, each in found.items() if not _same(each, omitted)}
        if isinstance(value, list):
            return [each for each in map(self.evaluate, value) if not _same(each, omitted)]
        return value

    def rendered(self, path: Path) -> str:
        """A template's file. One of the roles gets only the variables that it names, as Ansible copies all it gets."""
        text = trusted("{{ lookup('ansible.builtin.template', " + repr(str(path)) + ") }}")
        variables = self._of_file(text, path) if ROLES in path.parents else self._for(text)
        return str(self._template([text], variables)[0])

    def _text(self, text: str) -> Any:
        if not is_template(text):
            return text
        alone = _NAME.fullmatch(text)
        if alone and alone[1] in self._raw:
            return self[alone[1]]
        if text not in self._texts:
            self._texts[text] = self._without_template(text)
        return self._texts[text]

    def _without_template(self, text: str) -> Any:
        """The value of a text that Ansible need not evaluate, or else Ansible's own."""
        decision, part = _DECISION.fullmatch(text), _PART.fullmatch(text)
        if decision:
            return self.decide(decision[1])
        if part and _DECISION.fullmatch(str(self._raw.get(part[1]))) and part[2] in self[part[1]]:
            return self[part[1]][part[2]]
        if _DEFAULT.fullmatch(text):
            return self._default(text)
        first, group = _FIRST.fullmatch(text), _GROUP.fullmatch(text)
        known = next((name for name in first.groups() if name in self._raw), None) if first else None
        if known:
            return self[known]
        return self._hosts(group[1], bool(group[2])) if group else self._evaluated(text)

    def _hosts(self, group: str, first: bool) -> Any:
        hosts = list((self._raw.get("groups") or {}).get(group) or [])
        return (hosts or [""])[0] if first else hosts

    def decide(self, name: str) -> Any:
        """What this collection decides for the host under a name; ``Refusal`` where it cannot."""
        if name in self._decided:
            return self._decided[name]
        if name not in DECISIONS:
            raise AnsibleError(f"'{name}' is nothing that is decided: give one of {', '.join(DECISIONS)}.")
        if name in self._deciding:
            raise AnsibleError(f"What is decided as '{name}' follows from itself: {' > '.join(self._deciding)}.")
        self._deciding.append(name)
        try:
            self._decided[name] = DECISIONS[name](self.__getitem__)
        finally:
            self._deciding.remove(name)
        return self._decided[name]

    def _default(self, text: str) -> Any:
        name, word, digits, truth = _DEFAULT.fullmatch(text).groups()  # type: ignore[union-attr]
        if name in self._raw:
            return self[name]
        return word if word is not None else int(digits) if digits is not None else truth == "true"

    def _evaluated(self, text: str) -> Any:
        file = _FILE.search(text)
        variables = self._for(text) if file is None else self._of_file(text, ROLES / file[1])
        # In a list, as Ansible takes what is omitted out of one, and fails where nothing is left.
        found = self._template([text], variables)
        return found[0] if found else self._raw.get("omit")

    def _for(self, text: str) -> dict[str, Any]:
        """The variables, those that a template names evaluated."""
        self._evaluate(_names(text) & self._raw.keys() - _OTHERS)
        return {**self._raw, **self._known}

    def _of_file(self, text: str, path: Path) -> dict[str, Any]:
        """The variables that a file names: Ansible copies all that it gets, for each file."""
        names = (_names(text) | _names_in_file(path)) & self._raw.keys()
        self._evaluate(names - _OTHERS)
        return {name: self._known.get(name, self._raw[name]) for name in {*names, "omit"} & self._raw.keys()}

    def _evaluate(self, names: set[str]) -> None:
        """Evaluate variables. What has no value yet stays as it is."""
        for name in names:
            if name in self._known or name in self._busy or not _has_template(self._raw[name]):
                continue
            self._busy.add(name)
            try:
                self[name]
            except Exception:
                # In a branch that is not taken, maybe; the template itself fails where it needs it.
                continue
            finally:
                self._busy.discard(name)

    def _changes(self, name: str) -> bool:
        """Whether a variable follows from what a host answers."""
        if name not in self._follows:
            self._follows[name] = name in _ANSWERS
            if name not in _OTHERS:
                self._follows[name] = any(map(self._changes_in, _texts(self._raw[name])))
        return self._follows[name]

    def _changes_in(self, text: str) -> bool:
        if not _TEMPLATE.search(text):
            return False
        if "gaudi3.scale.plan" in text:
            return True
        file = _FILE.search(text)
        words = _names(text) | (_names_in_file(ROLES / file[1]) if file else set())
        # A name in quotes may be one that a lookup reads.
        words |= set(_WORD.findall(" ".join(_QUOTED.findall(text))))
        return any(map(self._changes, words & (self._raw.keys() | _ANSWERS)))


def _names(text: str) -> set[str]:
    """What may be variables in a template."""
    return set(_WORD.findall(_QUOTED.sub("", text)))


@cache
def _names_in_file(path: Path) -> set[str]:
    """What may be variables in a file, in whose prose an apostrophe begins no text."""
    return set(_WORD.findall(path.read_text(encoding="utf-8")))


def _same(value: Any, omitted: Any) -> bool:
    return omitted is not None and (value is omitted or (isinstance(omitted, str) and value == omitted))


def plain(value: Any) -> Any:
    """A value none of whose texts is a template, such as what a host answered or what was evaluated."""
    # From 2.19 on Ansible takes no text for one that is not marked so.
    return value if is_trusted_as_template else wrap_var(value)


def is_template(text: str) -> bool:
    """Whether a text is one that Ansible would evaluate: not where a host said it."""
    if not _TEMPLATE.search(text):
        return False
    if is_trusted_as_template:
        return bool(is_trusted_as_template(text))
    return not isinstance(text, AnsibleUnsafe)


def _has_template(value: Any) -> bool:
    return any(is_template(text) for text in _texts(value))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _texts(each)
