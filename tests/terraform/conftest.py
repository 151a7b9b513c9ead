"""Where terraform is missing, what needs it is skipped by name; where it is there, nothing is skipped."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from .support.tool import Project, copied

ROOT = Path(__file__).resolve().parents[2]
TREE = ROOT / "terraform"


@pytest.fixture(scope="session")
def terraform() -> str:
    """The executable, or a skip that says what was not proved."""
    found = shutil.which("terraform")
    if found is None:
        pytest.skip(
            "terraform is not on PATH: this was NOT checked (https://developer.hashicorp.com/terraform/install)"
        )
    return found


@pytest.fixture(scope="session")
def tree(terraform: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of terraform/ for the session."""
    return copied(TREE, tmp_path_factory.mktemp("tree") / "terraform")


@pytest.fixture(scope="session")
def onprem(tree: Path) -> Project:
    """The root that needs no provider, initialised."""
    project = Project(tree / "onprem")
    project.init()
    return project


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where terraform is present, a skip is a failure, but for a provider that the machine cannot have."""
    report = yield
    reasons = ("is in no mirror on this machine", "held before, with the same sources")
    if report.skipped and shutil.which("terraform") and not any(each in str(report.longrepr) for each in reasons):
        report.outcome = "failed"
        report.longrepr = f"skipped, though terraform is here: {report.longrepr}"
    return report
