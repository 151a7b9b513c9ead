# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The configuration file of a job: what the job asks for, with what differs on one node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .launch_command import NodeShare
from .spec import JobSpec
from .unit import HEADER
from .yaml_text import yaml_text


def config_text(spec: JobSpec, share: NodeShare) -> str:
    """The trainer's configuration on one node."""
    config = merged(merged(spec.config, share.config or {}), {"output_dir": share.directory})
    return HEADER + yaml_text(config)


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two trees of options; the second wins, lists are replaced whole."""
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        result[key] = merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return result
