"""Which version a host's Python is."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies import interpreter


def asked(executable: str) -> dict[str, Any]:
    def run(command: list[str]) -> tuple[int, str, str]:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    module = SimpleNamespace(params={"executable": executable}, get_bin_path=shutil.which, run_command=run)
    return interpreter.run(cast(Any, module))


def test_a_python_says_its_version() -> None:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert asked(sys.executable) == {"changed": False, "version": version}


@pytest.mark.parametrize("text", ["", "#!/bin/sh\necho 3.11 or so\n", "#!/bin/sh\necho 3.11\nexit 3\n"])
def test_what_is_no_python_has_no_version(tmp_path: Path, text: str) -> None:
    path = tmp_path / "python3"
    if text:
        path.write_text(text)
        path.chmod(0o755)
    assert asked(str(path)) == {"changed": False, "version": ""}
