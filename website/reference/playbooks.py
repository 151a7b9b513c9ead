"""The page of all playbooks: their own words, the hosts they work on, and the variables they read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from website.reference.text import ROOT, code, document, prose, table
from website.reference.variables import of_playbooks

TITLE = "Playbooks"
FOLDER = ROOT / "playbooks"
PREFIX = "gaudi3.scale"


@dataclass(frozen=True)
class Playbook:
    """A playbook, with what its head says: sentences, and commands to type."""

    name: str
    what: str
    examples: str
    hosts: tuple[str, ...]
    roles: tuple[str, ...]
    variables: tuple[str, ...]


def page() -> str:
    """The page."""
    every = list(playbooks())
    phases = {each["import_playbook"]: each for each in site()}
    parts = [
        f"# {TITLE}",
        f"Every playbook of the collection, for whoever runs one: `ansible-playbook -i mine {PREFIX}.NAME`. What "
        "stands here is each playbook's own head, its hosts and the variables that it reads besides those of its "
        "roles.",
        "## Phases of site",
        f"`{PREFIX}.site` runs these in this order. Each has a tag of its name and runs alone.",
        table(
            ("phase", "what", "tags"),
            [
                (
                    f"[{name}](#{name.replace('_', '-')})",
                    prose(each["name"]),
                    ", ".join(code(tag) for tag in each["tags"]),
                )
                for name, each in phases.items()
            ],
        ),
    ]
    for each in every:
        rows = [
            ("hosts", ", ".join(code(name) for name in each.hosts)),
            ("roles", ", ".join(f"[{name}](variables.md#role-{name.replace('_', '-')})" for name in each.roles)),
            ("variables", ", ".join(code(name) for name in each.variables)),
        ]
        what = each.what or (f"{phases[each.name]['name']}." if each.name in phases else "")
        parts += [
            f"## {each.name}",
            prose(what),
            f"<!-- not run: examples of the playbook's head -->\n```sh\n{each.examples}\n```" if each.examples else "",
            table(("its", "names"), [row for row in rows if row[1]]),
        ]
    parts += ["## Next", "- [Variables of the inventory](variables.md)\n- [First cluster](../start/first-cluster.md)"]
    return document(*parts)


def site() -> list[dict[str, Any]]:
    """The phases of site: name, tags, playbook."""
    plays = yaml.safe_load((FOLDER / "site.yml").read_text(encoding="utf-8"))
    return [
        {
            "name": each["name"],
            "tags": each["tags"],
            "import_playbook": Path(each["ansible.builtin.import_playbook"]).stem,
        }
        for each in plays
    ]


def playbooks() -> Iterator[Playbook]:
    """Those that people run; parts of others, and checks that others begin with, are none."""
    for path in sorted(FOLDER.glob("*.yml")):
        if not path.stem.startswith("check_"):
            yield of(path)


def of(path: Path) -> Playbook:
    """One playbook."""
    text = path.read_text(encoding="utf-8")
    sentences, commands = head(text)
    plays = yaml.safe_load(text)
    hosts = [str(each["hosts"]) for each in plays if "hosts" in each]
    hosts += [str(each["vars"]["phase_hosts"]) for each in plays if "phase_hosts" in each.get("vars", {})]
    named = {group for each in hosts for group in re.split(r"[:,]", each) if re.fullmatch("[a-z_]+", group)}
    roles = {name for name in re.findall(r"name: gaudi3\.scale\.(\w+)", text) if (ROOT / "roles" / name).is_dir()}
    used = [name for name in of_playbooks() if re.search(rf"\b{name}\b", text)]
    return Playbook(path.stem, sentences, commands, tuple(sorted(named)), tuple(sorted(roles)), tuple(used))


def head(text: str) -> tuple[str, str]:
    """The sentences and the commands of the comment that a playbook begins with.

    >>> head("---\\n# Heals nodes:\\n#   ansible-playbook -i mine x     does it\\n# And more.\\n- hosts: all\\n")
    ('Heals nodes. And more.', 'ansible-playbook -i mine x     # does it')
    """
    lines = []
    for line in text.splitlines():
        if line.startswith("#"):
            lines.append(line[1:])
        elif line != "---":
            break
    for at, line in enumerate(lines[:-1]):
        if line.endswith(":") and lines[at + 1].startswith("   "):
            lines[at] = f"{line[:-1]}."
    sentences = " ".join(line.strip() for line in lines if not line.startswith("   "))
    commands = [re.sub(r"(\S)( {3,})(?=[a-z])", r"\1\2# ", line.strip()) for line in lines if line.startswith("   ")]
    inline = re.search(r": (ansible-playbook .*)$", sentences)
    if inline:
        sentences, commands = sentences[: inline.start()] + ".", [inline[1]]
    return sentences, "\n".join(commands)
