"""What a wheel says and whether what is installed will do."""

from __future__ import annotations

import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement as PipRequirement

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._wheels import (
    Requirement,
    described,
    python_admitted,
    read_wheel,
    source_digest,
    source_files,
    unmet,
)
from gaudi3_simulator.vendor import pytorch

METADATA = """Metadata-Version: 2.4
Name: gaudi3-scale
Version: 0.1.0
Requires-Python: >=3.9
Requires-Dist: torch>=2.9
Requires-Dist: lightning<2.7,>=2.6
Requires-Dist: optuna; extra == 'tune'

Requires-Dist: not-a-header
"""


def make_wheel(path: Path, entries: str = "[console_scripts]\ngaudi3-train = gaudi3_scale.cli:main\n") -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("gaudi3_scale/__init__.py", "")
        archive.writestr("gaudi3_scale/cli.py", "def main():\n    print('trained')\n")
        archive.writestr("gaudi3_scale-0.1.0.dist-info/METADATA", METADATA)
        archive.writestr("gaudi3_scale-0.1.0.dist-info/entry_points.txt", entries)
    return path


def test_wheel(tmp_path: Path) -> None:
    wheel = read_wheel(str(make_wheel(tmp_path / "a.whl")))
    assert (wheel.name, wheel.version, wheel.requires_python) == ("gaudi3-scale", "0.1.0", ">=3.9")
    assert wheel.requirements == ("torch>=2.9", "lightning<2.7,>=2.6", "optuna; extra == 'tune'")
    assert wheel.scripts == {"gaudi3-train": "gaudi3_scale.cli:main"}


@pytest.mark.parametrize("content", [None, b"", b"not a zip"])
def test_what_is_no_wheel(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "a.whl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(Refusal) as caught:
        read_wheel(str(path))
    assert str(caught.value) == f"{path} is not a readable wheel: give the path of a .whl file."


@pytest.mark.parametrize(
    ("clauses", "version", "admitted"),
    [
        (">=2.6,<2.7", "2.6.6", True),
        (">=2.6,<2.7", "2.7.0", False),
        (">=2.6,<2.7", "2.10", False),
        (">=2.9", "2.9.0+hpu_1.23.0.695", True),
        (">=2.9", "2.13.0+cpu", True),
        (">=2.9", "2.8.1", False),
        ("==2.9", "2.9.0", True),
        ("==2.9.*", "2.9.4", True),
        ("==2.9.*", "2.90", False),
        ("!=2.9.*", "2.9.4", False),
        ("~=1.4.2", "1.4.9", True),
        ("~=1.4.2", "1.5", False),
        (">1", "1.0", False),
        ("<=2", "2.0.0", True),
        ("!=1.5", "1.5.0", False),
        ("", "0.1", True),
    ],
)
def test_versions(clauses: str, version: str, admitted: bool) -> None:
    assert Requirement("a", clauses).admits(version) is admitted


@pytest.mark.parametrize(("release", "torch"), sorted(pytorch.offered().items()))
@pytest.mark.parametrize("build", ["{}a0+git009b5f6", "{}a0+gitd2a3f1c.unpublished", "{}+cpu", "{}"])
def test_the_torch_of_each_release_is_admitted_by_pip_and_by_the_role_alike(
    release: str, torch: str, build: str
) -> None:
    """Intel's wheels are pre-releases by their version: pip would replace one that it does not admit."""
    project = tomllib.loads((Path(__file__).parents[4] / "trainer/pyproject.toml").read_text())["project"]
    (wanted,) = [line for line in project["dependencies"] if line.startswith("torch>")]
    new_enough = tuple(map(int, torch.split("."))) >= (2, 9, 0)
    version = build.format(torch)
    assert PipRequirement(wanted).specifier.contains(version, prereleases=True) is new_enough, release
    found = Requirement.parse(wanted)
    assert found is not None and found.admits(version) is new_enough


def test_python_versions() -> None:
    assert python_admitted(">=3.11", "3.11.2")
    assert not python_admitted(">=3.11", "3.9.21")


def test_unmet_requirements_are_told_with_what_was_found() -> None:
    wanted = ["torch>=2.9", "Lightning <2.7,>=2.6", "py_yaml", "optuna; extra == 'tune'", "rich[all]>=1"]
    missing = unmet(wanted, {"torch": "2.9.0+hpu", "lightning": "2.5.1", "rich": "13.0"})
    assert described(missing) == "lightning<2.7,>=2.6 (found 2.5.1), py-yaml (missing)"


def test_sources_are_what_gets_into_a_wheel(tmp_path: Path) -> None:
    for name in (
        "src/a/b.py",
        "src/a/build/c.py",
        "src/a/__pycache__/b.pyc",
        "tests/test_b.py",
        ".venv/x",
        "pyproject.toml",
        "dist/a.whl",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    assert source_files(str(tmp_path)) == ["pyproject.toml", "src/a/b.py", "src/a/build/c.py"]
    before = source_digest(str(tmp_path))
    (tmp_path / "tests/test_b.py").write_text("changed")
    assert source_digest(str(tmp_path)) == before
    (tmp_path / "src/a/b.py").rename(tmp_path / "src/a/c.py")
    assert source_digest(str(tmp_path)) != before
