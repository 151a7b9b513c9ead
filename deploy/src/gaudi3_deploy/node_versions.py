"""Versions of nodes: as given, of a file, or of the nodes of an inventory, which Ansible asks."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from gaudi3_deploy import given_file, yaml_file
from gaudi3_deploy.collection._printable import printable
from gaudi3_deploy.collection._refusal import Refusal
from gaudi3_deploy.collection._release.node import Node
from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.messages import reason

#: What a single node is called whose versions were given.
GIVEN = "the node"
MODULE = "gaudi3.scale.gaudi_release_info"
#: How ansible's own output begins with a host's answer.
_ANSWER = re.compile(r"^(\S+) \| (\w+)!? => (?=\{)", re.M)


def pairs(given: Sequence[str], what: str) -> dict[str, str]:
    """NAME=VALUE by name. Raises UsageError for another word, and for a name twice."""
    found: dict[str, str] = {}
    for word in given:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise UsageError(f"{what} {word!r} is none: give NAME=VALUE, as torch=2.11.")
        if name in found:
            raise UsageError(f"{name} is given twice: give it once.")
        found[name] = value
    return found


def nodes(
    facts: Path | None, given: Sequence[str], inventory: Path | None, hosts: str, checkout: Path
) -> dict[str, Node]:
    """The nodes that are asked about, by name."""
    if inventory and (facts or given):
        raise UsageError("Versions are asked of an inventory or given, not both: leave --inventory or the others out.")
    if inventory:
        return {name: _node(answer, name) for name, answer in ask(inventory, hosts, checkout).items()}
    if not facts and not given:
        raise UsageError("No versions are given: give --inventory, --facts FILE or --fact NAME=VALUE.")
    read = _read(facts) if facts else {}
    return {GIVEN: _node({**read, **_given(given, read)}, "")}


def _node(facts: Mapping[str, Any], name: str) -> Node:
    try:
        return Node.of(facts)
    except Refusal as refusal:
        raise UsageError(f"{name}: {refusal}" if name else str(refusal)) from None


def _given(values: Sequence[str], read: Mapping[str, Any]) -> dict[str, Any]:
    """Facts by their words; ``packages.NAME=VERSION`` is one of the packages."""
    known = read.get("packages")
    packages: dict[str, str] = dict(known) if isinstance(known, Mapping) else {}
    found: dict[str, Any] = {}
    for name, value in pairs(values, "--fact").items():
        head, dot, package = name.partition(".")
        if head == "packages" and dot and package:
            packages[package] = value
        elif head == "built_for":
            found[head] = [each for each in value.split(",") if each]
        else:
            found[name] = value
    return {**found, **({"packages": packages} if packages else {})}


def _read(path: Path) -> dict[str, Any]:
    """A file with the facts, or with the answer of the module, in which they are."""
    try:
        found = yaml_file.read(given_file.read_text(path))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UsageError(
            f"The versions in {path} cannot be read ({reason(error)}): give a YAML or JSON file of facts, as "
            "`gaudi3-deploy versions check --json` writes them."
        ) from None
    if not isinstance(found, dict):
        raise UsageError(f"The versions in {path} are no facts by name: give such as driver: 1.23.0-2eae87a.")
    nodes_of = found.get("nodes")
    if isinstance(nodes_of, dict) and set(found) <= {"schema", "nodes"}:
        if len(nodes_of) != 1:
            raise UsageError(f"{path} has the versions of {len(nodes_of)} nodes: give a file of one, or --inventory.")
        found = next(iter(nodes_of.values()))
        found = found if isinstance(found, dict) else {}
    inner = found.get("versions")
    return dict(inner) if isinstance(inner, dict) else found


def ask(inventory: Path, hosts: str, checkout: Path) -> dict[str, dict[str, Any]]:
    """What each host answers. Raises DeployError where one does not."""
    executable = shutil.which("ansible")
    if executable is None:
        raise UsageError("The command 'ansible' is not on this machine: install ansible-core, 2.17 to 2.21.")
    if not inventory.exists():
        raise UsageError(f"There is no inventory {inventory}: give the folder or file that ansible-playbook -i takes.")
    settings = {
        "ANSIBLE_INVENTORY_UNPARSED_FAILED": "True",
        "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.minimal",
        "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_FORCE_COLOR": "0",
    }
    done = subprocess.run(
        [executable, "-i", str(inventory.resolve()), hosts, "--forks", "64", "-m", MODULE],
        env={**os.environ, **settings},
        cwd=checkout if (checkout / "galaxy.yml").is_file() else None,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    answers, silent = _answers(done.stdout)
    if silent:
        name, said = next(iter(silent.items()))
        more = f", and {len(silent) - 1} more do not" if len(silent) > 1 else ""
        raise DeployError(f"{name} does not tell its versions ({printable(said, 200).rstrip('.')}){more}.")
    if not answers:
        lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        said = printable(lines[-1].strip(), 200) if lines else f"exit code {done.returncode}"
        raise DeployError(f"No host of {hosts} in {inventory} tells its versions ({said.rstrip('.')}).")
    return answers


def _answers(text: str) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Versions by host, and reasons of those without."""
    answers: dict[str, dict[str, Any]] = {}
    silent: dict[str, str] = {}
    for match in _ANSWER.finditer(text):
        try:
            answer, _end = json.JSONDecoder().raw_decode(text, match.end())
        except ValueError:
            silent[match[1]] = "its answer is no JSON"
            continue
        if match[2] in ("SUCCESS", "CHANGED") and isinstance(answer.get("versions"), dict):
            answers[match[1]] = answer["versions"]
        else:
            silent[match[1]] = str(answer.get("msg", "no reason given"))
    return answers, silent
