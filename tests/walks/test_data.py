"""The YAML that documents show is what the schemas of our files admit: jobs, variables, cost inputs, inventories."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from tests.suite.schema_problems import Loader, problems
from tests.walks.markdown import all_blocks
from website.reference import schemas

BLOCKS = [(block.place, block.code) for found in all_blocks().values() for block in found if block.language == "yaml"]
JOB = set(schemas.trainer_config()["properties"])
GROUPS = {"all", "gaudi", "gaudi_head", "monitoring"}
OURS = re.compile(rf"(?:{'|'.join(schemas.prefixes())})_")
OTHER = {
    "hosts": "machines that are there, for Terraform's module onprem",
    "plugin": "a source of the inventory plugin",
    "wanted": "a site's fabric, for gaudi3-deploy fabric lint",
}
"""What a block is by its first key, where it is none of the files that have a schema."""


def meant(value: object) -> list[tuple[str, object]]:
    """The parts of a block that have a schema, each with its name."""
    if isinstance(value, list):
        # Plays, or the tasks of one.
        roles = [role for play in value for role in play.get("roles", []) if isinstance(role, dict)]
        return [("variables", part["vars"]) for part in [*value, *roles] if part.get("vars")]
    assert isinstance(value, dict)
    first = next(iter(value))
    if first in OTHER:
        return []
    if set(value) <= GROUPS:
        return [("inventory", value)]
    if "offers" in value:
        return [("cost-inputs", value)]
    return [("trainer-config" if set(value) & JOB and not any(map(OURS.match, value)) else "variables", value)]


def faults(code: str) -> list[str]:
    """What is wrong with a block of YAML."""
    value: Any = yaml.load(code, Loader)
    found = [f"{name}: {problem}" for name, part in meant(value) for problem in problems(name, part)]
    if isinstance(value, dict) and ("variables", value) in meant(value) and not any(map(OURS.match, value)):
        found.append(f"no schema knows {', '.join(value)}")
    return found


@pytest.mark.parametrize(("place", "code"), BLOCKS, ids=[place for place, _code in BLOCKS])
def test_a_block_is_admitted(place: str, code: str) -> None:
    assert faults(code) == [], place


def test_the_documents_show_each_of_them() -> None:
    kinds = {name for _place, code in BLOCKS for name, _part in meant(yaml.load(code, Loader))}
    assert kinds >= {"trainer-config", "variables"}


@pytest.mark.parametrize(
    "code",
    [
        "train: {max_stepz: 1}",
        "trane: {max_steps: 1}",
        "synapseai_relase: 1.23.0-695",
        "trainer_config: {train: {max_stepz: 1}}",
        "offers: {mine: {mfuu: 1}}",
        "gaudi: {hots: {gaudi-01: {}}}",
        "- hosts: gaudi\n  roles:\n    - role: gaudi3.scale.watch\n      vars: {watch_portt: 1}",
    ],
)
def test_a_wrong_key_is_found(code: str) -> None:
    assert faults(code)
