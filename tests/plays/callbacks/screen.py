"""Writes what `gaudi3.scale.progress` shows of a run to a file, beside the callback that prints the run as data."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ansible.plugins.callback import CallbackBase
from ansible.plugins.loader import callback_loader

DOCUMENTATION = """
name: screen
type: aggregate
short_description: Write what gaudi3.scale.progress shows to a file
description: For tests, with the file in SCREEN_FILE.
"""

#: The events of a run, but for the one that stands for any.
EVENTS = sorted(name for name in dir(CallbackBase) if name.startswith("v2_") and name != "v2_on_any")


class Screen:
    """Stands in for Ansible's display, and shows what a run without -v shows."""

    verbosity = 0

    def __init__(self, path: Path) -> None:
        self._path = path
        path.write_text("")

    def display(self, msg: str, color: str | None = None, **_more: Any) -> None:
        """Write one line, or behind a tab each the lines of a difference, which comes as one."""
        lines = str(msg).split("\n")
        with self._path.open("a") as stream:
            stream.writelines(f"\t{line}\n" if len(lines) > 1 else f"{line}\n" for line in lines)

    def __getattr__(self, name: str) -> Any:
        return lambda *given, **more: None


class CallbackModule(CallbackBase):
    """Hands every event on."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "screen"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._shows = callback_loader.get("gaudi3.scale.progress")
        self._shows._display = Screen(Path(os.environ["SCREEN_FILE"]))
        self._shows.set_options()

    def set_options(self, *given: Any, **more: Any) -> None:
        """It has none of its own."""


def _handed_on(name: str) -> Any:
    def event(self: CallbackModule, *given: Any, **more: Any) -> None:
        getattr(self._shows, name)(*given, **more)

    return event


for _name in EVENTS:
    setattr(CallbackModule, _name, _handed_on(_name))
