"""A release that is known to do harm is refused before Lightning is imported, whatever was to run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PACKAGES

SENTENCE = (
    "lightning 2.6.3 is installed, which steals credentials as soon as it is imported (GHSA-w37p-236h-pfx3, "
    "2026-04-30): remove it, replace every credential that this machine could read, and install lightning==2.6.6."
)


@pytest.fixture(scope="module")
def harmful(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which lightning says that it is 2.6.3, and tells when it is imported."""
    folder = tmp_path_factory.mktemp("harmful")
    for package in ("lightning", "lightning/pytorch"):
        (folder / package).mkdir()
        (folder / package / "__init__.py").write_text("print('LIGHTNING WAS IMPORTED')\n")
    about = folder / "lightning-2.6.3.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: lightning\nVersion: 2.6.3\n")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), PACKAGES])}


@pytest.mark.parametrize(
    "command",
    [
        ["-m", "gaudi3_scale", "plan"],
        ["-c", "import gaudi3_scale.integration"],
        ["-c", "from gaudi3_scale.hpu.torch_import import import_torch; import_torch('cpu', '')"],
        ["-m", "gaudi3_scale.launch", "--nnodes=1", "--nproc-per-node=1", "script.py"],
    ],
)
def test_nothing_starts_beside_it(harmful: dict[str, str], tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "script.py").write_text("import lightning\n")
    done = subprocess.run([sys.executable, *command], env=harmful, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0 and SENTENCE in done.stderr, done.stderr
    assert "LIGHTNING WAS IMPORTED" not in done.stdout
