"""gaudi_support_bundle: one archive that only its owner can read, nothing in check mode, a sentence for a bad path."""

from __future__ import annotations

import stat
import tarfile
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.modules import gaudi_support_bundle


@pytest.fixture(autouse=True)
def few_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine's own logs are no matter of the test."""
    from ansible_collections.gaudi3.scale.plugins.module_utils._health import bundle

    monkeypatch.setattr(bundle, "_COMMANDS", (("kernel-log.txt", ("echo", "HF_TOKEN=planted-secret-1")),))


def test_an_archive_with_the_health_in_it(run_module: Any, tool: Any, tmp_path: Path) -> None:
    tool.answer(["-L"], "Serial Number : AO00000001\nWANDB_API_KEY: planted-secret-2\n")
    path = tmp_path / "support.tar.gz"
    asked = {"path": str(path), "executable": str(tool.path), "health": {"token": "planted-secret-3"}}
    planned = run_module(gaudi_support_bundle, check=True, **asked)
    assert (planned["changed"], planned["size"], path.exists(), tool.calls()) == (True, None, False, [])
    result = run_module(gaudi_support_bundle, **asked)
    assert (result["changed"], result["path"], result["size"]) == (True, str(path), path.stat().st_size)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with tarfile.open(path) as tar:
        found = {entry.name: tar.extractfile(entry).read().decode() for entry in tar}  # type: ignore[union-attr]
    assert "AO00000001" in found["gaudi-support/hl-smi-log.txt"]
    assert "unexpected arguments" in found["gaudi-support/hl-smi.txt"], "what failed is in the archive too"
    assert "planted-secret" not in "".join(found.values())
    assert "gaudi-support/health.json" in found


def test_a_folder_that_is_not_there(run_module: Any) -> None:
    result = run_module(gaudi_support_bundle, path="/nowhere/support.tar.gz")
    assert result["msg"] == "There is no folder /nowhere: make it first, or give another path."
