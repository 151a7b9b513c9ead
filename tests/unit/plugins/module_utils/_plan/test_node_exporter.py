"""The node exporter's arguments follow from the version that a host has, whatever it answers."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._plan import node_exporter

DEBIAN_11 = {"distribution": "Debian", "distribution_version": "11.11"}


def values(**given: Any) -> Any:
    return {"node_exporter_address": "10.0.0.5", "node_exporter_port": 9100, **given}.get


@pytest.mark.parametrize("odd", ["", "1.9\x1b", "none", None, 5, ["1.9.0"]])
def test_a_version_that_cannot_be_read_is_the_distributions(odd: Any) -> None:
    given = values(_node_exporter_installed={"version": odd}, ansible_facts=DEBIAN_11)
    assert node_exporter.version(given) == (1, 1)


@pytest.mark.parametrize(
    ("said", "read"), [("1.7.0-1ubuntu0.3", (1, 7, 0)), ("2:1.11.1", (1, 11, 1)), ("1.10", (1, 10))]
)
def test_the_version_is_the_packages(said: str, read: tuple[int, ...]) -> None:
    assert node_exporter.version(values(_node_exporter_installed={"version": said})) == read
