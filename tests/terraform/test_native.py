"""The modules' own tests, by ``terraform test``: with a mocked provider for AWS, without any for the rest.

The modules for Azure, Google Cloud and IBM have none: a mock needs the provider's schema, hence its executable, and
these were written without one. They are held against the schemas in schemas/ instead (test_static.py).
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .conftest import TREE
from .support.tool import Project, mirror_of

PROVIDERS = {"azure": "hashicorp/azurerm", "gcp": "hashicorp/google", "ibm": "IBM-Cloud/ibm"}


@pytest.mark.parametrize(
    ("module", "provider", "runs"),
    [("cluster", None, 9), ("inventory", None, 8), ("onprem", None, 3), ("aws", "hashicorp/aws", 31)],
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


def test_the_guard_of_azure_s_storage(terraform: str, tmp_path: Path) -> None:
    """Its block alone, as Azure's provider is not here: what Terraform destroys before the account, and stops at."""
    text = (TREE / "modules/azure/storage.tf").read_text()
    guard = text[text.index('resource "terraform_data" "checkpoints"') :]
    assert re.findall(r"^    (azurerm_storage_\w+)\.checkpoints,$", guard, re.MULTILINE) == [
        "azurerm_storage_account", "azurerm_storage_container", "azurerm_storage_management_policy",
    ]  # fmt: skip
    variable = 'variable "destroy_checkpoints" { default = false }\n'
    (tmp_path / "main.tf").write_text(variable + re.sub(r"  depends_on = \[.*?\]\n", "", guard, flags=re.DOTALL))
    project = Project(tmp_path)
    project.init()
    assert project.change("apply").code == 0
    done = project.change("destroy", "-var=destroy_checkpoints=true")
    assert done.code == 1, done.output
    assert "The storage account with the checkpoints stays" in done.output
    assert project.change("apply", "-var=destroy_checkpoints=true").code == 0
    assert project.change("destroy").code == 0


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
