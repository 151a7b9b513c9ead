"""`gaudi_mirror` takes the place of every address outside of a site, or it is said which it does not and why."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.gaudi3.scale.plugins.plugin_utils.role_tasks import VARIABLES
from ansible_collections.gaudi3.scale.plugins.plugin_utils.role_values import RoleValues
from ansible_collections.gaudi3.scale.plugins.plugin_utils.roles import trusted
from tests.unit.playbooks.jinja import evaluate

ROOT = Path(__file__).resolve().parents[3]
MIRROR = "http://mirror.example:8080/gaudi"
#: A host of the internet, as an address of the web or as the registry of an image.
OUTSIDE = re.compile(r"(?:^|(?<=[/\s\"'(=]))(?:[a-z0-9-]+\.)+(?:ai|cloud|com|dev|io|net|org)(?=[/:]\S|$)")
UBUNTU = {"os_family": "Debian", "distribution": "Ubuntu", "distribution_version": "24.04"}
RHEL = {"os_family": "RedHat", "distribution": "RedHat", "distribution_version": "9.6"}
#: Variables that name one beside a mirror.
ELSEWHERE = {
    "hpu_exporter_image": "the name of an image, whose content gaudi_container_image takes from the mirror",
    "trainer_container_registry": "the name of a registry, the content of whose images is the mirror's",
}
#: Constants of the code that are addresses.
CONSTANTS = {
    "https://apt.grafana.com": "where no mirror is set",
    "https://apt.grafana.com/gpg.key": "where no mirror is set",
    "https://download.pytorch.org/whl/cpu": "a module's default, which the role gives",
    "https://iam.cloud.ibm.com": "the cloud that hosts are in",
    "https://json-schema.org/draft/2020-12/schema": "a name, which nobody asks",
    "https://pypi.org/simple": "what pip asks where nobody configured it, as a mirror's index does",
    "https://raw.githubusercontent.com/HabanaAI/hccl_ofi_wrapper/bea1d6f65e2be76f5f703403787cb8a3fde5ebaa": (
        "where no mirror is set"
    ),
    "https://vault.habana.ai/artifactory/gaudi-pt-modules": "a module's default, which the role gives",
}


def defaults() -> dict[str, Any]:
    """The variables of all roles that have a text."""
    found: dict[str, Any] = {}
    for path in sorted(ROOT.glob("roles/*/defaults/main.yml")):
        found |= yaml.safe_load(path.read_text()) or {}
    return found


def outside(facts: dict[str, str], **given: Any) -> dict[str, str]:
    """The variables of roles that name a host of the internet, with what they say."""
    site = {
        "inventory_hostname": "one", "ansible_host": "10.0.0.1", "groups": {"gaudi": ["one"]}, "hostvars": {},
        "ansible_facts": facts, **given,
    }  # fmt: skip
    given_values = {name: trusted(value) for name, value in site.items()}
    values = RoleValues({**VARIABLES, **given_values}, lambda value, more: evaluate(value, **more))
    found = {}
    for name in defaults():
        try:
            value = values[name]
        except Exception:  # what is known on a host alone, such as whether it has cards
            value = defaults()[name]
        if OUTSIDE.search(str(value)):
            found[name] = str(value)
    return found


@pytest.mark.parametrize("facts", [UBUNTU, RHEL])
def test_no_variable_but_those_listed_leads_out_of_a_site_with_a_mirror(facts: dict[str, str]) -> None:
    without = outside(facts)
    assert {"synapseai_repository_url", "synapseai_rpm_key_url", "pytorch_repository_url", "fabric_ofi_wrapper_url",
            "grafana_repository_url", "serving_torch_index_url", *ELSEWHERE} <= without.keys()  # fmt: skip
    with_mirror = outside(facts, gaudi_mirror=MIRROR)
    assert with_mirror.keys() == ELSEWHERE.keys(), "gaudi_mirror has to set it, or say here why it does not"


def constants(path: Path) -> Iterator[str]:
    """Texts of a program that are an address and nothing else."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r"https?://\S+", node.value):
            yield node.value


def test_no_program_of_a_node_has_an_address_of_its_own() -> None:
    paths = [*ROOT.glob("plugins/module*/**/*.py"), *ROOT.glob("roles/*/files/**/*.py")]
    found = {text for path in paths for text in constants(path) if OUTSIDE.search(text)}
    assert found == CONSTANTS.keys()
