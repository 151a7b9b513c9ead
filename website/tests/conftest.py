"""The site, built once for all tests, served to a browser."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# The browser of the watch page's tests.
sys.path[:0] = [str(ROOT), str(ROOT / "watch/tests")]

import browser  # noqa: E402

from tests import served_folder  # noqa: E402

PYTHON = Path(os.environ.get("GAUDI3_DOCS_PYTHON", ROOT / ".cache/docs/bin/python"))


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site; the build fails where Sphinx warns of anything."""
    if ready := os.environ.get("GAUDI3_SITE"):
        return Path(ready)
    folder = tmp_path_factory.mktemp("site") / "docs"
    command: list[str | Path] = [PYTHON, "-m", "website.build", "--output", folder]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="session")
def served(site: Path) -> Iterator[str]:
    """The address of the site."""
    with served_folder.served(site) as address:
        yield address


@pytest.fixture(scope="session")
def chromium() -> Iterator[browser.Browser]:
    if browser.program() is None:
        pytest.skip(browser.MISSING)
    with browser.started() as found:
        yield found
