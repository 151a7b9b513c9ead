# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What a node has to know of a wheel of the controller, before the wheel is brought to it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ansible_collections.gaudi3.scale.plugins.module_utils._wheels import read_wheel, sha256_of


def with_wheel(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The options of trainer_install, with what its wheel says; Refusal where that cannot be read."""
    if {"sha256", "requirements", "requires_python"} <= arguments.keys():
        return dict(arguments)
    wheel = os.path.expanduser(str(arguments.get("wheel", "")))
    about = read_wheel(wheel)
    return {
        "sha256": sha256_of(wheel),
        "requirements": list(about.requirements),
        "requires_python": about.requires_python,
        **arguments,
    }
