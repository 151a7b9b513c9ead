"""JSON schemas of the files that people write, made from what reads these files.

`files` has all of them as the site publishes them. Those that lie beside example files are committed, so that an editor
finds them without a network: `python -m website.reference` writes them, and a test compares them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from website.reference.specs import roles, variables
from website.reference.text import ROOT, plain
from website.reference.variables import of_playbooks

SUFFIX = ".schema.json"
#: Where those lie that travel with example files; new_inventory copies the first folder.
TRAVEL = {
    "variables": ROOT / "examples/inventory/.schemas",
    "inventory": ROOT / "examples/inventory/.schemas",
    "cost-inputs": ROOT / "examples/cost/.schemas",
}
#: A value that Ansible makes when it runs.
TEMPLATE = {"type": "string", "pattern": "\\{[{%]"}
#: Words that Ansible takes for true and false besides YAML's own; an editor that reads YAML 1.2 takes them for text.
WORDS = ["yes", "no", "on", "off", "Yes", "No", "True", "False"]
NULL = {"type": "null"}
REF = "$ref"
#: What Ansible takes for each of its types, besides templates and null; nothing for what takes anything.
KINDS: dict[str, list[dict[str, Any]]] = {
    "text": [{"type": ["string", "number", "boolean"]}],
    "path": [{"type": "string"}],
    "number": [{"type": "integer"}, {"type": "string", "pattern": "^[0-9]+$"}],
    "float": [{"type": "number"}, {"type": "string", "pattern": "^[0-9.]+$"}],
    "bool": [{"type": "boolean"}, {"enum": WORDS}],
    "texts": [{"type": "array", "items": {"type": ["string", "number", "boolean"]}}, {"type": "string"}],
    "mapping": [{"type": "object"}],
}
NAMES = {"str": "text", "int": "number", "dict": "mapping"}
CONFIG = "TrainerConfig"
#: Variables, and keys of a job of the list, that hold a configuration of the trainer or a section of it.
OF_TRAINER = {
    **dict.fromkeys(("trainer_config", "config", "trainer_node_config", "node_config"), CONFIG),
    **dict.fromkeys(("trainer_interruption", "interruption"), "InterruptionConfig"),
}


@cache
def trainer_config() -> dict[str, Any]:
    """Of a job file of `gaudi3-train`."""
    from gaudi3_scale.config.json_schema import job_schema

    return job_schema()


@cache
def cost_inputs() -> dict[str, Any]:
    """Of the inputs of `gaudi3-train cost`."""
    from gaudi3_scale.config.json_schema import schema_of
    from gaudi3_scale.cost.inputs import Inputs

    found = schema_of(Inputs, "Inputs of gaudi3-train cost")
    value = found["$defs"]["Given"]["properties"]["value"]
    pair = {"type": "array", "items": {"type": "number", "minimum": 0}, "minItems": 2, "maxItems": 2}
    one = {"type": "number", "minimum": 0}
    found["$defs"]["Given"]["properties"]["value"] = {"description": value["description"], "anyOf": [one, pair]}
    return found


@cache
def teams() -> dict[str, Any]:
    """Of the file of `gaudi3-deploy teams`."""
    from gaudi3_deploy.collection._teams.schema import schema

    return schema()


@cache
def variables_file() -> dict[str, Any]:
    """Of variables: files in group_vars and host_vars, and those for -e @FILE, such as a job of gaudi3-deploy run."""
    from gaudi3_scale.config.json_schema import DRAFT

    config = trainer_config()
    below: dict[str, Any] = {name: {"anyOf": [*kinds, TEMPLATE, NULL]} for name, kinds in KINDS.items()}
    below |= {"template": TEMPLATE, **{name: templated(each) for name, each in config["$defs"].items()}}
    below[CONFIG] = templated({key: config[key] for key in ("properties", "additionalProperties", "type")})
    properties = {name: of_option(option, name) for name, option in variables().items()}
    for name, (kind, what) in of_playbooks().items():
        properties[name] = of_option({"type": kind.removesuffix(" of str"), "description": what}, name)
    return {
        "$schema": DRAFT,
        "title": "Variables of the collection gaudi3.scale",
        "description": "A name that begins as the collection's do has to be one of them; all other names are yours.",
        "type": ["object", "null"],
        "patternProperties": {f"^(?!(?:{'|'.join(prefixes())})_)": True},
        "properties": dict(sorted(properties.items())),
        "additionalProperties": False,
        "$defs": below,
    }


@cache
def inventory() -> dict[str, Any]:
    """Of an inventory in YAML; variables are those of the schema beside it."""
    of_variables = {"anyOf": [{"type": "null"}, {"$ref": f"variables{SUFFIX}"}]}
    groups = {"type": ["object", "null"], "additionalProperties": {"$ref": "#/$defs/group"}}
    return {
        "$schema": variables_file()["$schema"],
        "title": "Inventory of the collection gaudi3.scale",
        "description": "Groups of hosts. The collection works on gaudi, gaudi_head and monitoring.",
        **groups,
        "$defs": {
            "group": {
                "type": ["object", "null"],
                "properties": {
                    "hosts": {
                        "description": "names of hosts, each with variables of its own",
                        "type": ["object", "null"],
                        "additionalProperties": of_variables,
                    },
                    "vars": {"description": "variables of all hosts of the group", **of_variables},
                    "children": {"description": "groups in this group", **groups},
                },
                "additionalProperties": False,
            }
        },
    }


def prefixes() -> list[str]:
    """What the names of the collection's variables begin with."""
    return sorted({role.name for role in roles()} | {name.partition("_")[0] for name in of_playbooks()})


def of_option(option: Mapping[str, Any], name: str = "") -> dict[str, Any]:
    """The schema of a variable, of its specification."""
    found: dict[str, Any] = {"description": plain(option["description"])}
    if "default" in option:
        found["default"] = option["default"]
    kind = str(option.get("type", "str"))
    if kind == "raw":
        return found
    if "choices" in option and kind != "list":
        return found | {"anyOf": [{"enum": list(option["choices"])}, to("template"), NULL]}
    if kind == "dict" and (option.get("options") or name in OF_TRAINER):
        return found | {"anyOf": [of_dict(option.get("options"), name), to("template"), NULL]}
    if kind == "list" and option.get("elements") == "dict":
        items = {"anyOf": [of_dict(option.get("options"), ""), to("template")]}
        return found | {"anyOf": [{"type": "array", "items": items}, to("template"), NULL]}
    return found | to("texts" if kind == "list" else NAMES.get(kind, kind))


def to(name: str) -> dict[str, Any]:
    """A reference to a definition."""
    return {REF: f"#/$defs/{name}"}


def of_dict(options: Mapping[str, Mapping[str, Any]] | None, name: str) -> dict[str, Any]:
    """The schema of a mapping: the trainer's configuration, one with known keys, or any."""
    if name in OF_TRAINER:
        return to(OF_TRAINER[name])
    if not options:
        return {"type": "object"}
    needed = [key for key, each in options.items() if each.get("required")]
    return {
        "type": "object",
        "properties": {key: of_option(each, key) for key, each in options.items()},
        **({"required": needed} if needed else {}),
        "additionalProperties": False,
    }


def templated(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A section of the trainer's configuration in which each value may be a template."""
    fields = {}
    for name, field in schema["properties"].items():
        about = {key: field[key] for key in ("default", "description") if key in field}
        kind = {key: value for key, value in field.items() if key not in about}
        several = kind.get("anyOf", [kind])
        fields[name] = {**about, "anyOf": [*several, to("template")]} if kind else about
    return {**schema, "properties": fields}


def every() -> dict[str, dict[str, Any]]:
    """All schemas by name."""
    return {
        "trainer-config": trainer_config(),
        "variables": variables_file(),
        "inventory": inventory(),
        "cost-inputs": cost_inputs(),
        "teams": teams(),
    }


def text(schema: Mapping[str, Any]) -> str:
    """A schema as it is written."""
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def files() -> dict[str, str]:
    """All schemas by the names of their files."""
    return {f"{name}{SUFFIX}": text(schema) for name, schema in every().items()}


def committed() -> dict[Path, str]:
    """The schemas that lie beside example files, as they have to be."""
    found = files()
    return {folder / f"{name}{SUFFIX}": found[f"{name}{SUFFIX}"] for name, folder in TRAVEL.items()}


def write() -> None:
    """Write those that are committed."""
    for path, content in committed().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
