"""Every pinned package comes with its hashes, and nothing is installed from a list of pins without asking for them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PINNED = sorted((ROOT / "requirements").glob("*.txt"))
NAME = re.compile(r"[-_.]+")


def requirements(path: Path) -> list[str]:
    """Requirements of a file, each with its hashes on one line."""
    lines = path.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def pins(path: Path) -> dict[str, str]:
    pairs = (line.split()[0].split("==") for line in requirements(path))
    return {NAME.sub("-", name).lower(): version for name, version in pairs}


@pytest.mark.parametrize("path", PINNED, ids=lambda path: path.stem)
def test_every_requirement_is_pinned_with_its_hashes(path: Path) -> None:
    pin = re.compile(
        r"[A-Za-z0-9][\w.-]*==[\w.+!-]+(?: *; sys_platform [!=]= '\w+')?(?: +--hash=sha256:[0-9a-f]{64})+ *"
    )
    assert requirements(path)
    assert [line[:60] for line in requirements(path) if not pin.fullmatch(line)] == []


@pytest.mark.parametrize("path", PINNED, ids=lambda path: path.stem)
def test_what_is_wanted_is_pinned(path: Path) -> None:
    wanted = re.findall(r"^([A-Za-z0-9][\w.-]*)", path.with_suffix(".in").read_text(), re.MULTILINE)
    known = {*pins(path), *pins(ROOT / "requirements/controller.txt"), *pins(ROOT / "requirements/trainer.txt")}
    assert {NAME.sub("-", name).lower() for name in wanted} <= known


def test_torch_is_pinned_where_it_comes_from_one_index() -> None:
    assert [path.name for path in PINNED if "torch" in pins(path)] == ["torch-cuda.txt", "torch.txt"]
    assert list(pins(ROOT / "requirements/torch.txt")) == ["torch"]
    builds = [line.split("--hash")[0].strip() for line in requirements(ROOT / "requirements/torch.txt")]
    assert builds == ["torch==2.13.0+cpu ; sys_platform != 'darwin'", "torch==2.13.0 ; sys_platform == 'darwin'"]


def commands() -> list[str]:
    """Every command of the repository that has pip install from a list of pins."""
    programs = [ROOT / "Makefile", ROOT / ".ci/run", ROOT / "trainer/README.md", *(ROOT / ".github").rglob("*.yml")]
    programs += (ROOT / "simulator/src/gaudi3_simulator").rglob("*.py")
    lines = [line for path in programs for line in path.read_text(encoding="utf-8").splitlines()]
    found = re.compile(r"\bpip(?:\", \"| )(?:install|download)\b.*(?:requirements/|torch_arguments|-r )")
    return [line.strip() for line in lines if found.search(line)]


def test_lists_of_pins_are_installed_with_their_hashes_alone() -> None:
    assert len(commands()) >= 9
    assert [line for line in commands() if "--require-hashes" not in line] == []


def test_no_second_index_may_win() -> None:
    places = [ROOT / "Makefile", *(ROOT / "simulator/src").rglob("*.py"), ROOT / "trainer/README.md"]
    assert [path.name for path in places if "--extra-index-url" in path.read_text(encoding="utf-8")] == []


def test_every_package_is_built_by_the_pinned_hatchling() -> None:
    version = pins(ROOT / "requirements/controller.txt")["hatchling"]
    for package in ("trainer", "simulator", "deploy"):
        system = tomllib.loads((ROOT / package / "pyproject.toml").read_text())["build-system"]
        assert system["requires"] == [f"hatchling=={version}"], package


def test_the_trainers_wheel_has_the_list() -> None:
    inside = ROOT / "trainer/src/gaudi3_scale/requirements.txt"
    assert (ROOT / "requirements/trainer.txt").resolve() == inside
    assert pins(inside)["lightning"] == "2.6.6" and "torch" not in pins(inside)
