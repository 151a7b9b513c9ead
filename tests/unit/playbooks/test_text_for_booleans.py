"""A boolean that comes as text, as `-e name=true` and INI inventories give it, means what the boolean means.

Ansible gives templates such a value as the text "true" or "false". Each is true in Python, and ansible-core 2.19 ends a
run whose conditional is a text. So every use of a boolean variable converts it (`| bool`), or hands it on whole to
what converts it: an option of a module or another variable.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml
from jinja2 import nodes

from .jinja import ROOT

# Regular expressions in texts of Jinja, for which Python has a warning.
pytestmark = pytest.mark.filterwarnings("ignore:invalid escape sequence")
#: Tests and filters that a text passes as its boolean does.
_CONVERTS = {"bool"}
_HARMLESS_TESTS = {"defined", "undefined", "none"}
_CONDITIONS = ("when", "changed_when", "failed_when", "until", "that")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _AnyName(dict[str, Any]):
    """Filters and tests of Ansible and of this collection, which are only parsed here."""

    def __contains__(self, _name: object) -> bool:
        return True

    def __missing__(self, _name: str) -> Any:
        return lambda value, *_arguments: value


def _parser() -> jinja2.Environment:
    made = jinja2.Environment(extensions=["jinja2.ext.do"], autoescape=False)
    made.filters, made.tests = _AnyName(made.filters), _AnyName(made.tests)
    return made


_PARSER = _parser()


@dataclass
class Source:
    """A text of Jinja in a file; ``condition`` is one that Ansible takes as an expression."""

    path: Path
    text: str
    condition: bool = False

    @functools.cached_property
    def tree(self) -> nodes.Template:
        """The same nodes each time, as they are told apart by what they are."""
        return _PARSER.parse("{{ " + self.text + " }}" if self.condition else self.text)


def _load(path: Path) -> Any:
    return yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)


def _texts(path: Path, value: Any, condition: bool = False) -> Iterator[Source]:
    """All texts below a value of a YAML file."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _texts(path, each, key in _CONDITIONS)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(path, each, condition)
    elif isinstance(value, str) and (condition or "{{" in value or "{%" in value):
        yield Source(path, value, condition)


def _yaml_files() -> list[Path]:
    patterns = (
        "playbooks/*.yml",
        "playbooks/tasks/*.yml",
        *(f"roles/*/{kind}/*.yml" for kind in ("tasks", "vars", "defaults", "handlers")),
    )
    return sorted(path for pattern in patterns for path in ROOT.glob(pattern))


@functools.cache
def sources() -> list[Source]:
    """All Jinja of the product."""
    found = [source for path in _yaml_files() for source in _texts(path, _load(path))]
    for path in sorted([*ROOT.glob("roles/*/templates/*.j2"), *ROOT.glob("playbooks/templates/*.j2")]):
        # The rules have braces of Prometheus, and Jinja between other signs.
        text = path.read_text(encoding="utf-8")
        if path.name.endswith(".rules.yml.j2"):
            text = text.replace("{{", "").replace("}}", "").replace("[[", "{{").replace("]]", "}}")
            text = text.replace("[%", "{%").replace("%]", "%}")
        found.append(Source(path, text))
    return found


def _whole(source: Source) -> nodes.Expr | None:
    """The expression that a text is, and nothing beside it."""
    body = source.tree.body
    if source.condition or len(body) != 1 or not isinstance(body[0], nodes.Output) or len(body[0].nodes) != 1:
        return None
    (only,) = body[0].nodes
    return None if isinstance(only, nodes.TemplateData) else only


def _handed_on(expression: nodes.Node) -> Iterator[nodes.Name]:
    """The names whose values an expression may be, as they are."""
    if isinstance(expression, nodes.Name):
        yield expression
    elif isinstance(expression, nodes.Filter) and expression.name in ("default", "d") and expression.node is not None:
        yield from _handed_on(expression.node)
        for each in expression.args:
            yield from _handed_on(each)
    elif isinstance(expression, nodes.CondExpr):
        yield from _handed_on(expression.expr1)
        if expression.expr2 is not None:
            yield from _handed_on(expression.expr2)


def _converted(node: nodes.Node, inside: bool = False) -> Iterator[nodes.Name]:
    """The names below a node that are converted, or of which only is asked whether they are there."""
    if isinstance(node, nodes.Name) and inside:
        yield node
    elif isinstance(node, nodes.Filter):
        own = node.name in _CONVERTS or (inside and node.name in ("default", "d"))
        if node.node is not None:
            yield from _converted(node.node, own)
        for each in [*node.args, *node.kwargs]:
            yield from _converted(each, own and isinstance(each, nodes.Name))
    elif isinstance(node, nodes.Test):
        yield from _converted(node.node, node.name in _HARMLESS_TESTS)
    else:
        for each in node.iter_child_nodes():
            yield from _converted(each)


def _variables() -> Iterator[tuple[str, Any]]:
    """Name and value of all variables that files of the product define."""
    for path in _yaml_files():
        value = _load(path)
        if path.parent.name in ("vars", "defaults"):
            yield from value.items()
        else:
            yield from _defined(value)


def _defined(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from (value.get("vars") or {}).items() if isinstance(value.get("vars"), dict) else ()
        for each in value.values():
            yield from _defined(each)
    elif isinstance(value, list):
        for each in value:
            yield from _defined(each)


@functools.cache
def booleans() -> set[str]:
    """The variables that are booleans: by a specification, by their default, or as one of them is handed on."""
    found = {
        name
        for path in ROOT.glob("roles/*/meta/argument_specs.yml")
        for entry in _load(path)["argument_specs"].values()
        for name, option in entry.get("options", {}).items()
        if option.get("type") == "bool"
    }
    defined = [(name, value) for name, value in _variables() if not name.startswith("ansible_")]
    found |= {name for name, value in defined if isinstance(value, bool) and not name.startswith("_")}
    for source in sources():
        for each in source.tree.find_all(nodes.Filter):
            literal = [arg for arg in each.args if isinstance(arg, nodes.Const) and isinstance(arg.value, bool)]
            if (
                each.name == "default"
                and literal[:1] == each.args[:1]
                and each.args
                and isinstance(each.node, nodes.Name)
            ):
                found |= {each.node.name} - {each.node.name if each.node.name.startswith("_") else ""}
    while True:  # until no variable hands one of them on
        more = {
            name
            for name, value in defined
            if isinstance(value, str) and (whole := _whole(Source(ROOT, value))) is not None
            if any(each.name in found for each in _handed_on(whole))
        }
        if more <= found:
            return found
        found |= more


def bare(source: Source, names: set[str]) -> list[str]:
    """The names of ``names`` that a text uses without converting them."""
    tree = source.tree
    fine = {id(each) for each in _converted(tree)}
    whole = _whole(source)
    fine |= {id(each) for each in _handed_on(whole)} if whole is not None else set()
    # In a sentence a text reads as its boolean does.
    if whole is None and not source.condition:
        for output in (each for each in tree.body if isinstance(each, nodes.Output)):
            fine |= {id(each) for each in output.nodes if isinstance(each, nodes.Name)}
    return sorted({each.name for each in tree.find_all(nodes.Name) if each.name in names and id(each) not in fine})


def test_no_boolean_is_used_as_it_came() -> None:
    wrong = [
        f"{source.path.relative_to(ROOT)}: {name} in {source.text.strip()[:100]}"
        for source in sources()
        for name in bare(source, booleans())
    ]
    assert wrong == []


def test_booleans_of_roles_and_playbooks_are_found() -> None:
    assert len(sources()) > 900 and len(booleans()) > 25
    assert {"firewall_enabled", "grafana_install", "trainer_tls", "gaudi_metrics_tls", "doctor_cards"} <= booleans()


@pytest.mark.parametrize(
    ("text", "condition", "found"),
    [
        ("on", True, ["on"]),
        ("not on", True, ["on"]),
        ("on | default(false)", True, ["on"]),
        ("on | default(false) | bool and x", True, []),
        ("on is defined", True, []),
        ("x and on and y", True, ["on"]),
        ("{{ on }}", False, []),
        ("{{ on | default(omit) }}", False, []),
        ("{{ on if x else omit }}", False, []),
        ("{{ x if on else y }}", False, ["on"]),
        ("{{ x | filter(on) }}", False, ["on"]),
        ("{{ {'key': on} }}", False, ["on"]),
        ("{{ on == true }}", False, ["on"]),
        ("it is {{ on }}.", False, []),
        ("{% if on %}x{% endif %}", False, ["on"]),
        ("{% if on | bool %}x{% endif %}", False, []),
        ("{{ [y, on | bool] | select }}", False, []),
    ],
)
def test_a_use_that_does_not_convert_is_found(text: str, condition: bool, found: list[str]) -> None:
    assert bare(Source(ROOT, text, condition), {"on"}) == found
