"""Faults of the modules' files: taken away as by a new kernel, or left empty as by a failed build; and put back."""

from __future__ import annotations

import os

from . import faults, kernel, paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def spoil(fault: dict[str, Any]) -> None:
    """Take the files away or empty them, and keep their text in the fault."""
    texts = {path: paths.read_text(path) for path in map(kernel.module_path, kernel.SERVED)}
    fault["files"] = {path: text for path, text in texts.items() if text}
    if not fault["files"]:
        raise faults.FaultError("no driver is installed: install the vendor's packages first")
    for path in fault["files"]:
        if fault["kind"] == faults.MODULE_EMPTY:
            paths.write_atomically(path, "")
        else:
            os.remove(paths.at(path))


def restore(fault: dict[str, Any]) -> None:
    """Put the files back, unless somebody has built new ones."""
    if not any(paths.read_text(path) for path in fault["files"]):
        for path, text in fault["files"].items():
            paths.write_atomically(path, text)
