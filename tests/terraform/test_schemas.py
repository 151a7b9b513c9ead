"""What can be said of the clouds whose providers are not here: names and required arguments, against their schemas."""

from __future__ import annotations

import subprocess
import sys

import pytest

from .conftest import ROOT
from .support.hcl import Module, check_references, check_schema, load_schema

SCHEMAS = ROOT / "tests" / "terraform" / "schemas"


@pytest.mark.parametrize(("cloud", "provider"), [("azure", "azurerm"), ("gcp", "google"), ("ibm", "ibm")])
def test_resources_are_as_the_provider_knows_them(cloud: str, provider: str) -> None:
    module, schema = Module(ROOT / "terraform" / "modules" / cloud), load_schema(SCHEMAS / f"{provider}.json")
    count, problems = check_schema(module, schema)
    assert count > 5
    assert problems == []
    assert check_references(module, schema) == []


def test_a_misspelt_argument_would_be_found() -> None:
    module, schema = Module(ROOT / "terraform" / "modules" / "ibm"), load_schema(SCHEMAS / "ibm.json")
    first = next(each for each in module.resources() if each.kind == "resource")
    first.body["nmae"] = "x"
    module.resources = lambda: iter([first])  # type: ignore[method-assign]
    assert check_schema(module, schema)[1] == [f"{first.address}: unknown argument nmae"]


@pytest.mark.parametrize("cloud", ["aws", "azure", "gcp", "ibm", "onprem"])
def test_each_place_has_the_same_interface(cloud: str) -> None:
    root, reference = Module(ROOT / "terraform" / cloud), Module(ROOT / "terraform" / "onprem")
    common = {
        "cluster_size",
        "instance_type",
        "name",
        "tags",
        "allowed_cidrs",
        "ssh_public_key",
        "extra_instance_types",
    }
    assert common <= set(root.named("variable"))
    assert set(root.named("output")) == set(reference.named("output"))


def test_what_is_generated_is_in_step() -> None:
    command = [sys.executable, str(ROOT / "terraform" / "generate.py"), "--check"]
    result = subprocess.run(command, text=True, capture_output=True, timeout=60, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
