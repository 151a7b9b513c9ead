"""The launcher over the real torchrun of every torch that Intel's releases ship."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import SOURCE, free_port, wait_for
from old_launchers import LITERAL, VERSIONS
from wheels import FOLDER, extract, wheel

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.suite.proof import Proof  # the same for every proof of the repository

HERE = Path(__file__).parent
SHIPPED = [version for version, about in VERSIONS.items() if not about.shutdown_option]
KINDS = ("facts", "SIGUSR1", "SIGTERM")
SAVING = LITERAL + 3.0
"""Seconds that the worker's last checkpoint takes: more than torchrun would wait by itself."""
PROOF = Proof(
    "torch-versions",
    {kind: [f"{version}-{kind}" for version in SHIPPED] for kind in KINDS},
    sources=[
        "trainer/src/gaudi3_scale/launch.py",
        "trainer/src/gaudi3_scale/interruption/patience.py",
        "trainer/tests/old_launchers.py",
        "trainer/tests/wheels.py",
        "trainer/tests/test_torch_versions.py",
    ],
)
TEXT = """
The launcher over the Python files of torchrun in the wheels of the Python package index; torch's libraries are those
of the tests' own torch. *facts*: the table in `trainer/tests/old_launchers.py` holds. A signal: it is sent to the
launcher, its worker needs 33 seconds for its last checkpoint, and torchrun would kill it after 30.
"""


@pytest.fixture
def unpacked(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """torchrun's files of the version that the case names."""
    version = request.node.callspec.params["case"].rpartition("-")[0]
    found = wheel(version)
    if found is None:
        pytest.skip(f"no wheel of torch {version} in {FOLDER}: `make proof-torch-versions` downloads it")
    extract(found, tmp_path / "files")
    return tmp_path / "files"


def launch(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """`wheels.py` with these arguments."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "60"}
    return subprocess.Popen(
        [sys.executable, str(HERE / "wheels.py"), str(folder), *arguments],
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


@pytest.mark.parametrize("case", PROOF.parameters({case: case for case in PROOF.cases}))
def test_the_launcher_over_the_torchrun_of_a_wheel(case: str, unpacked: Path, tmp_path: Path) -> None:
    PROOF.skip_if_held(case)
    version, _, kind = case.rpartition("-")
    if kind == "facts":
        seen = compare(version, unpacked)
    elif not PROOF.is_running:
        pytest.skip(f"takes {SAVING:g} seconds: `make proof-torch-versions` runs it")
    else:
        seen = strike(unpacked, tmp_path, signal.Signals[kind])
    PROOF.note(case, {"seen": seen})
    PROOF.write_table("The launcher on each torch", TEXT, ["seen"])


def compare(version: str, folder: Path) -> str:
    """Hold the table against the files."""
    process = launch(folder)
    output = process.communicate(timeout=120)[0]
    found = json.loads(output.splitlines()[-1])
    assert all(file.startswith(str(folder)) for file in found.pop("files")), output
    about = VERSIONS[version]
    assert found == {
        "signals_option": about.signals_option,
        "shutdown_option": about.shutdown_option,
        "reads_variable": about.shutdown_option,
        "signals": True,
        "asks_for_signals": about.signals_option,
        "literal": LITERAL,
        "agent_takes_timeout": about.shutdown_option,
    }
    return "as in the table"


def strike(folder: Path, work: Path, number: signal.Signals) -> str:
    """Send the signal to the launcher while its worker works; the worker has its time."""
    arguments = ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{free_port()}", "--rdzv-id=test", "--no-python"]
    process = launch(folder, *arguments, sys.executable, str(HERE / "old_launchers.py"), str(work), str(SAVING))
    try:
        wait_for((work / "ready-0").exists, "worker", lambda: process.poll() is not None)
        began = time.monotonic()
        process.send_signal(number)
        output = process.communicate(timeout=SAVING + 30)[0]
    finally:
        process.kill()
    assert process.returncode == 75, output
    assert (work / "saved-0").read_text() == number.name
    return f"exit code 75 after {time.monotonic() - began:.0f} s"
