"""The modules' own tests, by ``terraform test``: with a mocked provider for AWS, without any for the rest.

The modules for Azure, Google Cloud and IBM have none: a mock needs the provider's schema, hence its executable, and
these were written without one. They are held against the schemas in schemas/ instead (test_static.py).
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .support.tool import Project, mirror_of

PROVIDERS = {"azure": "hashicorp/azurerm", "gcp": "hashicorp/google", "ibm": "IBM-Cloud/ibm"}


@pytest.mark.parametrize(
    ("module", "provider", "runs"),
    [("cluster", None, 8), ("inventory", None, 6), ("onprem", None, 3), ("aws", "hashicorp/aws", 17)],
)
def test_the_modules_own_tests(tree: Path, module: str, provider: str | None, runs: int) -> None:
    project = Project(tree / "modules" / module, name="native")
    project.init(provider)
    done = project.run("test", "-no-color", limit=180)
    assert done.code == 0, done.output[-4000:]
    assert re.findall(r"Success! (\d+) passed, (\d+) failed\.", done.output) == [(str(runs), "0")]


@pytest.mark.parametrize("cloud", PROVIDERS)
def test_validate(tree: Path, cloud: str) -> None:
    """The one check that needs a provider which a machine with Terraform may well not have."""
    provider = PROVIDERS[cloud]
    if mirror_of(provider) is None:
        pytest.skip(f"{provider} is in no mirror on this machine: terraform/{cloud} was NOT validated by Terraform")
    project = Project(tree / cloud, name="validate")
    project.init(provider)
    done = project.run("validate", "-no-color")
    assert done.code == 0, done.output


def test_a_failing_test_is_seen(tree: Path) -> None:
    project = Project(tree / "modules/inventory", name="native")
    project.init()
    file = project.folder / "tests/inventory.tftest.hcl"
    text = file.read_text()
    try:
        file.write_text(text.replace("cluster_size == 16", "cluster_size == 24"))
        done = project.run("test", "-no-color", limit=60)
        assert done.code == 1
        assert "Two nodes of eight cards are sixteen." in done.output
    finally:
        file.write_text(text)
