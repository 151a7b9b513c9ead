"""Each packaged node_exporter knows the arguments that the role gives it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from ..playbooks.jinja import evaluate, load, render

#: Package versions as the distributions write them, and the node_exporter in each.
PACKAGED = {
    "1.1.2+ds-2.1+b5": "1.1.2",  # Debian 11
    "1.3.1-1ubuntu0.22.04.3": "1.3.1",
    "1.5.0-1+b6": "1.5.0",  # Debian 12
    "1.7.0-1ubuntu0.3": "1.7.0",  # Ubuntu 24.04
    "1.9.0-1+b4": "1.9.0",  # Debian 13
    "1.11.1": "1.11.1",  # EPEL 9
}


def known(version: str) -> set[str]:
    """Arguments of a version, without their dashes."""
    flags: set[str] = set()
    history = yaml.safe_load((Path(__file__).parent / "node_exporter_flags.yml").read_text())
    for step, changes in history.items():
        flags = (flags | set(changes["added"])) - set(changes["removed"])
        if step == version:
            return flags
    raise AssertionError(f"{version} is not recorded")


def arguments(package: str, **choices: Any) -> list[str]:
    """What the role writes where ``package`` is the installed version."""
    variables = {
        **load("roles/node_exporter/defaults/main.yml"),
        **load("roles/node_exporter/vars/main.yml"),
        "ansible_managed": "Ansible managed",
        "ansible_host": "10.0.0.5",
        "ansible_facts": {"os_family": "Debian", "distribution": "Ubuntu", "distribution_version": "22.04"},
        "_node_exporter_installed": {"version": package},
        **choices,
    }
    text = render("roles/node_exporter/templates/arguments.j2", **variables)
    (line,) = (line for line in text.splitlines() if line.startswith("ARGS="))
    return shlex.split(line.removeprefix("ARGS='").removesuffix("'"))


def names(words: list[str]) -> set[str]:
    return {word.partition("=")[0].removeprefix("--no-").removeprefix("--") for word in words}


@pytest.mark.parametrize("package", PACKAGED)
def test_the_installed_version_knows_every_argument(package: str) -> None:
    ethtool = {} if package.startswith("1.1.") else {"node_exporter_ethtool_interfaces": "^ens.*"}
    words = arguments(package, node_exporter_web_config={"basic_auth_users": {"p": "$2b$..."}}, **ethtool)
    assert names(words) - known(PACKAGED[package]) == set()
    disks = "diskstats.ignored-devices" if package.startswith(("1.1.", "1.3.")) else "diskstats.device-exclude"
    assert any(word.startswith(f"--collector.{disks}=^(ram|zram") for word in words)


@pytest.mark.parametrize(
    ("system", "like"),
    [
        (("Ubuntu", "22.04"), "1.3.1"),
        (("Ubuntu", "24.04"), "1.7.0"),
        (("Debian", "11"), "1.1.2"),
        (("Debian", "11.11"), "1.1.2"),  # as Ansible finds it
        (("Debian", "12.12"), "1.5.0"),
        (("X", "1"), "1.9"),
    ],
)
def test_before_the_package_is_there_its_version_is_the_distributions(system: tuple[str, str], like: str) -> None:
    """In check mode on a new host; an unknown distribution has a new one."""
    facts = {"os_family": "Debian", "distribution": system[0], "distribution_version": system[1]}
    assert arguments("", ansible_facts=facts) == arguments(like)


def test_a_filter_that_the_installed_version_lacks_is_refused() -> None:
    with pytest.raises(Exception, match=r"and node_exporter 1[.]1[.]2 has no such filter: leave it empty"):
        arguments("1.1.2+ds-2.1+b5", node_exporter_ethtool_interfaces="^ens")
    facts = {"os_family": "Debian", "distribution": "Debian", "distribution_version": "11"}
    with pytest.raises(Exception, match=r"and node_exporter 1[.]1 has no such filter"):
        arguments("", ansible_facts=facts, node_exporter_ethtool_interfaces="^ens")
    # The preflight does not know what is there.
    unasked = {"_node_exporter_installed": None, "node_exporter_ethtool_interfaces": "^ens"}
    assert "--collector.ethtool.device-include=^ens" in arguments("", ansible_facts=facts, **unasked)


@pytest.mark.parametrize(("family", "package"), [("Debian", "prometheus-node-exporter"), ("RedHat", "node-exporter")])
def test_the_package_has_its_distributions_name(family: str, package: str) -> None:
    defaults = load("roles/node_exporter/defaults/main.yml")
    variables = {**load("roles/node_exporter/vars/main.yml"), "ansible_facts": {"os_family": family}}
    assert evaluate(defaults["node_exporter_package"], **variables) == package
