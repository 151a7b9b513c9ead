"""What role synapseai installs, in the words of each distribution."""

from __future__ import annotations

from typing import Any

from ansible_collections.gaudi3.scale.plugins.module_utils._plan import drivers


def decided(name: str, **given: Any) -> dict[str, Any]:
    facts = {"distribution": name, "kernel": "6.8.0-1", "distribution_major_version": "9"}
    packages = {"synapseai_packages": ["habanalabs-dkms", "habanalabs-thunk"], "synapseai_release": "1.23.0-695"}
    return dict(drivers.decide({"ansible_facts": facts, **packages, **given}.get))


def test_the_kernels_headers_are_those_of_the_running_one() -> None:
    assert "linux-headers-6.8.0-1" in decided("Ubuntu")["prerequisites"]
    assert "linux-modules-extra-6.8.0-1" in decided("Ubuntu")["prerequisites"]
    assert decided("RedHat")["prerequisites"] == ["gcc", "make", "kernel-devel-6.8.0-1", "ethtool"]
    assert decided("Debian")["prerequisites"] == []


def test_packages_have_other_names_with_rpm() -> None:
    found = decided("RedHat", synapseai_container_runtime="true")
    assert found["packages"] == ["habanalabs-dkms", "habanalabs-thunk", "habanalabs-container-runtime"]
    assert found["rpm_packages"] == ["habanalabs", "habanalabs-thunk", "habanalabs-container-runtime"]
    assert found["rpm_release"] == "1.23.0-695.el9"
    assert found["rpm_set"][0] == "habanalabs-1.23.0-695.el9"
    assert len(decided("Ubuntu", synapseai_container_runtime="false")["packages"]) == 2


def test_logs_are_where_the_jobs_are() -> None:
    assert decided("Ubuntu")["log_folders"][1] == "/var/lib/gaudi3-scale/jobs/*/habana_logs"
    assert decided("Ubuntu", trainer_jobs_dir="/srv")["log_folders"][1] == "/srv/*/habana_logs"
