# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Plain data as YAML, without a YAML library: a node need not have one."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

#: Keys that need no quotes; YAML 1.1 takes some words for truth values.
PLAIN = re.compile(r"(?!(?:y|yes|n|no|on|off|true|false|null)$)[A-Za-z_][A-Za-z0-9_-]*", re.IGNORECASE)
#: What YAML does not take literally between quotes, takes for an end of line or (U+FEFF) for no character.
YAML_ESCAPED = re.compile(r"[^\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


def yaml_text(value: Any, indent: int = 0) -> str:
    """Plain data as block-style YAML with sorted keys."""
    pad = "  " * indent
    if isinstance(value, Mapping) and value:
        parts = []
        for key in sorted(value, key=str):
            item = value[key]
            nested = isinstance(item, (Mapping, list, tuple)) and len(item) > 0
            gap = "\n" + yaml_text(item, indent + 1) if nested else " " + _scalar(item) + "\n"
            parts.append(f"{pad}{key if PLAIN.fullmatch(str(key)) else _text(str(key))}:{gap}")
        return "".join(parts)
    if isinstance(value, (list, tuple)) and value:
        parts = []
        for item in value:
            nested = isinstance(item, (Mapping, list, tuple)) and len(item) > 0
            text = "\n" + yaml_text(item, indent + 1) if nested else " " + _scalar(item) + "\n"
            parts.append(f"{pad}-{text}")
        return "".join(parts)
    return pad + _scalar(value) + "\n"


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            return {"inf": ".inf", "-inf": "-.inf"}.get(repr(value), ".nan")
        text = repr(value)
        # YAML 1.1 reads 1e-05 as a word and 1.0e-05 as a number.
        return text.replace("e", ".0e", 1) if "e" in text and "." not in text else text
    return json.dumps(value, ensure_ascii=False)


def _text(value: str) -> str:
    """A text between double quotes, with the escapes of YAML, which are JSON's up to U+FFFF."""

    def escape(match: re.Match[str]) -> str:
        code = ord(match.group())
        if 0xD800 <= code <= 0xDFFF:
            raise ValueError(
                f"The configuration holds a text which is not Unicode ({value!r}): correct the file that it comes from."
            )
        return f"\\u{code:04x}"

    return YAML_ESCAPED.sub(escape, json.dumps(value, ensure_ascii=False))
