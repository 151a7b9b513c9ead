# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The class by which Ansible finds the filters of a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def filter_module(**filters: Callable[..., Any]) -> type[Any]:
    """What a file has to have as its ``FilterModule``: a class whose objects tell the filters by their names."""
    return type("FilterModule", (), {"filters": lambda self: filters})
