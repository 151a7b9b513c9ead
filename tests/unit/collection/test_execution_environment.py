"""examples/execution-environment.yml defines an image for the collection as it is: its version, core and archive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
DEFINITION: dict[str, Any] = yaml.safe_load((ROOT / "examples/execution-environment.yml").read_text())
GALAXY = yaml.safe_load((ROOT / "galaxy.yml").read_text())


def test_the_archive_is_the_one_that_a_build_writes() -> None:
    archive = f"{GALAXY['namespace']}-{GALAXY['name']}-{GALAXY['version']}.tar.gz"
    (given,) = DEFINITION["additional_build_files"]
    assert given["src"] == archive
    # The builder copies it below its own folder, in which it then installs the collections.
    (collection,) = DEFINITION["dependencies"]["galaxy"]["collections"]
    assert collection == {"name": f"{given['dest']}/{archive}", "type": "file"}


def test_the_core_is_the_controllers() -> None:
    pinned = (ROOT / "requirements/controller.in").read_text().splitlines()
    assert DEFINITION["dependencies"]["ansible_core"]["package_pip"] in pinned


def test_it_is_of_the_form_that_ansible_builder_3_reads() -> None:
    assert (
        DEFINITION["version"] == yaml.safe_load((ROOT / "meta/execution-environment.yml").read_text())["version"] == 3
    )
    assert set(DEFINITION) == {"version", "images", "dependencies", "additional_build_files"}
    assert set(DEFINITION["dependencies"]) <= {"ansible_core", "ansible_runner", "galaxy", "python", "system"}
