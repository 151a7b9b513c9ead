"""Names of models in a registry: NAME@ALIAS or NAME@VERSION, in a job after `registry:`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gaudi3_scale.errors import ConfigError

PREFIX = "registry:"
"""Before the name, where a model may also be a shape or a folder."""
ALIASES = ("candidate", "canary", "champion")
"""What versions are known by: newly registered, on trial, in use."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
"""Of a model: it becomes part of a path, so that it has no separators and does not begin with a dot."""
VERSION = re.compile(r"[1-9][0-9]{0,8}")


@dataclass(frozen=True)
class Reference:
    """One version of a registered model, by its number or by what it is known by."""

    name: str
    which: str
    """An alias, or the number of a version."""

    @property
    def alias(self) -> str | None:
        """None for a number."""
        return self.which if self.which in ALIASES else None

    def __str__(self) -> str:
        return f"{self.name}@{self.which}"

    @classmethod
    def parse(cls, text: str, key: str = "") -> Reference:
        """From its text; ConfigError names the `key` that gave it.

        >>> Reference.parse("demo@champion")
        Reference(name='demo', which='champion')
        """
        name, at, which = text.removeprefix(PREFIX).rpartition("@")
        if not (at and NAME.fullmatch(name) and (which in ALIASES or VERSION.fullmatch(which))):
            raise ConfigError(
                f"{f'{key} is ' if key else ''}{text!r}, which names no registered model: give NAME@ALIAS, with the "
                f"alias {', '.join(ALIASES[:-1])} or {ALIASES[-1]}, or NAME@VERSION with its number."
            )
        return cls(name, which)


def is_registered(text: str) -> bool:
    """Does this text name a model in a registry, and not a shape or a folder?"""
    return text.startswith(PREFIX)


def checked_name(text: str) -> str:
    """A model's name; ConfigError where it is none."""
    if not NAME.fullmatch(text):
        raise ConfigError(
            f"The name {text!r} is none for a registered model: give up to 100 letters, digits, dots, dashes and "
            "underlines, a letter or digit first."
        )
    return text
