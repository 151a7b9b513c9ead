"""Imports go one way: no circle of files in any distribution, and in the trainer no import of a higher floor.

What only a type checker reads counts, and so does what a function imports when it is called: either makes somebody
who reads one file read the other first.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

#: The folders that each distribution's modules are found in, by the name of their package.
DISTRIBUTIONS: dict[str, dict[str, Path]] = {
    "doctor": {"gaudi3_doctor": ROOT / "doctor/src/gaudi3_doctor"},
    "trainer": {"gaudi3_scale": ROOT / "trainer/src/gaudi3_scale"},
    "benchmark": {"gaudi3_benchmark": ROOT / "benchmark-tool/src/gaudi3_benchmark"},
    "migration": {"gaudi3_migration": ROOT / "migration/src/gaudi3_migration"},
    "watch": {"gaudi3_watch": ROOT / "watch/src/gaudi3_watch"},
    "deploy": {"gaudi3_deploy": ROOT / "deploy/src/gaudi3_deploy"},
    "simulator": {"gaudi3_simulator": ROOT / "simulator/src/gaudi3_simulator"},
    "simulated device": {
        name: ROOT / "simulator/torch/src" / name for name in ("gaudi3_hpu_simulator", "habana_frameworks")
    },
    "plugins": {"ansible_collections.gaudi3.scale.plugins": ROOT / "plugins"},
}

#: The rooms of the trainer, folders and files beside them, from the ground up. A room imports from lower floors alone.
FLOORS: tuple[tuple[str, ...], ...] = (
    ("codec", "errors", "extras", "files", "git_commit", "git_lfs", "host_memory", "job_file_text", "lazy"),
    ("metrics_listener", "next_command", "version", "yaml_file"),
    ("calling", "config", "finite", "own_script", "profiler", "secret", "status", "traces"),
    (
        "console",
        "data",
        "hpu",
        "launcher_arguments",
        "launcher_checks",
        "launcher_file",
        "launcher_job",
        "meeting_store",
        "registry",
        "tracking",
    ),
    ("internals", "monitoring"),
    ("distributed", "hangs", "membership"),
    ("checkpoint", "interruption"),
    ("kubernetes", "launch", "models", "slurm"),
    ("memory", "recipe_cache", "serving", "throughput"),
    ("cost", "metrics", "precision"),
    ("integration",),
    ("migrate_command", "planning"),
    ("batch", "tuning"),
    ("batch_warmup", "optimization", "run"),
    ("step",),
    ("callbacks",),
    ("job",),
    ("cli",),
    ("__init__", "__main__"),
)


def modules(folders: Mapping[str, Path]) -> dict[str, Path]:
    """The files of a distribution by their dotted names; a package is its ``__init__``."""
    found = {}
    for package, folder in folders.items():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            found[".".join((package, *(parts[:-1] if parts[-1] == "__init__" else parts)))] = path
    return found


def imported(name: str, files: Mapping[str, Path]) -> set[str]:
    """The modules of its distribution that a module imports, anywhere in it."""
    path = files[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            found |= {f"{module}.{a.name}" if f"{module}.{a.name}" in files else module for a in node.names}
    return found & files.keys() - {name}


def circles(edges: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The groups of modules of which each can reach the others."""
    reach: dict[str, set[str]] = {}
    for name in edges:
        found: set[str] = set()
        left = [name]
        while left:
            new = set(edges[left.pop()]) - found
            found |= new
            left += new
        reach[name] = found
    groups = {
        frozenset({name, *(other for other in reach[name] if name in reach[other])})
        for name in edges
        if name in reach[name]
    }
    return sorted(map(sorted, groups))


def room(name: str) -> str:
    """The folder of the trainer that a module is in, or its own name where it is in none."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def upwards(files: Mapping[str, Path], floors: Iterable[Iterable[str]]) -> list[str]:
    """The imports of another room on the same floor or a higher one."""
    floor = {each: number for number, rooms in enumerate(floors) for each in rooms}
    return [
        f"{name} imports {other}"
        for name in files
        for other in sorted(imported(name, files))
        if room(other) != room(name) and floor[room(other)] >= floor[room(name)]
    ]


#: What each of these may import of the others: the doctor goes to nodes alone, and the trainer needs nothing above it.
NEIGHBOURS: dict[str, set[str]] = {
    "doctor": set(),
    "migration": set(),
    "trainer": {"doctor", "migration"},
    "benchmark": {"doctor", "trainer"},
    "watch": {"doctor", "trainer"},
}


def foreign(folders: Mapping[str, Path], packages: Iterable[str]) -> set[str]:
    """Those of the packages that some file in the folders imports."""
    found = set()
    for path in modules(folders).values():
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            found |= {name.partition(".")[0] for name in names}
    return found & set(packages)


@pytest.mark.parametrize("distribution", NEIGHBOURS)
def test_a_distribution_imports_those_alone_that_it_may(distribution: str) -> None:
    packages = {package: name for name in NEIGHBOURS for package in DISTRIBUTIONS[name]}
    others = packages.keys() - DISTRIBUTIONS[distribution].keys()
    assert {packages[each] for each in foreign(DISTRIBUTIONS[distribution], others)} == NEIGHBOURS[distribution]


def test_an_import_of_a_neighbour_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def later():\n    from gaudi3_doctor.host import Host")
    (tmp_path / "b.py").write_text("import gaudi3_scale.cli as cli\nfrom .gaudi3_simulator import c")
    names = ["gaudi3_doctor", "gaudi3_scale", "gaudi3_simulator"]
    assert foreign({"gaudi3_x": tmp_path}, names) == {"gaudi3_doctor", "gaudi3_scale"}


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_no_circle_of_files(distribution: str) -> None:
    files = modules(DISTRIBUTIONS[distribution])
    assert len(files) > 10
    assert circles({name: imported(name, files) for name in files}) == []


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": ()}) == [["a", "b", "c"]]


def test_the_trainers_rooms_are_all_on_a_floor() -> None:
    listed = [each for rooms in FLOORS for each in rooms]
    assert len(listed) == len(set(listed))
    assert {room(name) for name in modules(DISTRIBUTIONS["trainer"])} == set(listed)


def test_the_trainer_imports_downwards_alone() -> None:
    assert upwards(modules(DISTRIBUTIONS["trainer"]), FLOORS) == []


@pytest.mark.parametrize(
    "planted",
    [
        "from gaudi3_scale.high import thing",
        "import gaudi3_scale.high",
        "from gaudi3_scale import high",
        "from . import high",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from gaudi3_scale.high import Thing",
        "def later():\n    from gaudi3_scale.high import thing",
    ],
)
def test_an_import_upwards_is_found(tmp_path: Path, planted: str) -> None:
    (tmp_path / "low.py").write_text(planted)
    (tmp_path / "high.py").write_text("from gaudi3_scale import low")
    (tmp_path / "__init__.py").touch()
    files = modules({"gaudi3_scale": tmp_path})
    assert upwards(files, [["__init__"], ["low"], ["high"]]) == ["gaudi3_scale.low imports gaudi3_scale.high"]
    assert circles({name: imported(name, files) for name in files}) == [["gaudi3_scale.high", "gaudi3_scale.low"]]
