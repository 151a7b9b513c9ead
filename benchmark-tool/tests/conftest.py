"""What a command that is called in this process leaves to the next test, and what one of its own imports."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

# The simulated cards of this run of the tests are not those of another one, which may hold all of them.
os.environ["GAUDI3_HPU_SIMULATOR_CARDS"] = tempfile.mkdtemp(prefix="gaudi3-cards-")
atexit.register(shutil.rmtree, os.environ["GAUDI3_HPU_SIMULATOR_CARDS"], ignore_errors=True)

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = os.pathsep.join(str(ROOT / name / "src") for name in ("benchmark-tool", "trainer", "doctor"))
"""The packages of this checkout, for PYTHONPATH."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """Commands that are called in this process choose the plugins of its torch; the next test's processes do not."""
    names = ("TORCH_DEVICE_BACKEND_AUTOLOAD", "PT_HPU_LAZY_MODE")
    before = {name: os.environ.get(name) for name in names}
    try:
        return (yield)
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
