"""What PyTorch takes of each distribution, and that all nodes have it from the same tarball."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._plan import pytorch


def values(family: Any, name: str, version: str, **given: Any) -> Any:
    facts = {"os_family": family, "distribution": name, "distribution_version": version}
    return {"ansible_facts": facts, "pytorch_python": "/usr/bin/python3", **given}.get


@pytest.mark.parametrize(
    ("system", "python"),
    [
        (("RedHat", "RedHat", "9.4"), "/usr/bin/python3.11"),
        (("RedHat", "RedHat", "9.6"), "/usr/bin/python3.12"),
        (("Debian", "Ubuntu", "24.04"), "/usr/bin/python3"),
    ],
)
def test_each_system_has_the_python_of_its_tarball(system: tuple[str, str, str], python: str) -> None:
    assert pytorch.decide(values(*system)) == {
        "distribution": " ".join(system[1:]),
        "python": python,
        "repository_url": "https://vault.habana.ai/artifactory/gaudi-pt-modules",
        "index_url": "",
    }


def test_the_packages_have_pythons_own_name() -> None:
    ubuntu = pytorch.packages(values("Debian", "Ubuntu", "24.04", pytorch_python="/usr/bin/python3.11"))
    assert ubuntu[0] == "python3.11-venv" and "numactl" in ubuntu
    red_hat = pytorch.packages(values("RedHat", "RedHat", "9.4", pytorch_python="/usr/bin/python3.12"))
    assert red_hat[0] == "python3.12" and "zlib-devel" in red_hat
    assert pytorch.packages(values("Suse", "SLES", "15")) == pytorch.packages(values(None, "", "")) == []


PLACES = ("_gaudi_plan", "_pytorch_plan", "_pytorch_installed")


@pytest.mark.parametrize("place", PLACES)
def test_what_any_task_saw_of_a_nodes_tarball_is_compared(place: str) -> None:
    def node(where: str, sha256: Any) -> dict[str, Any]:
        found = {"tarball": "torch.tgz", "sha256": sha256}
        return {where: found if where == "_pytorch_installed" else {"found": {"pytorch": found}}}

    def said(sha256: Any) -> str:
        hosts = {"a": node("_gaudi_plan", "1"), "b": node(place, sha256)}
        given = {"ansible_play_hosts_all": ["a", "b", "c"], "hostvars": hosts, "pytorch_root": "/opt"}
        return pytorch.tarballs_of_all({**given, "pytorch_release": "1.23.0-695"}.get)

    assert said("1") == said(None) == said(["2"]) == ""
    assert said("2") == (
        "Nodes have different files under the name of one tarball (torch.tgz with SHA-256 1, torch.tgz with SHA-256 2):"
        " find out which is right, set pytorch_sha256 to it, and remove /opt/torch-1.23.0-695 on the nodes that have"
        " another."
    )
