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


@pytest.mark.parametrize(
    ("package", "version"),
    [
        ("prometheus-node-exporter=1.5.0-1~bpo11+1", (1, 5, 0)),
        ("node-exporter == 1:1.7.0", (1, 7, 0)),
        ("prometheus-node-exporter=1.5*", (1, 5)),
        # What is there, as these say no version.
        ("prometheus-node-exporter>=1.5", (1, 3, 1)),
        ("prometheus-node-exporter=1*", (1, 3, 1)),
        ("prometheus-node-exporter", (1, 3, 1)),
    ],
)
def test_the_version_is_the_one_that_will_be_there(package: str, version: tuple[int, ...]) -> None:
    """The preflight knows nothing else, and a dry run may find an older one."""
    there = {"_node_exporter_installed": {"version": "1.3.1-1"}}
    assert node_exporter.version(values(node_exporter_package=package, **there)) == version


@pytest.mark.parametrize(
    ("package", "answer", "old"),
    [
        ("prometheus-node-exporter", {"version": "", "candidate": "1.1.2+ds-2.1+b5"}, "1.1.2"),
        ("prometheus-node-exporter", {"version": "1.1.2+ds-2.1+b5", "candidate": "1.5.0-1"}, "1.1.2"),
        # Of another repository, or of the distribution's newer packages.
        ("prometheus-node-exporter", {"version": "", "candidate": "1.5.0-1~bpo11+1"}, ""),
        ("prometheus-node-exporter", {"version": "1.5.0-1", "candidate": "1.1.2"}, ""),
        # Nothing was answered, or lists of packages are not there yet.
        ("prometheus-node-exporter", None, "1.1"),
        ("prometheus-node-exporter", {"version": "", "candidate": ""}, "1.1"),
        ("prometheus-node-exporter", {"version": ["1.5"], "candidate": 5}, "1.1"),
        ("our-node-exporter", {"version": "", "candidate": ""}, ""),
        ("our-node-exporter", {"version": "", "candidate": "1.0.1"}, "1.0.1"),
        ("prometheus-node-exporter=1.5*", {"version": "1.1.2", "candidate": "1.1.2"}, ""),
        ("prometheus-node-exporter=1.1.2*", {"version": "", "candidate": "1.5.0"}, "1.1.2"),
        ("prometheus-node-exporter=1*", {"version": "", "candidate": "1.1.2"}, ""),
    ],
)
def test_a_filter_that_is_wanted_is_missed_before_the_package_comes(package: str, answer: Any, old: str) -> None:
    given = {"node_exporter_package": package, "node_exporter_ethtool_interfaces": "^ens"}
    asked = values(**given, ansible_facts=DEBIAN_11)
    said = node_exporter.version_problem(asked, {"node_exporter_version": answer})
    sentence = (
        f'node_exporter_ethtool_interfaces is "^ens", and node_exporter {old} has no such filter: leave it empty, or '
        "install 1.3 or newer."
    )
    assert said == (sentence if old else "")
    assert node_exporter.VERSION.applies(asked)


def test_the_version_is_asked_where_the_distributions_has_no_filter() -> None:
    newer = {"distribution": "Ubuntu", "distribution_version": "22.04"}
    for given in ({"ansible_facts": newer, "node_exporter_ethtool_interfaces": "^ens"}, {"ansible_facts": DEBIAN_11}):
        asked = values(node_exporter_package="prometheus-node-exporter", **given)
        assert not node_exporter.VERSION.applies(asked) and node_exporter.version_problem(asked, {}) == ""
