"""A request that cannot be met, refused before Terraform is started and before anything is written.

Each sentence says what was given, what is allowed and what to do. What only the cloud can know is left to Terraform.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from gaudi3_deploy import declared, estimate, given_file, tree, yaml_file
from gaudi3_deploy.declared import Type, Variable
from gaudi3_deploy.errors import UsageError
from gaudi3_deploy.messages import meant, reason, shown
from gaudi3_deploy.record import Deployment

PREFIX = "TF_VAR_"
OPTIONS = {"cluster_size": "--size", "instance_type": "--type", "ssh_public_key": "--ssh-key"}
#: The rules of a machine's fields, as the module of machines that are there has them.
PATTERN = re.compile(r'^\s+(\w+)\s*= "(\^.*\$)"$', re.MULTILINE)
FIELDS = {
    "name": "lower-case letters, digits, dots and dashes",
    "port": "a number from 1 to 65535",
    "user": "a user of Linux, such as ubuntu",
    "zone": "letters, digits, dots, dashes and underscores",
    "jump_host": "user@host or user@host:port",
    "host_key": "a type and a key, such as ssh-ed25519 AAAA...",
}


def refuse(deployment: Deployment, folder: Path, named: Sequence[str] = (), offered: bool = True) -> None:
    """Raise UsageError for the first thing that is wrong with what a deployment asks for.

    ``folder`` is the Terraform tree, ``named`` the variables that were given now. Without ``offered`` a type passes
    that its cloud does not offer any more, or that has no Gaudi.
    """
    known = declared.variables(folder / deployment.cloud)
    if not known:
        raise UsageError(
            f"There are no Terraform files in {folder / deployment.cloud}: give the folder that holds aws/, ibm/, ... "
            "with --terraform-dir."
        )
    for sentence in _wrong(Asked(deployment, folder, known), named, offered):
        raise UsageError(f"{sentence}." if sentence[-1] not in ".?" else sentence)


#: What a check of the type, of the size or of the machines has to know.
TYPE = {"instance_type", "extra_instance_types", "accept_other_accelerators", "accept_withdrawn_type", "region"}
SIZE = {"cluster_size", "instance_type", "extra_instance_types"}
HOSTS = {"hosts", "hosts_file", "monitor_host"}


class Asked:
    """What is asked for, by options, files and TF_VAR_NAME.

    ``elsewhere`` are variables whose values are in Terraform's own language: in a file of the root module that it reads
    by itself, or in TF_VAR_NAME where they are no text, number or switch. What depends on these is left to Terraform.
    """

    def __init__(self, deployment: Deployment, folder: Path, known: Mapping[str, Variable]) -> None:
        self.cloud, self.folder, self.known = deployment.cloud, folder, known
        self.variables = deployment.variables
        texts = {key.removeprefix(PREFIX): value for key, value in deployment.environment.items()}
        simple = ("string", "number", "bool")
        told = {name: text for name, text in texts.items() if name in known and known[name].type.kind in simple}
        self.simple = {**told, **self.variables}
        folders = (folder / deployment.cloud, deployment.directory.parent / ".terraform" / deployment.cloud)
        self.elsewhere = {*(each for root in folders for each in _in_files(root)), *texts} - {*told, *self.variables}
        self.names = {*self.variables, *texts, *self.elsewhere}

    def true(self, name: str) -> bool:
        """Whether a switch is on."""
        return str(self.simple.get(name)).lower() in ("true", "1")


def _wrong(asked: Asked, named: Sequence[str], offered: bool) -> Iterator[str]:
    for name in named:
        if name not in asked.known:
            yield f"The variable {name!r} is not one of {asked.cloud}{meant(name, asked.known)}"
    for name, value in asked.variables.items():
        if name in asked.known:
            yield from declared.wrong(value, asked.known[name].type, name)
    for name, variable in asked.known.items():
        if variable.required and name not in asked.names and name not in ("name", "ssh_public_key"):
            option = OPTIONS.get(name, f"--var {name}=...")
            yield f"{name} is not given, and {asked.cloud} needs it: give it with {option}"
    catalogue = _types(asked)
    if "instance_type" in asked.known and not asked.elsewhere & TYPE:
        yield from _wrong_type(asked, catalogue, offered)
    if "cluster_size" in asked.known and not asked.elsewhere & SIZE:
        yield from _wrong_size(asked, catalogue)
    if "hosts" in asked.known and not asked.elsewhere & HOSTS:
        yield from _wrong_hosts(asked, catalogue)


def _types(asked: Asked) -> dict[str, Any]:
    """The catalogue's types, and those that were described."""
    own = asked.variables.get("extra_instance_types") or {}
    return {**estimate.read_types(asked.folder / tree.CATALOGUE), **own}


def _wrong_type(asked: Asked, catalogue: Mapping[str, Any], offered: bool) -> Iterator[str]:
    name = str(asked.simple.get("instance_type"))
    here = [
        each
        for each, about in catalogue.items()
        if about["cloud"] == asked.cloud and about.get("gaudi_generation") and not about.get("withdrawn")
    ]
    use = f"use {' or '.join(here)}" if here else f"use --cloud ibm, as {asked.cloud} is not known to offer Gaudi"
    about = catalogue.get(name)
    if about is None:
        own = [each for each, one in catalogue.items() if one["cloud"] == asked.cloud]
        near = meant(name, own)
        what = f"instance_type is {name!r}, which the catalogue does not have"
        yield what + (near if "did you mean" in near else f": {use}, or describe yours in extra_instance_types")
        return
    if not offered:
        return
    if about.get("refused"):
        yield str(about["refused"])
    if about["cloud"] != asked.cloud:
        yield f"instance_type is {name!r}, which is a type of {about['cloud']}, not of {asked.cloud}: {use}"
    if not about.get("gaudi_generation") and not asked.true("accept_other_accelerators"):
        yield (
            f"instance_type is {name!r}, which has no Gaudi but {about['accelerator']}: set "
            f"accept_other_accelerators=true if you mean that, or {use}"
        )
    gone = about.get("withdrawn")
    if gone and not asked.true("accept_withdrawn_type"):
        since = gone["since"] if isinstance(gone, dict) else gone
        yield (
            f"instance_type is {name!r}, which {asked.cloud} has not offered since {since}: {use}, or set "
            "accept_withdrawn_type=true for a reservation that still holds it"
        )
    region, regions = asked.simple.get("region"), about.get("regions") or []
    if region and regions and region not in regions:
        yield (
            f"region is {region!r}, where {name} is not known to be offered: use {', '.join(regions)}, or add the "
            "region by describing the type in extra_instance_types"
        )


def _wrong_size(asked: Asked, catalogue: Mapping[str, Any]) -> Iterator[str]:
    given = asked.simple.get("cluster_size", "")
    size = float(given) if declared.is_number(given) else math.nan
    if not size >= 1 or size != int(size):
        yield f"cluster_size is {given}, but counts accelerator cards: give a whole number from 1 on"
        return
    kind = str(asked.simple.get("instance_type"))
    cards = int(catalogue.get(kind, {}).get("cards") or 0)
    if cards and int(size) % cards:
        yield (
            f"cluster_size is {int(size)}, but a {kind} has {cards} cards: give a multiple of {cards}, such as "
            f"{cards * math.ceil(size / cards)}"
        )


def _wrong_hosts(asked: Asked, catalogue: Mapping[str, Any]) -> Iterator[str]:
    """The machines of `onprem`, which are given as a list or in a file."""
    listed, file = asked.variables.get("hosts") or [], str(asked.simple.get("hosts_file") or "")
    if listed and file:
        yield "hosts and hosts_file are both given: leave one of them out"
    machine = asked.known["hosts"].type.of or Type("any")
    monitor = asked.variables.get("monitor_host")
    if file:
        columns = [*machine.keys, "role"]
        rows = _rows(asked.folder / asked.cloud / file)
        if isinstance(rows, str):
            yield f"hosts_file is {file!r}, which {rows}: give the absolute path of a YAML or CSV file with machines"
            return
        for index, row in enumerate(rows):
            for key in set(row) - set(columns):
                near = meant(str(key), columns)
                yield f"Machine {index + 1} of {file} has the key {shown(key)}, which is not known{near}"
            for key in ("name", "address"):
                if not row.get(key):
                    yield f"Machine {index + 1} of {file} lacks {key}: give it"
        monitors = [row for row in rows if row.get("role") == "monitor"] + ([monitor] if monitor else [])
        if len(monitors) > 1:
            yield f"{file} has a machine with role = monitor beside another one: give one monitoring machine"
        listed, monitor = [row for row in rows if row.get("role") != "monitor"], monitors[0] if monitors else None
    yield from _wrong_fields(asked, [*listed, *([monitor] if monitor else [])])
    names = [str(each["name"]) for each in listed]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        yield f"hosts has {', '.join(twice)} more than once: give each machine a name of its own"
    kind, size = str(asked.simple.get("instance_type")), asked.simple.get("cluster_size", "")
    cards = int(catalogue.get(kind, {}).get("cards") or 0)
    known = cards and declared.is_number(size) and not asked.elsewhere & SIZE
    needed = int(float(size)) // cards if known else 0
    if len(listed) < needed:
        yield (
            f"hosts has {len(listed)} machines, but cluster_size = {size} needs {needed} of type {kind}: add machines "
            "or ask for fewer cards"
        )


def _wrong_fields(asked: Asked, machines: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    module = asked.folder / "modules" / asked.cloud / "main.tf"
    patterns = dict(PATTERN.findall(module.read_text())) if module.is_file() else {}
    for each in machines:
        for field, pattern in patterns.items():
            value = each.get(field)
            if value not in (None, "") and not re.match(pattern, str(value).strip()):
                allowed = FIELDS.get(field, "an address or a host name")
                yield f"{field} of machine {shown(each.get('name'))} is {shown(value)}: give {allowed}"


def _in_files(root: Path) -> Iterator[str]:
    """Names in the files of values that Terraform reads by itself in a root module."""
    for path in [root / "terraform.tfvars", root / "terraform.tfvars.json", *sorted(root.glob("*.auto.tfvars*"))]:
        if path.is_file():
            text = path.read_text(errors="replace")
            yield from (one[1] for one in re.finditer(r'(?:^|[{,])\s*"?(\w+)"?\s*[=:]', text, re.MULTILINE))


def _rows(path: Path) -> list[dict[str, Any]] | str:
    """The machines of a file, without empty fields; or what is wrong with it."""
    try:
        text = given_file.read_text(path)
        found = list(csv.DictReader(text.splitlines())) if path.suffix.lower() == ".csv" else yaml_file.read(text)
    except (OSError, ValueError, yaml.YAMLError, csv.Error) as error:
        return f"cannot be read ({reason(error)})"
    found = found.get("hosts") if isinstance(found, dict) else found
    if not isinstance(found, list) or not found or not all(isinstance(each, dict) for each in found):
        return "has no list of machines"
    return [{key: value for key, value in each.items() if value not in (None, "")} for each in found]
