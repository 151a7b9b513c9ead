"""What is wrong is said in one sentence, and nothing is changed for it.

Here is what takes a repository, hl-smi or a node that is off; the other sentences are in tests/plays/test_refusals.py.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .conftest import Site, refused, run


@pytest.mark.parametrize(
    ("variable", "sentence"),
    [
        ("synapseai_release=1.22.2-32", "1.22.2-32"),
        ("synapseai_key_fingerprint=0000000000000000000000000000000000000000", "synapseai_key_fingerprint"),
        ("synapseai_repository_url=http://vault:81/artifactory/debian", "http://vault:81/artifactory/debian"),
    ],
)
def test_a_wrong_variable(site: Site, variable: str, sentence: str) -> None:
    refused(site, sentence, "-e", variable)


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
