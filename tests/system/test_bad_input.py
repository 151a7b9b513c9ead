"""What is wrong is said in one sentence, and nothing is changed for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Site, refused, run


@pytest.fixture(scope="module")
def inventory(site: Site) -> dict[str, object]:
    listed = run("inventories/simulated/nodes", "--list", GAUDI3_SIMULATOR_CLUSTER=site.name)
    made: dict[str, object] = json.loads(listed.stdout)
    return made


@pytest.mark.parametrize(
    ("variable", "sentence"),
    [
        ("synapseai_release=9.9.9-1", "9.9.9-1"),
        ("synapseai_release=1.22.2-32", "1.22.2-32"),
        ("synapseai_key_fingerprint=0000000000000000000000000000000000000000", "synapseai_key_fingerprint"),
        ("synapseai_repository_url=http://vault:81/artifactory/debian", "http://vault:81/artifactory/debian"),
        ("synapseai_accept_unsupported_os=false", "Ubuntu 22.04"),
        (
            "trainer_processes_per_node=9",
            "gaudi-1 has 8 cards, too few for 9 processes: set trainer_processes_per_node to at most 8.",
        ),
        (
            "trainer_dataset=/data/none",
            "The dataset /data/none does not exist on gaudi-1: copy it to every node, or set trainer_dataset to a file "
            "or folder that is there.",
        ),
    ],
)
def test_a_wrong_variable(site: Site, variable: str, sentence: str) -> None:
    refused(site, sentence, "-e", variable)


def test_no_head_node(site: Site, inventory: dict[str, object], tmp_path: Path) -> None:
    refused(
        site,
        "Group gaudi_head has 0 hosts (none): name exactly one node of group gaudi there",
        "-i", _changed(tmp_path, inventory, gaudi_head={"hosts": []}),
    )  # fmt: skip


def _changed(folder: Path, inventory: dict[str, object], **groups: object) -> str:
    """An inventory script that prints ``inventory`` with ``groups`` put in."""
    script = folder / "nodes"
    script.write_text("#!/bin/sh\ncat <<'END'\n" + json.dumps({**inventory, **groups}) + "\nEND\n")
    script.chmod(0o755)
    return str(script)


@pytest.fixture
def node_down(site: Site) -> Iterator[None]:
    assert run("gaudi3-simulator", "off", "--name", site.name, "gaudi-2").returncode == 0
    yield
    site.restart("gaudi-2")


def test_no_hl_smi(site: Site) -> None:
    refused(site, "habanalabs-firmware-tools", "--tags", "verify")


def test_a_node_that_is_down(site: Site, node_down: None) -> None:
    refused(
        site,
        "1 of 3 hosts do not answer over ssh (gaudi-2): repair them, or leave them out with --limit '!gaudi-2'.",
    )
