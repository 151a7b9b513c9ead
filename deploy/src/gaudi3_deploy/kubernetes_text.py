"""YAML that kubectl reads: 1e3, 0o17 and y are no text to it, and Python's writer leaves them without quotes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import yaml

_PLAIN = re.compile(r"[A-Za-z/]([A-Za-z0-9._/-]*[A-Za-z0-9])?")
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else "'")


_Dumper.add_representer(str, _text)


def text_of(documents: Sequence[Any]) -> str:
    """Documents as text for kubectl.

    >>> print(text_of([{"name": "y", "count": "16", "key": "a/b"}]), end="")
    ---
    name: 'y'
    count: '16'
    key: a/b
    """
    return yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, explicit_start=True)
