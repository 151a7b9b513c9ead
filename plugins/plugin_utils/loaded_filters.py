# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Loads filters and tests of templates before the first task.

Ansible forks a process for each task of each host, and loads them there, each time again: an eighth of what a short
task costs the controller. What the process has that forks is in all of them.
"""

from __future__ import annotations

import contextlib
import pkgutil

from ansible.plugins.loader import filter_loader, test_loader

from .. import filter as own_filters


def load_filters() -> None:
    """Load Ansible's own filters and tests, and those of this collection."""
    names = [f"gaudi3.scale.{module.name}" for module in pkgutil.iter_modules(own_filters.__path__)]
    for loader, name in (
        (test_loader, "ansible.builtin.defined"),
        *((filter_loader, each) for each in ("ansible.builtin.to_json", *names)),
    ):
        # Whoever uses one that does not load is told by Ansible.
        with contextlib.suppress(Exception):
            loader.get(name)
