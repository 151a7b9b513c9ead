"""The collection on every ansible-core that meta/runtime.yml accepts, each in an environment of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from .proof import ROOT, Proof

OWN = ".".join(version("ansible-core").split(".")[:2])
VERSIONS = ("2.17", "2.18", "2.19", "2.20", "2.21")
PLAYS = (
    "test_jobs.py", "test_job_list.py", "test_preflight.py", "test_refusals.py", "test_secrets.py", "test_services.py",
    "test_driver.py", "test_settings.py", "test_site.py", "test_doctor.py", "test_health.py", "test_heal.py",
    "test_remove.py", "test_node_health.py", "test_progress.py",
)  # fmt: skip
PROOF = Proof(
    "core-matrix",
    {
        "site": [f"ansible-core-{each}-site" for each in VERSIONS],
        "plays": [f"ansible-core-{each}-plays" for each in VERSIONS],
    },
    sample=[f"ansible-core-{OWN}-site"],
)
TEXT = f"""
*site*: `ansible-playbook gaudi3.scale.site --syntax-check` and `ansible-doc` of every module end well, without a
warning about the version. *plays*: {", ".join(PLAYS)} of `tests/plays` hold, which play the real roles over local
connections, with no settings but what the collection demands and without a warning of Ansible about a playbook.
The community collections are those of the tests' own package `ansible`.
"""


@pytest.fixture(autouse=True)
def table() -> Iterator[None]:
    yield
    PROOF.write_table("The collection on each ansible-core", TEXT, ["seen"])


def python_of(case: str) -> Path:
    """The interpreter of the environment that a case names."""
    wanted = case.split("-")[2]
    if wanted == OWN:
        return Path(sys.executable)
    found = ROOT / ".cache/core-matrix" / wanted / "bin/python"
    if not found.exists():
        PROOF.cannot_run(case, f"no Python of this machine can have ansible-core {wanted}")
    return found


def run(python: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A program of the environment, which finds its siblings first."""
    environment = {
        **os.environ,
        "PATH": f"{python.parent}:{os.environ['PATH']}",
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "collections"),
        "ANSIBLE_LOCALHOST_WARNING": "0",
        "COLUMNS": "500",
    }
    return subprocess.run(
        [str(python), *command], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=7200, check=False
    )


@pytest.mark.parametrize("case", [each for each in PROOF.parameters({c: c for c in PROOF.cases}) if "site" in each.id])
def test_the_site_and_the_documentation(case: str) -> None:
    PROOF.skip_if_held(case)
    python = python_of(case)
    release = run(python, "-c", "from ansible.release import __version__; print(__version__)").stdout.strip()
    assert release.startswith(case.split("-")[2] + ".")
    modules = sorted(f"gaudi3.scale.{path.stem}" for path in (ROOT / "plugins/modules").glob("*.py"))
    for program, *arguments in (
        ("ansible-playbook", "gaudi3.scale.site", "--syntax-check", "-i", "examples/inventory"),
        ("ansible-doc", "--json", *modules),
    ):
        where = shutil.which(program, path=str(python.parent))
        assert where is not None
        done = run(python, where, *arguments)
        assert done.returncode == 0, done.stderr
        assert "does not support Ansible version" not in done.stdout + done.stderr
    PROOF.note(case, {"seen": f"{release}, {len(modules)} modules"})


@pytest.mark.parametrize("case", [each for each in PROOF.parameters({c: c for c in PROOF.cases}) if "plays" in each.id])
def test_the_plays(case: str) -> None:
    PROOF.skip_if_held(case)
    done = run(
        python_of(case), "-m", "pytest", "-q", "-p", "no:cacheprovider", *(f"tests/plays/{each}" for each in PLAYS)
    )
    assert done.returncode == 0, done.stdout[-4000:]
    PROOF.note(case, {"seen": done.stdout.strip().splitlines()[-1].split(" in ")[0]})


def test_the_versions_are_those_that_the_collection_accepts() -> None:
    accepted = yaml.safe_load((ROOT / "meta/runtime.yml").read_text())["requires_ansible"]
    first, last = VERSIONS[0], VERSIONS[-1].split(".")
    assert accepted == f">={first}.0,<{last[0]}.{int(last[1]) + 1}.0"


@pytest.mark.parametrize("each", VERSIONS)
def test_every_version_has_the_same_exceptions_of_sanity(each: str) -> None:
    folder = ROOT / "tests/sanity"
    assert (folder / f"ignore-{each}.txt").read_text() == (folder / f"ignore-{OWN}.txt").read_text()
