"""The trainer on every supported torch, Lightning and Python, as far as they can be had on this machine."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import suite_by_file
import torch
from conftest import PACKAGES, SOURCES, free_port, wait_for
from definitions import missing
from old_launchers import LITERAL, VERSIONS
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from wheels import FOLDER, extract, wheel

from gaudi3_scale import internals
from tests.suite.proof import Proof

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SHIPPED = [version for version, about in VERSIONS.items() if not about.shutdown_option]
OLDEST, *_, NEWEST = VERSIONS
LIGHTNING = "2.6.0"
"""The oldest; the tests' own is the newest."""
PYTHONS = ("3.11", "3.12", "3.13")
"""What Intel's releases and the supported distributions have, from the trainer's lower bound on."""
KINDS = ("facts", "SIGUSR1", "SIGTERM")
SAVING = LITERAL + 3.0
"""Seconds that the worker's last checkpoint takes: more than torchrun would wait by itself."""
TESTS = (
    *("test_launch.py", "test_launch_meetings.py", "test_interruption.py", "test_checkpoint.py"),
    "test_verify_resume.py",
)
PROOF = Proof(
    "torch-matrix",
    {
        **{kind: [f"torch-{version}-{kind}" for version in SHIPPED] for kind in KINDS},
        "internals": [*(f"torch-{version}-internals" for version in SHIPPED), f"lightning-{LIGHTNING}-internals"],
        "tests": [f"torch-{version}-tests" for version in (OLDEST, NEWEST)],
        "python": [f"python-{version}" for version in PYTHONS],
        "suite": [f"suite-{name}" for name in suite_by_file.ENVIRONMENTS],
    },
)
TEXT = f"""
*facts*: the launcher runs over the Python files of torchrun in the wheels of the Python package index, with the
libraries of the tests' own torch, and the table in `trainer/tests/old_launchers.py` holds. A signal: it is sent to the
launcher, its worker needs 33 seconds for its last checkpoint, and torchrun would kill it after 30. *internals*: the
files of the wheel define everything that `trainer/src/gaudi3_scale/internals.py` lists. *tests*: {", ".join(TESTS)}
of `trainer/tests` run with that torch, computing on a CPU. *python*: the interpreter compiles the package and
imports what needs no torch; where it has torch and Lightning, it runs small tests. Python 3.10 is below the range, as
the pinned transformers does not support it. *suite*: every file of `trainer/tests` by `make torch-suite`, with the
torch or the Python of that name, on a CPU. In brackets is how many files ran at a commit; those that ran with changes
were mended after a failure there, or are new. The simulated device is built for torch
{suite_by_file.DEVICE_TORCH.rstrip(".")} alone; with others its tests are skipped.
"""


def found_wheel(case: str) -> Path:
    """The wheel of the package and version that a case names."""
    package, version, _ = case.split("-")
    found = wheel(version, package)
    if found is None:
        PROOF.cannot_run(case, f"no wheel of {package} {version} in .cache/{FOLDER.name}: `make torch-matrix` gets it")
    return found


def cases(*kinds: str) -> list[Any]:
    """Parameters for the cases of these kinds."""
    parameters = PROOF.parameters({case: case for case in PROOF.cases})
    return [each for each in parameters if str(each.id).endswith(kinds) or str(each.id).startswith(kinds)]


@pytest.fixture(autouse=True)
def table() -> Iterator[None]:
    """Is written after the last case, whether it was run or cannot be."""
    yield
    PROOF.write_table("The trainer on each torch, Lightning and Python", TEXT, ["seen"])


@pytest.fixture
def unpacked(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """torchrun's files of the version that the case names."""
    found = found_wheel(request.node.callspec.params["case"])
    extract(found, tmp_path / "files")
    return tmp_path / "files"


def launch(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """`wheels.py` with these arguments."""
    environment = {**os.environ, "PYTHONPATH": PACKAGES, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "60"}
    return subprocess.Popen(
        [sys.executable, str(HERE / "wheels.py"), str(folder), *arguments],
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


@pytest.mark.parametrize("case", cases(*KINDS))
def test_the_launcher_over_the_torchrun_of_a_wheel(case: str, unpacked: Path, tmp_path: Path) -> None:
    PROOF.skip_if_held(case)
    _, version, kind = case.split("-")
    if kind == "facts":
        PROOF.note(case, {"seen": compare(version, unpacked)})
    elif not PROOF.is_running:
        pytest.skip(f"takes {SAVING:g} seconds: `make torch-matrix` runs it")
    else:
        PROOF.note(case, {"seen": strike(unpacked, tmp_path, signal.Signals[kind])})


@pytest.mark.parametrize("case", cases("internals"))
def test_the_internals_are_in_a_wheel(case: str) -> None:
    PROOF.skip_if_held(case)
    package = case.split("-")[0]
    listed = [each for each in internals.ALL if each.module.split(".")[0] == package]
    with zipfile.ZipFile(found_wheel(case)) as archive:
        assert [f"{each.module}:{each.name}" for each in listed if missing(archive, each)] == []
    PROOF.note(case, {"seen": f"all {len(listed)} are there"})


@pytest.mark.parametrize("case", cases("-tests"))
def test_launcher_interruption_checkpoint_and_resume(case: str) -> None:
    PROOF.skip_if_held(case)
    version = case.split("-")[1]
    if not PROOF.is_running:
        pytest.skip("takes minutes: `make torch-matrix` runs it")
    python = ROOT / ".cache" / "torch-matrix" / version / "venv" / "bin" / "python"
    if torch.__version__.split("+")[0] == version:
        python = Path(sys.executable)
    elif not python.exists():
        PROOF.cannot_run(case, f"no environment with torch {version} in .cache/torch-matrix")
    PROOF.note(case, {"seen": run_tests(python, [f"tests/{name}" for name in TESTS])})


@pytest.mark.parametrize("case", cases("python-"))
def test_the_package_on_a_python(case: str, tmp_path: Path) -> None:
    PROOF.skip_if_held(case)
    version = case.split("-")[1]
    python = suite_by_file.interpreter(version)
    if python is None:
        PROOF.cannot_run(case, f"no python{version} on this machine; its grammar is checked by the tests")
    for source in SOURCES:
        shutil.copytree(source, tmp_path / "src", dirs_exist_ok=True)
    light = (
        "gaudi3_scale",
        "gaudi3_scale.internals",
        "gaudi3_scale.files",
        "gaudi3_scale.hpu.pci",
        "gaudi3_scale.own_script",
    )
    program = f"import sys, importlib; sys.path.insert(0, 'src'); [importlib.import_module(n) for n in {light}]"
    command(python, tmp_path, "-W", "error", "-m", "compileall", "-q", "src")
    command(python, tmp_path, "-W", "error", "-c", program)
    if not PROOF.is_running and Path(python).resolve() == Path(sys.executable).resolve():
        return  # these tests run with this Python anyway
    if command(python, tmp_path, "-c", "import torch, lightning.pytorch, pytest", check=False):
        seen = "compiled and imported; tests not run: this Python has no torch and Lightning"
    else:
        seen = run_tests(python, ["tests/test_config.py", "tests/test_status.py"])
    PROOF.note(case, {"seen": seen})


@pytest.mark.parametrize("case", cases("suite-"))
def test_the_whole_suite(case: str) -> None:
    PROOF.skip_if_held(case)
    found, names = suite_by_file.record(case.removeprefix("suite-")), suite_by_file.files(ROOT)
    seen = suite_by_file.sentence(found, names)
    if found and PROOF.is_running:
        seen = f"{suite_by_file.about(case.removeprefix('suite-'))}: {seen}"
    if not found.keys() >= set(names):
        PROOF.cannot_run(case, f"the rest; {seen}" if found else "`make torch-suite` runs it")
    assert {name: found[name].failed for name in names if found[name].failed} == {}
    PROOF.note(case, {"seen": seen})


def test_the_results_of_a_file_are_counted_and_said(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    kinds = ("", "<skipped/>", "<failure/>", "<error/>", "")
    report.write_text(
        "<testsuites><testsuite>"
        + "".join(f'<testcase name="test_{number}">{kind}</testcase>' for number, kind in enumerate(kinds))
        + "</testsuite></testsuites>"
    )
    found = {
        "test_a.py": suite_by_file.counted(report, "abc", "test_a.py"),
        "test_b.py": suite_by_file.counted(tmp_path / "none", "abc", "test_b.py"),
        "test_c.py": suite_by_file.Counts("def with changes", passed=1000),
    }
    assert found["test_a.py"].failed == ["test_2", "test_3"] and found["test_b.py"].failed == ["test_b.py"]
    said = "1,002 passed, 3 failed, 1 skipped in {}, at abc (2), def with changes (1)"
    assert suite_by_file.sentence(found, found) == said.format("all 3 files")
    assert suite_by_file.sentence(found, [*found, "test_d.py"]) == said.format("3 of 4 files")


def test_the_declared_range_is_that_of_the_dependencies_and_of_the_role() -> None:
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]
    declared = SpecifierSet(project["requires-python"])
    assert all(f"{version}.0" in declared for version in PYTHONS) and "3.10.99" not in declared
    classified = [line.split(" :: ")[-1] for line in project["classifiers"] if re.search(r":: 3\.\d+$", line)]
    assert classified == list(PYTHONS)
    pinned = re.findall(r"^([\w.-]+)==", (ROOT / "requirements" / "trainer.txt").read_text(), re.MULTILINE)
    for name in {*pinned, *(Requirement(line).name for line in project["dependencies"])}:
        allowed = SpecifierSet(metadata.metadata(name).get("Requires-Python") or "")
        assert [v for v in PYTHONS if f"{v}.8" not in allowed] == [], f"{name} is for Python {allowed}"
    assert "3.10.99" not in SpecifierSet(metadata.metadata("transformers")["Requires-Python"])
    role = (ROOT / "plugins" / "module_utils" / "_pytorch" / "release.py").read_text()
    assert f'TRAINER_PYTHON = "{PYTHONS[0]}"' in role
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert tools["tool"]["ruff"]["target-version"] == f"py{PYTHONS[0].replace('.', '')}"
    assert tools["tool"]["mypy"]["python_version"] == PYTHONS[0]


def test_torch_is_bound_to_what_was_tried_and_the_tutorial_installs_one_without_cuda() -> None:
    """A newer one would be taken as soon as it is out, and from PyPI with 3 GB of CUDA."""
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]
    (wanted,) = (Requirement(line) for line in project["dependencies"] if Requirement(line).name == "torch")
    first, last = re.findall(r"2\.\d+", internals.TORCH)
    following = f"2.{int(last.partition('.')[2]) + 1}.0"
    assert [version in wanted.specifier for version in (f"{first}.0", f"{last}.1", following)] == [True, True, False]
    alone = (ROOT / "docs" / "start" / "install.md").read_text().split("## The trainer alone")[1].split("\n## ")[0]
    tutorial = (ROOT / "docs" / "start" / "first-training.md").read_text().split("## Install")[1].split("\n## ")[0]
    for text in (alone, tutorial):
        line = re.search(r"^pip install torch==(\S+) --index-url https://download\.pytorch\.org/whl/cpu", text, re.M)
        assert line is not None and line[1] in wanted.specifier and line.end() < text.index("pip install ./trainer")
    gaudi = "pip install --require-hashes -r requirements/trainer.txt\npip install --no-deps ./trainer"
    assert gaudi in alone and "torch==" not in (ROOT / "requirements" / "trainer.txt").read_text()


@pytest.mark.parametrize("version", PYTHONS)
def test_the_sources_are_of_the_language_of_each_python(version: str) -> None:
    for path in (each for source in SOURCES for each in source.rglob("*.py")):
        ast.parse(path.read_text(), str(path), feature_version=(3, int(version.split(".")[1])))


def command(python: Path, folder: Path, *arguments: str, check: bool = True) -> int:
    """Run an interpreter in a folder, without what this one has been told to import from."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COVERAGE"))}
    ran = subprocess.run(
        [str(python), *arguments], cwd=folder, env=environment, text=True, capture_output=True, timeout=280, check=False
    )
    assert not check or ran.returncode == 0, ran.stdout + ran.stderr
    return ran.returncode


def run_tests(python: Path, files: list[str]) -> str:
    """Run these of the trainer's tests; how many passed."""
    environment = {name: value for name, value in os.environ.items() if name != "GAUDI3_PROOF"}
    environment["PYTHONPATH"] = PACKAGES
    ran = subprocess.run(
        [str(python), "-m", "pytest", "-q", *files],
        cwd=HERE.parent, env=environment, text=True, capture_output=True, timeout=3600, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return re.sub(r" in [\d.]+s.*", "", ran.stdout.splitlines()[-1]).strip("= ")


def compare(version: str, folder: Path) -> str:
    """Hold the table against the files."""
    process = launch(folder)
    output = process.communicate(timeout=600)[0]
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
