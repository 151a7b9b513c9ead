# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Values of variables, as templates and inventories give them."""

from __future__ import annotations

#: What Ansible takes for true where a text is given.
TRUE = ("y", "yes", "on", "1", "true", "t")


def boolean(value: object) -> bool:
    """The same as the filter ``bool``: an inventory in INI form, and ``-e name=true``, give texts."""
    return value.strip().lower() in TRUE if isinstance(value, str) else value is True or value == 1
