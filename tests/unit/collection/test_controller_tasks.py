"""What runs on the controller runs as the user, and what waits for a node gives up in the end."""

from __future__ import annotations

import configparser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted([*(ROOT / "playbooks").glob("*.yml"), *(ROOT / "roles").glob("*/tasks/*.yml")])
#: A host of the inventory, as the keyword's value may name it: there, the inventory's ansible_become holds.
HOSTS = {"{{ trainer_head }}", "{{ _trainer_here.submits }}"}


def on_the_controller(entries: list[dict[str, Any]] | None) -> Iterator[dict[str, Any]]:
    """Plays and tasks of a file that do not run on a host of the inventory."""
    for entry in entries or []:
        if entry.get("hosts") == "localhost" or entry.get("delegate_to", "{{ trainer_head }}") not in HOSTS:
            yield entry
        for inner in ("tasks", "pre_tasks", "post_tasks", "block", "rescue", "always"):
            yield from on_the_controller(entry.get(inner))


FOUND = [
    (path.relative_to(ROOT), entry) for path in FILES for entry in on_the_controller(yaml.safe_load(path.read_text()))
]


@pytest.mark.parametrize(("path", "entry"), FOUND, ids=[f"{path}: {entry['name']}" for path, entry in FOUND])
def test_nothing_on_the_controller_takes_the_inventorys_become(path: Path, entry: dict[str, Any]) -> None:
    """ansible_become of all hosts is localhost's too, and beats the keyword become, -b, and group_vars."""
    assert entry.get("vars", {}).get("ansible_become") is False
    assert "become" not in entry


def test_the_search_finds_them() -> None:
    names = {entry["name"] for _path, entry in FOUND}
    assert {"Build the trainer on the controller", "Write the report"} <= names


def test_a_node_that_dies_within_a_task_ends_it() -> None:
    """Within two minutes; who has the collection alone reads what to set."""
    config = configparser.ConfigParser()
    config.read(ROOT / "ansible.cfg")
    given = dict(word.split("=") for word in config["ssh_connection"]["ssh_args"].split() if "=" in word)
    assert int(given["ServerAliveInterval"]) * int(given["ServerAliveCountMax"]) <= 120
    keepalive = (
        f"ServerAliveInterval={given['ServerAliveInterval']} -o ServerAliveCountMax={given['ServerAliveCountMax']}"
    )
    assert keepalive in (ROOT / "docs/start/install.md").read_text()
