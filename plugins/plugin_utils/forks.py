# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Does once what the process of each task would do again.

Ansible forks a process for each task of each host. What the process has that forks is in all of them.
"""

from __future__ import annotations

import contextlib
import gc
import pkgutil

from ansible.plugins.loader import filter_loader, test_loader

from .. import filter as own_filters

#: Of so many new objects none was looked at; a task makes fewer, and they take about ten megabytes.
OBJECTS = 50_000


def load_filters() -> None:
    """Load the filters and tests of templates, Ansible's own and this collection's: an eighth of a short task."""
    names = [f"gaudi3.scale.{module.name}" for module in pkgutil.iter_modules(own_filters.__path__)]
    for loader, name in (
        (test_loader, "ansible.builtin.defined"),
        *((filter_loader, each) for each in ("ansible.builtin.to_json", *names)),
    ):
        # Whoever uses one that does not load is told by Ansible.
        with contextlib.suppress(Exception):
            loader.get(name)


def freeze() -> None:
    """Leave the objects that exist to the end of the run, and look for garbage among others seldom.

    The process of a task finds none, and copies the memory in which it looks: that took a fifth of what it takes.
    """
    gc.freeze()
    gc.set_threshold(OBJECTS, 20, 20)
