"""`make dev-plugins` installs what the tests of plugins import, and no more."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
#: Distributions of this project, and folders of tests; they lie on pytest's path.
OURS = {"ansible_collections", "gaudi3_doctor", "gaudi3_scale", "gaudi3_simulator", "tests"}
#: Folders whose files are imported by their bare names.
HELPERS = ("tests/unit/plugins", "simulator/tests/node")
#: What needs more than the light environment, and why.
MORE = {
    "backup_stores.py": {"boto3"},  # which asks moto for keys, where it plays S3
    "test_gaudi_dataset_store.py": {"boto3", "moto"},  # which plays S3
    "test_spot_price.py": {"boto3", "botocore"},  # whose stand-in for AWS checks what is asked
}


def name_of(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def pins(name: str) -> set[str]:
    """The distributions of a list in requirements/."""
    text = (ROOT / "requirements" / name).read_text()
    return {name_of(found) for found in re.findall(r"^([A-Za-z0-9][\w.-]*)==", text, re.MULTILINE)}


def picked() -> set[str]:
    """What the recipe takes out of dev.txt."""
    match = re.search(
        r"pick\.py requirements/dev\.txt ([\w -]+) > \$\(VENV\)/plugins\.txt", (ROOT / "Makefile").read_text()
    )
    assert match, "the Makefile has no such recipe"
    return set(match[1].split())


INSTALLED = pins("controller.txt") | picked() | {"pip"}
KNOWN = metadata.packages_distributions()


def imported(path: Path) -> set[str]:
    """Distributions of other people that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.split(".")[0])
    beside = {each.stem for folder in HELPERS for each in (ROOT / folder).rglob("*.py")}
    others = found - OURS - beside - set(sys.stdlib_module_names)
    return {name_of(KNOWN.get(each, [each])[0]) for each in others}


def test_the_light_environment_is_enough_for_the_tests_of_plugins() -> None:
    files = sorted((ROOT / "tests/unit/plugins").rglob("*.py"))
    assert len(files) > 100
    lacking = {path.name: imported(path) - INSTALLED for path in files}
    assert {name: found for name, found in lacking.items() if found} == MORE


def test_what_pytest_requires_is_there_too() -> None:
    """The recipe installs pytest without asking what it requires."""
    required = {
        name_of(re.split(r"[^\w.-]", line)[0])
        for line in metadata.requires("pytest") or []
        if "extra ==" not in line and "python_version" not in line and "sys_platform" not in line
    }
    assert required and required <= INSTALLED


def test_the_light_environment_is_light() -> None:
    assert not INSTALLED & {"torch", "lightning", "mypy", "ansible-lint", "datasets"}


def test_nodes_are_prepared_without_a_library() -> None:
    """`make demo` does it while pip installs the controller's packages: site's folders are left out by -S."""
    (recipe,) = re.findall(r"PYTHONPATH=(\S+) \$\(BIN\)/python (-m \S+ prepare)", (ROOT / "Makefile").read_text())
    command = [sys.executable, "-S", *recipe[1].split(), "--help"]
    said = subprocess.run(
        command, env={"PYTHONPATH": str(ROOT / recipe[0])}, capture_output=True, text=True, check=True
    ).stdout
    assert "usage: gaudi3-simulator prepare" in said
