"""The schemas accept our examples and what the trainer and the roles take, and refuse misspelt keys and wrong types."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from gaudi3_scale.config import dump_default
from tests.suite.schema_problems import Loader, problems
from website.reference import schemas
from website.reference.text import ROOT

HEADED = sorted(
    path
    for folder in ("examples", "inventories")
    for path in (ROOT / folder).rglob("*.yml")
    if "yaml-language-server" in path.read_text(encoding="utf-8")
)
HEADER = re.compile(r"^# yaml-language-server: \$schema=(\S+)$", re.MULTILINE)


def read(path: Path) -> Any:
    return yaml.load(path.read_text(encoding="utf-8"), Loader)


@pytest.mark.parametrize("name", sorted(schemas.every()))
def test_a_schema_is_one(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schemas.every()[name])


def test_the_committed_schemas_are_the_ones_of_the_code() -> None:
    for path, text in schemas.committed().items():
        assert path.read_text(encoding="utf-8") == text, "run python -m website.reference"
    assert set((ROOT / "examples").rglob("*.schema.json")) == set(schemas.committed())


def test_the_examples_name_a_schema_that_is_there_and_accepts_them() -> None:
    wanted = {"examples/inventory/hosts.yml", "examples/inventory/group_vars/all.yml", "examples/own_script/job.yml"}
    assert {str(path.relative_to(ROOT)) for path in HEADED} >= wanted | {"examples/cost/inputs.yml"}
    for path in HEADED:
        (named,) = HEADER.findall(path.read_text(encoding="utf-8"))
        file = (path.parent / named).resolve()
        assert file.is_file(), named
        assert problems(file.name.removesuffix(schemas.SUFFIX), read(path)) == []


def test_all_references_are_within_the_schemas_or_to_one_beside_it() -> None:
    for path, text in schemas.committed().items():
        for target in re.findall(r'"\$ref": "([^#"]+)', text):
            assert (path.parent / target).is_file()


def test_the_defaults_of_all_roles_and_the_simulated_inventory_are_accepted() -> None:
    for path in [*ROOT.glob("roles/*/defaults/main.yml"), *ROOT.glob("inventories/*/group_vars/*.yml")]:
        assert problems("variables", read(path)) == [], path


def test_what_the_trainer_prints_to_start_from_is_accepted() -> None:
    assert problems("trainer-config", yaml.load(dump_default(), Loader)) == []
    assert problems("variables", {"trainer_config": yaml.load(dump_default(), Loader)}) == []


@pytest.mark.parametrize(
    ("name", "value", "where"),
    [
        ("trainer-config", {"train": {"max_step": 5}}, "train"),
        ("trainer-config", {"max_steps": 5}, ""),
        ("trainer-config", {"train": {"max_steps": "many"}}, "train.max_steps"),
        ("trainer-config", {"train": {"max_steps": 0}}, "train.max_steps"),
        ("trainer-config", {"train": {"precision": "bf16"}}, "train.precision"),
        ("trainer-config", {"train": None}, "train"),
        ("trainer-config", {"data": {"mixture": [{"source": "x"}]}}, "data.mixture.0"),
        ("variables", {"synapseai_relase": "1.23.0-695"}, ""),
        ("variables", {"gaudi_secret_dir": "x"}, ""),
        ("variables", {"firewall_enabled": "maybe"}, "firewall_enabled"),
        ("variables", {"prometheus_port": "many"}, "prometheus_port"),
        ("variables", {"trainer_state": "begun"}, "trainer_state"),
        ("variables", {"trainer_config": {"train": {"max_step": 5}}}, "trainer_config"),
        ("variables", {"trainer_jobs": [{"nam": "a"}]}, "trainer_jobs"),
        ("variables", {"trainer_jobs": [{"name": "a", "config": {"train": {"max_steps": 0}}}]}, "trainer_jobs"),
        ("variables", {"trainer_interruption": {"souces": ["aws"]}}, "trainer_interruption"),
        ("inventory", {"all": {"childern": {}}}, "all"),
        (
            "inventory",
            {"all": {"children": {"gaudi": {"hosts": {"a": {"synapseai_relase": "1"}}}}}},
            "all.children.gaudi.hosts.a",
        ),
        ("inventory", {"gaudi": {"vars": {"firewall_enabled": "maybe"}}}, "gaudi.vars"),
        ("cost-inputs", {"offers": {"x": {"mfus": 1}}}, "offers.x"),
        ("cost-inputs", {"offers": {"x": {"mfu": 0.4}}}, "offers.x.mfu"),
        (
            "cost-inputs",
            {"offers": {"x": {"mfu": {"value": [1], "source": "a", "date": "2026-01-01"}}}},
            "offers.x.mfu",
        ),
        ("cost-inputs", {"offers": {"x": {"mfu": {"value": 1, "date": "2026-01-01"}}}}, "offers.x.mfu"),
        ("cost-inputs", {"job": {"devices": 0}}, "job.devices"),
    ],
)
def test_what_is_wrong_is_refused_where_it_stands(name: str, value: object, where: str) -> None:
    found = problems(name, value)
    assert found and found[0].split(": ")[0] == where, found


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("variables", {"mine": 1, "ansible_user": "x", "silence_for": "2h"}),
        ("variables", {"firewall_enabled": "yes", "prometheus_port": "{{ port }}", "trainer_config": "{{ shared }}"}),
        ("variables", {"trainer_config": {"train": {"max_steps": "{{ steps }}", "micro_batch_size": "auto"}}}),
        ("variables", {"trainer_command": ["train.py", "--steps", 5], "gaudi_serial": "10%"}),
        ("variables", None),
        (
            "inventory",
            {"gaudi": {"hosts": {"a": None, "b": {"gaudi_cluster_address": "10.0.0.1"}}}, "monitoring": None},
        ),
        ("trainer-config", {"model": {"lora": {"targets": "all-linear"}}}),
        ("trainer-config", {"train": {"micro_batch_size": "auto"}}),
    ],
)
def test_what_ansible_or_the_trainer_takes_is_accepted(name: str, value: object) -> None:
    assert problems(name, value) == []
