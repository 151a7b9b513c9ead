"""The examination of a node, as the controller sends it to nodes without a trainer."""

from __future__ import annotations

import ast
import base64
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._trainer import doctor
from gaudi3_doctor import CONSENTS

SOURCES = Path(__file__).resolve().parents[5] / doctor.SOURCES
# Imported by what a node's interpreter runs at once; the probes run with the Python that has torch.
BASE = [path for path in SOURCES.rglob("*.py") if path.parent.name != "probes"]


def test_the_same_sources_are_the_same_package() -> None:
    assert doctor.pack(str(SOURCES)) == doctor.pack(str(SOURCES))


def test_a_folder_without_the_package_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=r"is not the package gaudi3_doctor: "):
        doctor.pack(str(tmp_path))


@pytest.mark.parametrize("text", ["not base64 at all", base64.b64encode(b"no archive").decode()])
def test_a_broken_package_is_one_sentence(text: str, tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=r"^The examination cannot be loaded on Python"):
        doctor.unpack(text, str(tmp_path))


def test_the_consents_are_those_of_the_doctor() -> None:
    assert set(CONSENTS) == set(doctor.CONSENTS)


@pytest.mark.parametrize("path", BASE, ids=lambda path: path.stem)
def test_a_node_needs_only_the_standard_library(path: Path) -> None:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(), feature_version=(3, 9))):
        if isinstance(node, ast.Import):
            names |= {each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add((node.module or "").partition(".")[0])
    assert names <= set(sys.stdlib_module_names)


def test_the_oldest_python_of_a_node_examines_it(tmp_path: Path) -> None:
    """In a process of its own, from the archive alone, with 3.9 where that is installed."""
    old = next((found for name in ("python3.9", "python3.10") if (found := _works(name))), sys.executable)
    (tmp_path / "package").write_text(doctor.pack(str(SOURCES)))
    program = (
        "import base64, json, pathlib, sys\n"
        "path = pathlib.Path(sys.argv[1])\n"
        "(path / 'doctor.zip').write_bytes(base64.b64decode((path / 'package').read_text()))\n"
        "sys.path.insert(0, str(path / 'doctor.zip'))\n"
        "import gaudi3_doctor_sent as doctor\n"
        "import gaudi3_doctor_sent.host\n"
        "host = sys.modules['gaudi3_doctor_sent.host'].Host(str(path / 'root'), search='/bin:/usr/bin')\n"
        "report = doctor.examine(doctor.Options(quick=True), host)\n"
        "doctor.write(report, str(path / 'report.json'))\n"
        "print(doctor.summary(report))\n"
    )
    result = subprocess.run([old, "-IS", "-c", program, str(tmp_path)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("0 Gaudi cards, driver not loaded")
    states = {
        key: each["state"] for key, each in json.loads((tmp_path / "report.json").read_text())["sections"].items()
    }
    assert "failed" not in states.values(), states


def _works(name: str) -> str | None:
    found = shutil.which(name)
    good = found and subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode == 0
    return found if good else None
