"""Terraform configurations as data, and what can be checked of them without a provider."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hcl2

META = {"count", "for_each", "provider", "lifecycle", "depends_on", "connection", "provisioner", "timeouts"}


def bare(text: Any) -> str:
    """A label or a name without its quotes."""
    return str(text).strip('"')


@dataclass(frozen=True)
class Resource:
    """A resource or a data source."""

    kind: str
    type: str
    name: str
    body: dict[str, Any]

    @property
    def address(self) -> str:
        """As references name it."""
        return ("data." if self.kind == "data" else "") + f"{self.type}.{self.name}"


class Module:
    """The .tf files of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.text = "\n".join(path.read_text() for path in sorted(folder.glob("*.tf")))
        self.parsed = [hcl2.loads(path.read_text()) for path in sorted(folder.glob("*.tf"))]

    def blocks(self, kind: str) -> Iterator[dict[str, Any]]:
        """All blocks of a kind."""
        for parsed in self.parsed:
            yield from parsed.get(kind, [])

    def named(self, kind: str) -> dict[str, dict[str, Any]]:
        """Blocks with one label: variables, outputs, modules, checks."""
        return {bare(name): body for block in self.blocks(kind) for name, body in block.items() if name[:2] != "__"}

    def resources(self) -> Iterator[Resource]:
        """Resources and data sources."""
        for kind in ("resource", "data"):
            for block in self.blocks(kind):
                for label, names in block.items():
                    for name, body in names.items() if not label.startswith("__") else ():
                        if not name.startswith("__"):
                            yield Resource(kind, bare(label), bare(name), body)

    def providers(self) -> set[str]:
        """Sources of the providers that it asks for."""
        return set(re.findall(r'^      source\s+= "([\w./-]+)"', self.text, re.MULTILINE))


def is_block(value: Any) -> bool:
    """Whether python-hcl2 read a block there, and not a list."""
    return (
        isinstance(value, list) and bool(value) and isinstance(value[0], dict) and "__is_block__" in map(bare, value[0])
    )


def check_arguments(where: str, body: dict[str, Any], schema: dict[str, Any], top: bool = True) -> Iterator[str]:
    """What is unknown, missing, or a block where an argument is wanted."""
    have = set()
    for raw, value in body.items():
        name = bare(raw)
        if name.startswith("__"):
            continue
        if name == "dynamic":
            for block in value:
                for label, inner in block.items():
                    if label.startswith("__"):
                        continue
                    have.add(bare(label))
                    yield from check_block(where, bare(label), inner["content"], schema)
            continue
        have.add(name)
        if top and name in META:
            continue
        if is_block(value):
            yield from check_block(where, name, value, schema)
        elif name not in schema:
            yield f"{where}: unknown argument {name}"
    for name, told in schema.items():
        if told["required"] and name not in have:
            yield f"{where}: {name} is required and missing"


def check_block(where: str, name: str, blocks: Any, schema: dict[str, Any]) -> Iterator[str]:
    """The same of a block inside."""
    if name not in schema:
        yield f"{where}: unknown block {name}"
    elif "block" not in schema[name]:
        yield f"{where}: {name} is an argument, not a block"
    else:
        for each in blocks if isinstance(blocks, list) else [blocks]:
            yield from check_arguments(f"{where}.{name}", each, schema[name]["block"], top=False)


def check_schema(module: Module, schema: dict[str, Any]) -> tuple[int, list[str]]:
    """How many blocks were held against a provider's schema, and what is wrong with them."""
    count, problems = 0, []
    for each in module.resources():
        if not each.type.startswith(schema["provider"] + "_"):
            continue
        count += 1
        known = schema[each.kind].get(each.type)
        if known is None:
            problems.append(f"{each.address}: unknown {each.kind} type")
            continue
        problems += check_arguments(each.address, each.body, known["arguments"])
    return count, problems


def check_references(module: Module, schema: dict[str, Any] | None = None) -> list[str]:
    """References that nothing answers: to variables, locals, modules, resources, and attributes that are not there."""
    text = re.sub(r"^\s*#.*$", "", module.text, flags=re.MULTILINE)
    text = re.sub(r'(?:description|error_message)\s+= "(?:[^"\\]|\\.)*"', "", text)
    declared = {each.address: each for each in module.resources()}
    local = {bare(name) for block in module.blocks("locals") for name in block}
    problems = []
    for kind, names in (
        ("var", set(module.named("variable"))),
        ("local", local),
        ("module", set(module.named("module"))),
    ):
        used = set(re.findall(rf"(?<![\w.]){kind}\.(\w+)", text))
        problems += [f"{kind}.{name} is not declared" for name in sorted(used - names)]
    providers = "|".join(sorted({each.type.partition("_")[0] for each in declared.values()} - {"terraform"})) or "none"
    pattern = rf"(?<![\w.\"/])((?:data\.)?(?:{providers})_\w+\.\w+)(?:\[[^\]]*\])?(?:\.(\w+))?"
    for address, attribute in set(re.findall(pattern, text)):
        if address not in declared:
            problems.append(f"{address} is not declared")
        elif schema and attribute:
            known = schema[declared[address].kind].get(declared[address].type)
            if known and attribute not in known["attributes"]:
                problems.append(f"{address} has no attribute {attribute}")
    return sorted(problems)


def load_schema(path: Path) -> dict[str, Any]:
    """A schema from tests/terraform/schemas, or one of those that the stand-in for a provider serves."""
    schema: dict[str, Any] = json.loads(path.read_text())
    for kind in ("resource", "data"):
        schema[kind] = {name: each if "arguments" in each else of_facts(each) for name, each in schema[kind].items()}
    return schema


def of_facts(entry: dict[str, Any]) -> dict[str, Any]:
    """What a type takes and has, out of all facts that a provider's source has of it."""

    def taken(attributes: dict[str, Any]) -> dict[str, Any]:
        settable = {name: each for name, each in attributes.items() if each.get("required") or each.get("optional")}
        return {
            name: {
                "required": bool(each.get("required")),
                **({"block": taken(each["block"])} if "block" in each else {}),
            }
            for name, each in settable.items()
        }

    timeouts = {"timeouts": {"required": False, "block": {}}} if "timeouts" in entry else {}
    return {"arguments": {**taken(entry["attributes"]), **timeouts}, "attributes": sorted({*entry["attributes"], "id"})}
