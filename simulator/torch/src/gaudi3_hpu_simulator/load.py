"""Loading of the device into torch, once per process, and never beside Intel's own plugin."""

from __future__ import annotations

import atexit
import importlib
import importlib.metadata
import os
import sys
import time
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from gaudi3_hpu_simulator.extension import extension

REAL_DISTRIBUTION = "habana-torch-plugin"
OWN_DISTRIBUTION = "gaudi3-hpu-simulator"
# The local version label (PEP 440) of the metadata of REAL_DISTRIBUTION that come with the simulator: see setup.py.
OWN_LABEL = "gaudi3.simulator"


class RealPluginFound(ImportError):
    """Intel's habana_frameworks is installed: the simulator must not stand in its place."""


def refuse_beside_real() -> None:
    """Raise if habana_frameworks is installed from elsewhere, too: on a node with Gaudi the real one has to be used."""
    remedy = f"take {OWN_DISTRIBUTION} off PYTHONPATH or uninstall it"
    for distribution in importlib.metadata.distributions(name=REAL_DISTRIBUTION):
        version = distribution.version
        if version.partition("+")[2] != OWN_LABEL:
            found = f"{REAL_DISTRIBUTION} {version} is installed"
            raise RealPluginFound(f"{found}, so hpu is not simulated here: {remedy}.")
    own = Path(__file__).resolve().parents[1]
    for entry in sys.path:
        folder = Path(entry or ".") / "habana_frameworks"
        # Path.is_dir raises where the folder is closed to this user, who then has no other one there.
        if os.path.isdir(folder) and folder.resolve().parent != own:  # noqa: PTH112
            raise RealPluginFound(f"{folder} is another habana_frameworks, so hpu is not simulated here: {remedy}.")


@cache
def install() -> ModuleType:
    """Make torch know the device; returns what becomes `torch.hpu`."""
    refuse_beside_real()
    # As Habana's package does at import; its profiler looks at it.
    os.environ.setdefault("HABANA_PROFILE", "profile_api_light")
    import torch

    extension()
    from gaudi3_hpu_simulator import habana_operations

    habana_operations.register()
    module = importlib.import_module("habana_frameworks.torch.hpu")
    torch._register_device_module("hpu", module)  # type: ignore[no-untyped-call]
    sys.modules["torch.hpu"] = module
    _seed_with_torch(torch, module)
    _refuse_inductor(torch)
    # As Habana's package does: a process that ends without these functions gives its card up uncleanly.
    atexit.register(extension().release)
    atexit.register(_let_autograd_end)
    return module


def _let_autograd_end() -> None:
    """Let the thread of a last backward pass have the interpreter before it goes.

    It gives Python objects back when its work is done. Where that comes after the interpreter's end, the process aborts
    ("terminate called without an active exception"): seen in one of four scripts whose last line was a backward pass.
    """
    time.sleep(0.05)


def _seed_with_torch(torch: Any, module: Any) -> None:
    """torch.manual_seed and torch.seed seed "all devices", but their list of them ends before hpu."""
    original = torch.random.manual_seed
    original_seed = torch.random.seed

    def manual_seed(seed: int) -> Any:
        generator = original(seed)
        module.manual_seed_all(int(seed))
        return generator

    def seed() -> int:
        chosen: int = original_seed()
        module.manual_seed_all(chosen)
        return chosen

    manual_seed.__doc__, seed.__doc__ = original.__doc__, original_seed.__doc__
    torch.random.manual_seed = torch.manual_seed = manual_seed
    torch.random.seed = torch.seed = seed


def _refuse_inductor(torch: Any) -> None:
    """torch.compile's default back end gets its refusal when it is first asked for; importing it here is too slow."""
    original = torch.compile

    def compile(*arguments: Any, **options: Any) -> Any:
        from gaudi3_hpu_simulator.compiler import register

        register()
        return original(*arguments, **options)

    compile.__doc__ = original.__doc__
    torch.compile = compile
