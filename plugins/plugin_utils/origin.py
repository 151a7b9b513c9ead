# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Where a variable was given, as far as Ansible remembers it."""

from __future__ import annotations

import os
from typing import Any

from ansible_collections.gaudi3.scale.plugins.module_utils._printable import printable

try:
    from ansible._internal._datatag._tags import Origin
except ImportError:  # before ansible-core 2.19
    Origin = None


def origin_of(value: Any) -> str:
    """File and line of a value, or that it was given with -e; empty where that is unknown."""
    if Origin is not None:
        tag = Origin.get_tag(value)
        path, line, description = (getattr(tag, name, None) for name in ("path", "line_num", "description"))
    else:
        path, line, _column = getattr(value, "ansible_pos", None) or (None, None, None)
        description = None
    if path:
        shown = printable(os.path.relpath(path) if str(path).startswith(os.getcwd() + os.sep) else path, 200)
        return f"{shown}, line {line}" if line else shown
    return "given with -e" if description and "-e" in str(description) else ""
