"""What a host asks of a sealed mirror: only what it installs from it, and nothing where all is there already."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._plan import mirror
from ansible_collections.gaudi3.scale.plugins.module_utils._plan.host import Host
from ansible_collections.gaudi3.scale.plugins.module_utils._plan.model import Answers
from ansible_collections.gaudi3.scale.plugins.module_utils._plan.monitoring import Part
from ansible_collections.gaudi3.scale.plugins.module_utils._plan.monitoring_host import Watch
from ansible_collections.gaudi3.scale.plugins.module_utils._plan.run import Run

from .services import given
from .test_host import FACTS, node, plan

URL = "http://mirror.example"
TORCH = "artifactory/gaudi-pt-modules"
VALUES: dict[str, Any] = {
    "ansible_facts": FACTS,
    "groups": {"gaudi": ["gaudi-1", "gaudi-2"]},
    "gaudi_mirror": f"{URL}/",
    "synapseai_release": "1.23.0-695",
    "synapseai_apt_suite": "jammy",
    "synapseai_repository_url": f"{URL}/artifactory/debian",
    "synapseai_key_url": f"{URL}/artifactory/api/gpg/key/public",
    "synapseai_rpm_url": f"{URL}/artifactory/rhel/9/9.6",
    "synapseai_rpm_key_url": f"{URL}/artifactory/gaudi-general/keyPairs/primary/public",
    "pytorch_state": "present",
    "pytorch_release": "1.23.0-695",
    "pytorch_system": "",
    "pytorch_repository_url": f"{URL}/{TORCH}",
    "pytorch_pip_index_url": f"{URL}/pypi/simple",
    "pytorch_requirements": ["rich==1 --hash=sha256:00"],
    "fabric_kind": "host_tcp",
    "fabric_ofi_wrapper_archive": "",
    "fabric_ofi_wrapper_url": f"{URL}/hccl_ofi_wrapper",
}
ALL = ["drivers", "fabric", "pytorch"]
DEB = {
    "synapseai_repository_url": "artifactory/debian/dists/jammy/InRelease",
    "synapseai_key_url": "artifactory/api/gpg/key/public",
}
PYTORCH = {
    "pytorch_repository_url": f"{TORCH}/1.23.0/695/pytorch/ubuntu2204",
    "pytorch_pip_index_url": "pypi/simple",
}
WRAPPER = {"fabric_ofi_wrapper_url": "hccl_ofi_wrapper"}


def wanted(phases: list[str] | None = None, found: dict[str, Any] | None = None, **more: Any) -> dict[str, str]:
    return mirror.wanted({**VALUES, **more}.get, ALL if phases is None else phases, found or {})


def test_each_phase_wants_what_it_installs_from_the_mirror() -> None:
    assert wanted() == {**DEB, **PYTORCH, **WRAPPER}
    assert wanted(["drivers"]) == DEB and wanted(["pytorch"]) == PYTORCH and wanted(["fabric"]) == WRAPPER
    red_hat = {**FACTS, "distribution": "RedHat", "distribution_version": "9.6", "os_family": "RedHat"}
    assert wanted(["drivers"], ansible_facts=red_hat) == {
        "synapseai_rpm_url": "artifactory/rhel/9/9.6/repodata/repomd.xml",
        "synapseai_rpm_key_url": "artifactory/gaudi-general/keyPairs/primary/public",
    }


def test_an_address_that_the_site_has_set_wants_nothing_of_the_mirror() -> None:
    assert wanted(["pytorch"], pytorch_repository_url="https://mine.example/pt") == {
        "pytorch_pip_index_url": "pypi/simple"
    }
    assert wanted(gaudi_mirror="") == wanted(gaudi_mirror=None) == {}
    assert mirror.tarball_lock(VALUES.get) == f"{URL}/lock.json"
    assert mirror.tarball_lock({**VALUES, "pytorch_repository_url": "https://mine.example/pt"}.get) == ""


def test_what_is_there_already_wants_nothing() -> None:
    there: dict[str, Any] = {"packages": {"changed": False}, "pytorch": {"changed": False}}
    assert wanted(["drivers", "pytorch"], there) == {}
    assert wanted(["drivers", "pytorch"], {**there, "packages": {"failed": True, "changed": False}}) == DEB
    assert wanted(["pytorch"], pytorch_state="preinstalled") == {}


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ({}, True),
        ({"gaudi_mirror": ""}, False),
        ({"pytorch_pip_index_url": "http://mine.example/simple"}, False),
        (
            {"gaudi_mirror": "https://mirror.example", "pytorch_pip_index_url": "https://mirror.example/pypi/simple"},
            False,
        ),
    ],
)
def test_plain_http_is_for_the_mirrors_own_index(given: dict[str, Any], plain: bool) -> None:
    values = {**VALUES, **given}
    assert mirror.index_plain_http(values.get) is plain


def test_the_index_of_served_models_may_be_plain_where_it_is_the_mirrors() -> None:
    for url, plain in ((f"{URL}/pypi/simple", True), ("http://mine.example/x", False)):
        assert mirror.serving_pip_index_plain_http({**VALUES, "serving_pip_index_url": url}.get) is plain


def test_the_index_of_a_container_is_pytorchs_or_the_mirrors() -> None:
    contained = {**VALUES, "trainer_runtime": "container", "trainer_pip_index_url": f"{URL}/pypi/simple"}
    assert mirror.trainer_index_url(contained.get) == f"{URL}/pypi/simple"
    assert mirror.trainer_index_plain_http({**contained, "pytorch_pip_index_plain_http": "no"}.get) is False
    alone = {name: value for name, value in contained.items() if not name.startswith("pytorch_")}
    assert mirror.trainer_index_url(alone.get) == f"{URL}/pypi/simple" and mirror.trainer_index_plain_http(alone.get)
    assert mirror.trainer_index_url(VALUES.get) == "" and not mirror.trainer_index_plain_http(VALUES.get)


def test_a_host_asks_the_mirror_once_it_knows_that_it_installs() -> None:
    installed = node({**VALUES, "fabric_kind": "gaudi"})
    assert plan(installed, "drivers")["problem"] == "" and ["mirror"] not in installed.asked
    lacking = node(VALUES, {"packages": {"changed": True}})
    assert plan(lacking, "drivers")["problem"] == "" and lacking.asked[-1] == ["mirror"]


GRAFANA = {
    "gaudi_mirror": URL, "grafana_repository_url": f"{URL}/grafana/apt",
    "grafana_repository_key_url": f"{URL}/grafana/gpg.key",
}  # fmt: skip


class Monitoring(Watch):
    """The services of a monitoring host without files, of which one package may be missing."""

    def then(self, answers: Answers) -> list[Part]:
        return [{"name": "grafana_package", "module": "package", "arguments": {}, "tolerated": True}]


@pytest.mark.parametrize(("installed", "asks"), [(False, True), (True, False), (None, False)])
def test_a_monitoring_host_asks_the_mirror_where_grafana_is_to_be_installed(installed: Any, asks: bool) -> None:
    run = Run.of(["all"], [])
    said = {"failed": True, "msg": "The mirror does not have it."}
    access = node({**VALUES, **GRAFANA}, {"grafana_package": {"installed": installed}, "mirror": said})
    found = Host(access, "mon", run, False, Monitoring(given(), run)).plan()
    assert (found["problem"], access.asked[-1] == ["mirror"]) == (said["msg"] if asks else "", asks)


def test_grafana_wants_index_and_key() -> None:
    assert wanted(["grafana"], **GRAFANA) == {
        "grafana_repository_url": "grafana/apt/dists/stable/InRelease",
        "grafana_repository_key_url": "grafana/gpg.key",
    }


def test_of_a_mirror_that_does_not_fit_its_own_sentence_is_said() -> None:
    said = {"failed": True, "msg": "The mirror does not answer."}
    both = {"packages": {"failed": True, "msg": "apt's own words."}, "mirror": said}
    assert plan(node(VALUES, both), "drivers")["problem"] == "The mirror does not answer."
    assert plan(node(VALUES, {**both, "mirror": {"changed": False}}), "drivers")["problem"] == "apt's own words."
    only = node(VALUES, {"pytorch": {"changed": True}, "mirror": said})
    assert plan(only, "preflight")["problem"] == "The mirror does not answer."
    assert plan(only, "train")["problem"] == "", "it installs nothing"
    assert plan(node({**VALUES, "gaudi_mirror": ""}, {"pytorch": {"changed": True}, "mirror": said}))["problem"] == ""
