"""A module that users are shown is theirs to call; every other one says that it is internal."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import yaml

from .documents import ROOT, pieces, texts

MODULES = {path.stem: path for path in sorted((ROOT / "plugins/modules").glob("*.py")) if path.stem != "__init__"}
#: How the first line of an internal module begins.
INTERNAL = "Internal to the collection: "
#: A module in a command of ansible's, or as the key of a task.
SHOWN = re.compile(r"-m gaudi3\.scale\.(\w+)|^(?:- )?gaudi3\.scale\.(\w+):(?: |$)")
OTHERS = ("CONTRIBUTING.md", "tests/", "benchmarks/", "simulator/")
"""Documents of those who work on the project, not with it."""


def users_texts() -> dict[str, str]:
    return {name: text for name, text in texts().items() if not name.startswith(OTHERS)}


def section(name: str, heading: str) -> str:
    """What stands below a heading of the second level."""
    return (ROOT / name).read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def shown(markdown: str) -> set[str]:
    """The modules in a document's examples."""
    code, spans = pieces(markdown)
    found = [match for piece in [*code, *spans] for match in SHOWN.finditer(piece)]
    return {match[1] or match[2] for match in found} & MODULES.keys()


def short_description(path: Path) -> str:
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "DOCUMENTATION":
            return str(yaml.safe_load(ast.literal_eval(node.value))["short_description"])
    raise AssertionError(f"{path.name} has no DOCUMENTATION")


#: The modules to call are those that the policy lists.
PUBLIC = set(re.findall(r"`(\w+)`", section("docs/develop/compatibility.md", "Modules")))


def test_the_policy_lists_modules_alone() -> None:
    assert PUBLIC and MODULES.keys() >= PUBLIC


def test_what_users_are_shown_is_in_the_list_of_modules() -> None:
    found = {module: name for name, text in users_texts().items() for module in shown(text)}
    assert len(found) >= 3, "the test does not find the examples"
    assert {module: name for module, name in found.items() if module not in PUBLIC} == {}


@pytest.mark.parametrize("name", MODULES)
def test_a_module_says_whether_it_is_internal(name: str) -> None:
    assert short_description(MODULES[name]).startswith(INTERNAL) is (name not in PUBLIC)


def callers(name: str) -> str:
    """The roles and playbooks that have a task of a module, and the module whose work on the controller asks for it."""
    paths = [path for folder in ("roles", "playbooks") for path in (ROOT / folder).rglob("*.yml")]
    calling = [path.relative_to(ROOT) for path in paths if re.search(rf"gaudi3\.scale\.{name}:", path.read_text())]
    roles = sorted({path.parts[1] for path in calling if path.parts[0] == "roles"})
    playbooks = sorted({path.name for path in calling if path.parts[0] == "playbooks"})
    said = f"role{'s' * (len(roles) > 1)} {', '.join(roles)}" if roles else ""
    planned = f'.module("{name}"' in (ROOT / "plugins/module_utils/_plan/host.py").read_text()
    served = f'called(self, "{name}"' in (ROOT / "plugins/action/gaudi_monitoring.py").read_text()
    elsewhere = not roles and not playbooks
    modules = ["gaudi_host_plan" if planned and elsewhere else "", "gaudi_monitoring" if served else ""]
    return "; ".join(filter(None, [said, ", ".join(playbooks), ", ".join(filter(None, modules))]))


def test_the_internal_modules_are_listed_with_what_calls_them() -> None:
    listed = dict(
        re.findall(r"^\| `(\w+)` \| (.*) \|$", section("docs/understand/architecture.md", "Internal modules"), re.M)
    )
    assert listed == {name: callers(name) for name in sorted(MODULES.keys() - PUBLIC)}
    assert all(listed.values()), "a module that nothing calls is not internal"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("    ansible all -m gaudi3.scale.gaudi_fence -a state=out", {"gaudi_fence"}),
        ("```yaml\n- gaudi3.scale.gaudi_ports:\n    state: up\n```", {"gaudi_ports"}),
        ("Call `ansible all -m gaudi3.scale.gaudi_reset`.", {"gaudi_reset"}),
        ("See `ansible-doc gaudi3.scale.gaudi_credentials`, and [`gaudi_ports`](x.py).", set()),
        ("    ansible-playbook gaudi3.scale.site", set()),
    ],
)
def test_an_example_is_found(text: str, found: set[str]) -> None:
    assert shown(text) == found
