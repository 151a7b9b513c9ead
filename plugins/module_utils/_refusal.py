# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What a module says where it cannot or will not do what was asked."""

from __future__ import annotations


class Refusal(Exception):
    """One sentence for the user, with its full stop: what was given, what is allowed, what to do."""

    def __str__(self) -> str:
        said = super().__str__().rstrip()
        return said if said.endswith((".", "?", "!")) else f"{said}."
