"""Variables that the documents name exist, with the values that they are given there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from .documents import ROOT, texts

ROLES = sorted(path.name for path in (ROOT / "roles").iterdir())
#: A variable of a role, and the value that it is given where one stands behind it.
VARIABLE = re.compile(rf"(?<![\w./-])((?:{'|'.join(ROLES)})_[a-z0-9_]+)(?![\w./(-])(?:(?:=|: )\"?([\w.-]+)\"?)?")
#: A variable or another name that no role owns; what a template reads is the reader's own.
OTHER = re.compile(r"(?<![\w./-])((?:gaudi|provision|doctor)_[a-z0-9_]+)(?![\w./*-])")
#: Names of optimum-habana, which docs/understand/optimum-habana.md is about.
FOREIGN = {"gaudi_config", "gaudi_config_name", "gaudi_fused_sdpa"}
BOOLEANS = ("true", "false")


def specification(role: str) -> dict[str, dict[str, Any]]:
    """The variables of a role, by their names."""
    entries = yaml.safe_load((ROOT / "roles" / role / "meta/argument_specs.yml").read_text())["argument_specs"]
    return {name: option for entry in entries.values() for name, option in entry["options"].items()}


def tags(value: Any) -> Iterator[str]:
    """All tags of a file of tasks."""
    if isinstance(value, dict):
        yield from value.get("tags", []) if isinstance(value.get("tags"), list) else []
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
        yield from tags(each)


SPECIFIED = {name: option for role in ROLES for name, option in specification(role).items()}
#: Other names that begin as a role's variables do: tags, modules, roles, groups, files of secrets, packages, a phase of
#: a step, and an option of other people's.
OTHERS = {
    "alertmanager_password",
    "data_collector_gaudi",
    "data_parallel_size",
    "data_wait",
    "grafana_password",
    "prometheus_password",
    "pytorch_lightning",
    "serving_password",
    "slurm_controller",
    "slurm_database_password",
    "slurm_munge_password",
    "watch_password",
    *(tag for path in (ROOT / "roles").glob("*/tasks/*.yml") for tag in tags(yaml.safe_load(path.read_text()))),
    *(path.stem for path in (ROOT / "plugins/modules").glob("*.py")),
    *ROLES,
}
PACKAGES = ("trainer/src", "benchmark-tool/src", "doctor/src", "migration/src", "watch/src", "deploy/src")
CODE = "\n".join(
    path.read_text(errors="replace")
    for folder in ("plugins", "roles", "playbooks", "terraform", "docs", *PACKAGES)
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in (".py", ".yml", ".j2", ".tf", ".json") and path.is_file()
)


def used(text: str) -> list[tuple[str, str]]:
    """(name, value) of each role's variable in a text; the value is empty where none is given."""
    found = [(name, value.rstrip(".")) for name, value in VARIABLE.findall(text)]
    return [(name, value) for name, value in found if name not in OTHERS or name in SPECIFIED]


def fault(name: str, value: str) -> str:
    """What is wrong with a variable and the value that it is given."""
    option = SPECIFIED.get(name)
    if option is None:
        return f"{name} is no variable of a role"
    allowed = [str(choice) for choice in option.get("choices", BOOLEANS if option["type"] == "bool" else ())]
    if value and allowed and value not in allowed:
        return f"{name} is {value}, not one of {', '.join(allowed)}"
    return ""


def test_variables_of_roles_exist_and_take_the_values_that_are_shown() -> None:
    given = [(where, *each) for where, text in texts().items() for each in used(text)]
    assert len({name for _where, name, _value in given}) > 60, "the test does not find what the documents name"
    assert len([value for *_rest, value in given if value]) > 10
    assert sorted({f"{where}: {fault(name, value)}" for where, name, value in given if fault(name, value)}) == []


@pytest.mark.parametrize(
    "text",
    [
        "set `tuning_reboot_alowed=true`",
        "tuning_kernel_command_line_state: presnt",
        "-e '{synapseai_accept_secure_boot: yess}'",
        "as trainer_state=ended",
        "| `fabric_wires` | ports |",
    ],
)
def test_a_variable_that_does_not_exist_is_found(text: str) -> None:
    assert any(fault(*each) for each in used(text))


def test_other_variables_and_names_of_the_project_occur_in_its_code() -> None:
    known = set(re.findall(r"\w+", CODE)) | FOREIGN
    missing = sorted(
        {
            f"{where}: {name}"
            for where, text in texts().items()
            for name in OTHER.findall(re.sub(r"{{.*?}}", "", text))
            if name not in known
        }
    )
    assert missing == []
