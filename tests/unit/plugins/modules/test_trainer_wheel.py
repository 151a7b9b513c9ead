"""The wheel of the checkout's trainer, as the controller builds it: with what lies beside the trainer's folder."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._wheels import BESIDE
from ansible_collections.gaudi3.scale.plugins.modules import trainer_wheel

ROOT = Path(__file__).resolve().parents[4]
#: The folders of the wheel's sources, and the package that each has.
SOURCES = {
    "benchmark-tool": "gaudi3_benchmark",
    "doctor": "gaudi3_doctor",
    "migration": "gaudi3_migration",
    "trainer": "gaudi3_scale",
    "watch": "gaudi3_watch",
}
#: Kinds of files: code, and the pages of gaudi3-watch.
PACKED = {".py", ".html", ".css", ".js", ".svg"}
#: Runs a command of the unpacked wheel, and says at its end where each of its packages came from.
COMMAND = """
import importlib, os, sys
place, module = sys.argv.pop(1), sys.argv.pop(1)
sys.path.insert(0, place)
packages = [importlib.import_module(name) for name in {packages}]
assert all(package.__file__.startswith(place + os.sep) for package in packages), packages
importlib.import_module(module).main()
"""


def build(run_module: Any, folder: Path, source: Path) -> dict[str, Any]:
    """What the module returns, with a cache of the test's own."""
    given = {"source": str(source), "cache_dir": str(folder / "cache"), "executable": sys.executable}
    result: dict[str, Any] = run_module(trainer_wheel, **given)
    return result


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The sources, to change them."""
    for name in SOURCES:
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("tests", "__pycache__"))
    return tmp_path


def test_the_wheel_has_every_file_of_the_packages(tmp_path: Path, run_module: Any) -> None:
    assert set(BESIDE) == SOURCES.keys() - {"trainer"}
    with zipfile.ZipFile(build(run_module, tmp_path, ROOT / "trainer")["path"]) as wheel:
        packed = {name for name in wheel.namelist() if Path(name).suffix in PACKED}
    written = {
        path.relative_to(ROOT / name / "src").as_posix()
        for name, package in SOURCES.items()
        for path in (ROOT / name / "src" / package).rglob("*")
        if path.suffix in PACKED and path.is_file() and (path.suffix == ".py" or name == "watch")
    }
    assert packed == written


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("gaudi3_scale.cli", ["--help"]),
        ("gaudi3_scale.cli", ["doctor", "--help"]),
        ("gaudi3_scale.cli", ["migrate", "--help"]),
        ("gaudi3_benchmark.cli", ["--help"]),
        ("gaudi3_watch.cli", ["--help"]),
    ],
)
def test_its_commands_need_nothing_of_the_checkout(
    tmp_path: Path, run_module: Any, module: str, arguments: list[str]
) -> None:
    with zipfile.ZipFile(build(run_module, tmp_path, ROOT / "trainer")["path"]) as wheel:
        wheel.extractall(tmp_path / "installed")
    program = COMMAND.format(packages=sorted(SOURCES.values()))
    command = [sys.executable, "-c", program, str(tmp_path / "installed"), module, *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "Usage:" in done.stdout, done.stderr


@pytest.mark.parametrize("name", SOURCES)
def test_a_change_of_any_of_the_sources_makes_another_wheel(copy: Path, run_module: Any, name: str) -> None:
    first = build(run_module, copy, copy / "trainer")
    assert first["requires_python"] and all(isinstance(each, str) for each in first["requirements"])
    with (copy / name / "src" / SOURCES[name] / "__init__.py").open("a") as file:
        file.write("# changed\n")
    second = build(run_module, copy, copy / "trainer")
    assert second["built"] and second["sha256"] != first["sha256"]


@pytest.mark.parametrize("name", BESIDE)
def test_what_is_not_there_is_named(copy: Path, run_module: Any, name: str) -> None:
    shutil.rmtree(copy / name)
    said = build(run_module, copy, copy / "trainer")["msg"]
    assert f"cannot be built from {copy}/trainer: " in said and f"{name}/ is not beside" in said
