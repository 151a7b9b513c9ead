"""A plugin of coverage: what is installed is imported without being traced.

Before Python 3.12 each call costs time while coverage is on, in files that are not measured too. To import torch,
Lightning and transformers takes half as long again with it, in every process that a test starts.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from coverage import CoveragePlugin


class UntracedLoader(Loader):
    """The module's own loader, with tracing off while the module runs."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def __getattr__(self, name: str) -> Any:
        """What else is asked of a loader, as `python -m` asks for the code."""
        return getattr(self.loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the module's own loader does."""
        created: ModuleType | None = self.loader.create_module(spec)
        return created

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, which sees its own loader."""
        module.__loader__ = self.loader
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        trace = sys.gettrace()
        sys.settrace(None)
        try:
            self.loader.exec_module(module)
        finally:
            sys.settrace(trace)


class InstalledLibraries(MetaPathFinder):
    """Finds modules of installed distributions, while something is traced."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module where it is installed; None leaves it to the next finder."""
        if sys.gettrace() is None:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None or "/site-packages/" not in (spec.origin or ""):
            return None
        spec.loader = UntracedLoader(spec.loader)
        return spec


class UntracedLibraries(CoveragePlugin):
    """Changes nothing of coverage's configuration; to be loaded is all that it has to be."""

    def configure(self, config: Any) -> None:
        """Leave the configuration as it is."""


def coverage_init(registry: Any, options: dict[str, str]) -> None:
    """Called by coverage in each process in which it starts."""
    registry.add_configurer(UntracedLibraries())
    sys.meta_path.insert(0, InstalledLibraries())
