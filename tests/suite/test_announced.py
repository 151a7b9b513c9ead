"""A command that says nothing has a line when it begins, and further ones as long as it runs."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

PROGRAM = Path(__file__).resolve().parents[2] / "requirements/announced.py"


@pytest.fixture(scope="module")
def announced() -> ModuleType:
    spec = importlib.util.spec_from_file_location("announced", PROGRAM)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_short_command_has_one_line_and_its_exit_code(
    announced: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    assert announced.run("installing", [sys.executable, "-c", "raise SystemExit(3)"]) == 3
    assert capfd.readouterr().out == "installing\n"


def test_a_long_one_says_that_it_goes_on(announced: ModuleType, capfd: pytest.CaptureFixture[str]) -> None:
    assert announced.run("installing", [sys.executable, "-c", "import time; time.sleep(0.3)"], every=0.1) == 0
    assert capfd.readouterr().out.splitlines()[:2] == ["installing", "installing 0:00"]
