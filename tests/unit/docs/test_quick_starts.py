"""What the documents rent can be driven by the default release, and its nodes can be reached."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from ansible_collections.gaudi3.scale.plugins.module_utils._cloud.instance_data import CATALOGUE
from ansible_collections.gaudi3.scale.plugins.module_utils._release import support_matrix
from ansible_collections.gaudi3.scale.plugins.module_utils._terraform.state import STORAGE

from .documents import ROOT, blocks, commands, texts

TYPES: dict[str, dict[str, Any]] = CATALOGUE["types"]
RELEASE = yaml.safe_load((ROOT / "roles/synapseai/defaults/main.yml").read_text())["synapseai_release"]
GENERATIONS = {1: "gaudi", 2: "gaudi2", 3: "gaudi3"}
#: Documents that lead someone to machines; the first type that each names is the one that its reader takes.
LEADING = (
    "docs/clouds/terraform.md", "docs/clouds/deploy.md", "docs/clouds/onprem.md", "docs/clouds/instances.md",
    "deploy/README.md", "terraform/README.md",
)  # fmt: skip


def examples(source: str) -> str:
    """The EXAMPLES of a module."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "EXAMPLES":
            return str(ast.literal_eval(node.value))
    return ""


def shown() -> Iterator[tuple[str, str]]:
    """(where, code) of all that may be copied to get machines: code blocks, heads of playbooks, examples."""
    for name, text in texts().items():
        yield from ((name, block) for block in blocks(text))
    for path in sorted((ROOT / "playbooks").glob("*.yml")):
        lines = [line.lstrip("# ") for line in path.read_text().splitlines() if line.startswith("#")]
        yield f"playbooks/{path.name}", "\n".join(lines).replace("\\\n", " ")
    yield "gaudi_terraform", examples((ROOT / "plugins/modules/gaudi_terraform.py").read_text())


def named_types(text: str) -> list[str]:
    """Types of the catalogue in a text, in their order."""
    return [word for word in re.findall(r"[\w.-]+", text) if word in TYPES]


def drives(kind: str) -> bool:
    """Whether the default release drives the cards of a type."""
    generation = GENERATIONS.get(TYPES[kind].get("gaudi_generation", 0))
    return bool(generation) and not support_matrix.release_problem(RELEASE, "Ubuntu 24.04", generation=generation)


def options(given: list[str], *names: str) -> list[str]:
    """The values of an option, wherever it stands and under any of its names."""
    return [value for name, value in itertools.pairwise(given) if name in names]


def rentals(text: str) -> Iterator[tuple[str, list[str], dict[str, str]]]:
    """(cloud, types, variables) of each command in a code block that makes machines."""
    folder = ""
    for line in text.splitlines():
        entered = re.search(r"\bcd terraform/(\w+)", line)
        folder = entered[1] if entered else folder
        for given in commands(line, "gaudi3-deploy"):
            if "--cloud" in given:
                pairs = dict(each.partition("=")[::2] for each in options(given, "--var"))
                yield options(given, "--cloud")[0], options(given, "--type"), pairs
        for given in commands(line, "terraform"):
            if folder and given[0] in ("plan", "apply"):
                pairs = dict(each.partition("=")[::2] for each in options(given, "-var"))
                yield folder, [pairs.pop("instance_type")], pairs
        for given in commands(line, "ansible-playbook"):
            pairs = dict(each.partition("=")[::2] for each in options(given, "-e"))
            if "provision_cloud" in pairs:
                own: dict[str, Any] = next(
                    (yaml.safe_load(each) for each in options(given, "-e") if each.startswith("{")), {}
                )
                yield pairs["provision_cloud"], [pairs["provision_type"]], own.get("provision_variables", {})


RENTED = [(where, *rental) for where, code in shown() for rental in rentals(code)]


def test_the_default_release_drives_every_type_that_a_quick_start_names() -> None:
    found = [(where, kind) for where, code in shown() for kind in named_types(code)]
    assert len(found) >= 6, "the test does not find what the documents show"
    assert [(where, kind) for where, kind in found if not drives(kind)] == []


def test_the_page_says_what_is_left_after_the_end() -> None:
    """What `down` keeps while there are checkpoints, and so what is still billed."""
    page = (ROOT / "docs/clouds/aws.md").read_text()
    _before, _, table = page.partition("| what stays | what it costs |\n")
    rows = [line.split("|")[1] for line in table.partition("\n\n")[0].splitlines()[1:]]
    assert sorted(re.findall(r"`(aws_\w+)`", " ".join(rows))) == sorted(
        kind for kind in STORAGE if kind.startswith("aws_")
    )


def test_no_example_names_a_type_that_is_withdrawn() -> None:
    modules = sorted((ROOT / "plugins/modules").glob("*.py"))
    found = [*shown(), *((path.stem, examples(path.read_text())) for path in modules)]
    assert [(where, kind) for where, code in found for kind in named_types(code) if "withdrawn" in TYPES[kind]] == []


@pytest.mark.parametrize("name", LEADING)
def test_a_document_leads_with_a_type_that_the_default_release_drives(name: str) -> None:
    assert drives(named_types((ROOT / name).read_text())[0])


@pytest.mark.parametrize("kind", ["dl1.24xlarge", "p5.48xlarge"])
def test_a_type_that_it_does_not_drive_is_found(kind: str) -> None:
    (found,) = named_types(f"gaudi3-deploy up trial --cloud aws --type {kind}")
    assert not drives(found)


def variables(cloud: str) -> set[str]:
    """Variables of a root module."""
    files = (ROOT / "terraform" / cloud).glob("*.tf")
    return {name for path in files for name in re.findall(r'^variable "(\w+)"', path.read_text(), re.M)}


def test_types_and_variables_are_those_of_the_cloud() -> None:
    assert len(RENTED) >= 4, "the test does not find what the documents rent"
    wrong = []
    for where, cloud, kinds, pairs in RENTED:
        wrong += [f"{where}: {kind} is not of {cloud}" for kind in kinds if TYPES[kind]["cloud"] != cloud]
        wrong += [f"{where}: {cloud} has no variable {name}" for name in pairs.keys() - variables(cloud)]
        for kind in kinds:
            if "region" in pairs and pairs["region"] not in TYPES[kind].get("regions", ()):
                wrong.append(f"{where}: {kind} is not offered in {pairs['region']}")
    assert wrong == []


def test_every_quick_start_of_a_cloud_has_a_way_in() -> None:
    """Nodes of all clouds have private addresses, so that a command without one pays for nodes that nobody reaches."""
    assert {cloud for _where, cloud, _kinds, _pairs in RENTED} >= {"ibm", "onprem"}
    closed = [
        (where, cloud)
        for where, cloud, _kinds, pairs in RENTED
        if cloud != "onprem" and not {"jump_host", "connection", "public_entry"} & pairs.keys()
    ]
    assert closed == []


def test_the_page_says_which_release_the_other_types_need() -> None:
    """First-generation Gaudi is what AWS rents; its last release brings a PyTorch that the trainer does not take."""
    last = [
        each
        for each in support_matrix.known_releases()
        if not support_matrix.release_problem(each, "Ubuntu 22.04", generation="gaudi")
    ][-1]
    torch = support_matrix.torch_version(last)
    assert torch is not None and torch < support_matrix.TRAINER_TORCH
    for name in ("docs/clouds/aws.md", "docs/clouds/spot.md"):
        assert last in (ROOT / name).read_text(), name
