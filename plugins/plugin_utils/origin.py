# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Where a variable was given, as far as Ansible remembers it, and whether that is a vault."""

from __future__ import annotations

import functools
import os
from typing import Any, Optional

from ansible_collections.gaudi3.scale.plugins.module_utils._printable import printable

try:
    from ansible._internal._datatag._tags import Origin
except ImportError:  # before ansible-core 2.19
    Origin = None

#: What a file begins with that ansible-vault encrypted.
VAULT = b"$ANSIBLE_VAULT;"


def _position(value: Any) -> tuple[Optional[str], Optional[int], Optional[str]]:
    """The file of a value, its line, and what else is known of where it comes from."""
    if Origin is not None:
        tag = Origin.get_tag(value)
        return getattr(tag, "path", None), getattr(tag, "line_num", None), getattr(tag, "description", None)
    path, line, _column = getattr(value, "ansible_pos", None) or (None, None, None)
    return path, line, None


def origin_of(value: Any) -> str:
    """File and line of a value, or that it was given with -e; empty where that is unknown."""
    path, line, description = _position(value)
    if path:
        shown = printable(os.path.relpath(path) if str(path).startswith(os.getcwd() + os.sep) else path, 200)
        return f"{shown}, line {line}" if line else shown
    return "given with -e" if description and "-e" in str(description) else ""


def is_encrypted(value: Any) -> bool:
    """Whether a value stands in a file that is a vault, or is one itself."""
    path = _position(value)[0]
    return "Encrypted" in type(value).__name__ or (path is not None and _is_vault(str(path)))


@functools.lru_cache(maxsize=None)
def _is_vault(path: str) -> bool:
    try:
        with open(path, "rb") as stream:
            return stream.read(len(VAULT)) == VAULT
    except OSError:
        return False
