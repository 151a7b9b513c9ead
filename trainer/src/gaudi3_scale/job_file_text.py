"""YAML as a person writes it: keys in the order given, texts in quotes only where a reader could take them for else.

Kubernetes' reader of YAML is another one than Python's: 1e3 and 0o17 are numbers there and texts here.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

_PLAIN = re.compile(r"-{0,2}[A-Za-z/_]([A-Za-z0-9._/@:+-]*[A-Za-z0-9._/@+-])?|\d+([KMGT]i|ms|s)")
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "inf", "nan"}


class _Dumper(yaml.SafeDumper):
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    quotes = "'" if '"' in text and text.isprintable() else '"'
    style = "|" if "\n" in text else None if plain else quotes  # one that cannot be so is written in quotes
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def as_text(value: Any) -> str:
    """One document; the same text for the same value.

    >>> print(as_text({"name": "big", "count": "8", "rest": ["1e3", "no", "--no-python"]}), end="")
    name: big
    count: "8"
    rest:
      - "1e3"
      - "no"
      - --no-python
    """
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=2**16)
