"""Places where a node's answer meets the controller: each is known, and a new one has to be put down here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.gaudi3.scale.plugins.filter.printable import FilterModule

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted([*ROOT.glob("playbooks/**/*.yml"), *ROOT.glob("roles/*/tasks/**/*.yml")])
#: Modules that write, and the option that says where.
WRITERS = {
    "assemble": "dest", "copy": "dest", "template": "dest", "file": "path", "get_url": "dest", "unarchive": "dest",
    "fetch": "dest", "blockinfile": "path", "lineinfile": "path", "replace": "path", "gaudi_passport": "folder",
    "gaudi_healing": "path", "gaudi_file": "path", "gaudi_inventory": "path", "gaudi_support_bundle": "path",
    "gaudi_terraform": "project_path", "gaudi_upgrade": "folder", "gaudi_credentials": "directory",
    "gaudi_certificate_page": "folder",
}  # fmt: skip
#: Folders that go through the lookup state_dir, which refuses one in an inventory.
CHECKED = ("_doctor_folder", "_health_folder", "_heal_folder", "_certificate_folder", "_upgrade_folder")
#: What is written elsewhere, and why that is no matter of what nodes say.
OTHERS = {
    ("playbooks/new_inventory.yml", "file"): "writes a new inventory of the collection's own example",
    ("playbooks/new_inventory.yml", "copy"): "writes a new inventory of the collection's own example",
    ("playbooks/new_inventory.yml", "lineinfile"): "writes where Ansible finds collections in this run",
    ("playbooks/provision.yml", "file"): "writes an inventory, of Terraform's answer",
    ("playbooks/provision.yml", "copy"): "writes an inventory, of Terraform's answer",
    ("playbooks/provision.yml", "gaudi_terraform"): "writes Terraform's state, in its project",
}


def tasks(entries: Any, local: bool) -> Iterator[tuple[dict[str, Any], bool]]:
    """Every task, and whether it is the controller's."""
    for entry in entries or ():
        if not isinstance(entry, dict):
            continue
        here = local or entry.get("hosts") == "localhost" or entry.get("delegate_to") == "localhost"
        here = here or entry.get("connection") == "local" or "local_action" in entry
        yield entry, here
        for part in ("block", "rescue", "always", "tasks", "pre_tasks", "post_tasks", "handlers"):
            yield from tasks(entry.get(part), here)


def writes() -> list[tuple[str, str, str]]:
    """File, module and folder of every task that writes on the controller."""
    found = []
    for path in FILES:
        for task, here in tasks(yaml.safe_load(path.read_text()), False):
            for name, arguments in task.items():
                module = name.rpartition(".")[2]
                if here and module in WRITERS:
                    place = arguments.get(WRITERS[module], "") if isinstance(arguments, dict) else str(arguments)
                    found.append((str(path.relative_to(ROOT)), module, str(place)))
    return found


def test_nothing_that_nodes_say_is_written_into_an_inventory() -> None:
    left = set(OTHERS)
    for path, module, place in writes():
        if module == "gaudi_credentials":
            continue  # its action plugin refuses a folder in an inventory
        if module == "gaudi_healing":
            place = yaml.safe_load((ROOT / path).read_text())[0].get("module_defaults", {}).get(
                "gaudi3.scale.gaudi_healing", {}
            ).get("path", "{{ _heal_folder }}") if path == "playbooks/heal.yml" else "{{ _heal_folder }}"  # fmt: skip
        named = re.match(r"\{\{ (_\w+) \}\}", place)
        if named and named.group(1) in CHECKED:
            continue
        assert (path, module) in OTHERS, f"{path}: {module} writes to {place}: ask the lookup state_dir for the folder"
        left.discard((path, module))
    assert all(module in WRITERS for _path, module in left)
    assert len(writes()) >= 8
    for path, name in zip(("doctor", "health", "heal", "certificate", "upgrade"), CHECKED, strict=True):
        play = yaml.safe_load((ROOT / f"playbooks/{path}.yml").read_text())
        folders = [entry["vars"][name] for entry in play if name in entry.get("vars", {})]
        assert folders and all(folder.startswith("{{ lookup('gaudi3.scale.state_dir', ") for folder in folders)


def test_a_nodes_report_is_read_by_the_one_reader_alone() -> None:
    """No template takes a value out of an answer of gaudi_health_info; the filter health_report does."""
    used = re.compile(r"_(?:health|heal_seen|heal_tested)\b(?!_)\s*(?:\.(?!\w*drains\b\s*$)\w+|\[)")
    for path in [*ROOT.glob("playbooks/*.yml"), *ROOT.glob("playbooks/tasks/*.yml")]:
        text = path.read_text().replace("._health_fleet", "")
        for match in used.finditer(text):
            pytest.fail(f"{path.name}: {text[max(0, match.start() - 60) : match.end() + 20]!r}")


def test_modules_of_the_controller_read_reports_by_the_one_reader() -> None:
    for name in ("gaudi_healing", "gaudi_passport"):
        text = (ROOT / f"plugins/modules/{name}.py").read_text()
        assert "read_all(" in text
        assert not re.search(
            r"""(?:health|report|alone|answer)(?:\[|\.get\()["'](?:verdicts|errors|versions|figures)""", text
        )


SUMMARIES = ("doctor.yml", "heal.yml")


@pytest.mark.parametrize("name", SUMMARIES)
def test_what_nodes_say_is_printable_where_it_is_summed_up(name: str) -> None:
    text = (ROOT / "playbooks" / name).read_text()
    assert "gaudi3.scale.printable" in text[text.index("name: Sum up") :]


def test_the_filter_writes_one_line_of_everything() -> None:
    shown = FilterModule().filters()["printable"]
    assert shown("a\x1b[2J\n\u202eb") == "a\\x1b[2J\\n\\u202eb"
    assert shown(["x\r", 5, None, {"y": "\x07"}]) == ["x\\r", "5", "None", "{'y': '\\x07'}"]
    assert shown("abcdef", 5) == "ab..."
