"""All roles have one shape, and all services run by the module that makes up for a restart that was missed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROLES = Path(__file__).resolve().parents[3] / "roles"
NAMES = sorted(path.name for path in ROLES.iterdir() if path.is_dir())
#: Have entry points alone, which other roles and playbooks import.
SHARED = {"monitoring_service"}
#: The units of the exporters, by role, and what each starts anew for: its program and what it reads at its start.
SERVICES = {
    "node_exporter": (
        "_node_exporter_here.service",
        {"/usr/bin/prometheus-node-exporter", "node_exporter_arguments_file"},
    ),
    "hpu_exporter": ("gaudi-hpu-exporter.service", {"/etc/systemd/system/gaudi-hpu-exporter.service"}),
}
_VERBS = ("ansible.builtin.systemd_service", "ansible.builtin.systemd", "ansible.builtin.service")


def tasks(role: str) -> Iterator[dict[str, Any]]:
    """All tasks of a role, those in blocks too."""

    def walk(entries: list[dict[str, Any]] | None) -> Iterator[dict[str, Any]]:
        for entry in entries or []:
            yield entry
            for inner in ("block", "rescue", "always"):
                yield from walk(entry.get(inner))

    for path in sorted((ROLES / role / "tasks").glob("*.yml")):
        yield from walk(yaml.safe_load(path.read_text()))


@pytest.mark.parametrize("role", SERVICES)
def test_a_service_runs_with_what_lies_on_disk(role: str) -> None:
    """Who restarts it by a handler, or only where this very run changed something, forgets it after a broken run."""
    unit, files = SERVICES[role]
    given = [task for task in tasks(role) if "gaudi3.scale.gaudi_service" in task and not task.get("check_mode")]
    # A removal starts what was there before the collection came, with its own files.
    given = [task for task in given if "restored" not in str(task)]
    found = [task["gaudi3.scale.gaudi_service"] for task in given]
    (running,) = (each for each in found if each.get("state", "running") == "running")
    assert unit in running["name"]
    read = str(running.get("restart_files", "")) + str(running.get("files", ""))
    read += (ROLES / role / "vars/main.yml").read_text()  # where the lists may stand
    assert [file for file in files if file not in read] == []
    assert not any(verb in task for task in tasks(role) for verb in _VERBS)
    assert not (ROLES / role / "handlers").exists()


@pytest.mark.parametrize("role", NAMES)
def test_a_role_installs_packages_by_the_collections_own_task(role: str) -> None:
    """Ansible's own are refused in a dry run where apt's lists are old, or its bindings are not there."""
    own = ("ansible.builtin.package", "ansible.builtin.apt")
    given = [task[name] for task in tasks(role) for name in own if name in task]
    assert all(each.get("state") == "absent" for each in given)


@pytest.mark.parametrize("role", NAMES)
def test_a_role_has_the_common_shape(role: str) -> None:
    there = {path.stem for path in (ROLES / role / "tasks").glob("*.yml")}
    assert role in SHARED or "main" in there
    judges = ("gaudi3.scale.gaudi_host_plan", "gaudi3.scale.gaudi_monitoring")
    judged = any(judge in task for task in tasks(role) for judge in judges)
    # These two have one module each, which refuses what it cannot set before it sets anything.
    assert "preflight" in there or judged or role in ("tuning", "fabric", *SHARED), (
        "nothing is judged before the first change"
    )
    assert (ROLES / role / "README.md").read_text().startswith(f"# Role `gaudi3.scale.{role}`\n")
    described = yaml.safe_load((ROLES / role / "meta/argument_specs.yml").read_text())["argument_specs"]
    assert all(each.get("short_description") for each in described.values())
    assert [name for name in described if name not in there] == [], "no such entry point"
    if role not in SHARED:
        for task in yaml.safe_load((ROLES / role / "tasks/main.yml").read_text()):
            assert any(tag == role for tag in task["tags"]), f"{task['name']}: --tags {role} leaves it out"


#: One is nothing but what a head says.
HEADED = [path for path in sorted(ROLES.glob("*/templates/*.j2")) if path.name != "managed.j2"]


@pytest.mark.parametrize("path", HEADED, ids=[str(path.relative_to(ROLES)) for path in HEADED])
def test_a_written_file_says_who_wrote_it(path: Path) -> None:
    written = [line for line in path.read_text().splitlines() if not line.startswith(("#jinja2:", "{%"))]
    assert re.match(r"\{\{ ansible_managed \| comment|# \[\[ ansible_managed \]\]$", written[0])
