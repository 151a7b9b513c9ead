"""Makes `accelerator="hpu"` and the strategies' names known to Lightning wherever this package is imported.

Lightning takes seconds to import, and the package is imported by programs that never need it: the names are registered
when Lightning is there, or comes.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from importlib.machinery import ModuleSpec
from typing import Any

LIGHTNINGS = ("lightning.pytorch", "pytorch_lightning")


class _Watch:
    """A finder of modules that finds nothing itself."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The spec that others have for Lightning, with a loader that registers afterwards."""
        if name not in LIGHTNINGS:
            return None
        finders = [finder for finder in sys.meta_path if finder is not self]
        spec = next((spec for finder in finders if (spec := finder.find_spec(name, path, target)) is not None), None)
        loader: Any = spec.loader if spec is not None else None
        if loader is None:
            return None
        execute = loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            register()

        loader.exec_module = exec_module
        return spec


def register() -> None:
    """Register with each Lightning that has been imported."""
    with contextlib.suppress(ImportError):  # pytorch_lightning without lightning, which is required
        importlib.import_module("gaudi3_scale.integration")
        importlib.import_module("gaudi3_scale.integration.twins").adopt()


def watch() -> None:
    """Register now if Lightning is there, and when it comes."""
    if any(name in sys.modules for name in LIGHTNINGS):
        register()
    if not any(isinstance(finder, _Watch) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Watch())
