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
    """Leave the objects that exist to the end of the run: to look for garbage among them took a fifth of a task.

    A process that has been forked finds none there, and copies the memory in which it looks.
    """
    gc.freeze()
