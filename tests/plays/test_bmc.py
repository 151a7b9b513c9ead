"""Asking the management controllers: the sound and the silent one, and the metrics for the monitoring host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gaudi3_simulator.controllers import USER, certify, served
from tests.stand_in_bmc import PASSWORD, tree

from .cluster import Cluster


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The address of a stand-in whose machine has a dead card, and the variables of its readers."""
    folder = tmp_path_factory.mktemp("bmc")
    folder.chmod(0o755)
    certificate, key = certify(folder)
    shown = tree(folder / "node", {"kind": "cpu-timeout", "card": 0})
    with served(lambda: shown, PASSWORD, certificate, key) as address:
        yield {
            "address": address, "gaudi_bmc_user": USER, "gaudi_bmc_password": PASSWORD,
            "gaudi_bmc_ca_file": str(certificate),
        }  # fmt: skip


def test_what_controllers_say_is_summed_up_and_served_and_a_silent_one_fails(
    cluster: Cluster, twin: dict[str, Any]
) -> None:
    given = dict(twin)
    dead = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}
    # A machine that does not answer is asked about all the same, as nobody goes there.
    cluster.add("gaudi-1", "gaudi", cards=0, variables={**dead, "gaudi_bmc_address": given.pop("address")})
    cluster.add("gaudi-2", "gaudi", cards=0, variables={"gaudi_bmc_address": "127.0.0.1:1"})
    cluster.add("gaudi-3", "gaudi", cards=0)
    folder = cluster.folder / "textfile"
    folder.mkdir()
    cluster.add("mon", "monitoring", cards=0)
    run = cluster.play("bmc.yml", **given, node_exporter_textfile_directory=str(folder), screen=True)
    assert run.returncode != 0
    lines = run.result("gaudi-1", "Sum up")["msg"]
    assert lines[0].startswith("gaudi-1: OAM_") and lines[0].endswith(
        "the card's firmware does not answer (Watchdog.Heartbeat is 1)"
    )
    assert lines[1].startswith("gaudi-2: The management controller at 127.0.0.1:1 cannot be read: ")
    assert len(lines) == 2
    assert run.messages()[-1] == (
        "The management controller of gaudi-2 was not read: the summary above says why; repair that and run again."
    )
    page = (folder / "gaudi-bmc.prom").read_text()
    assert 'gaudi_bmc_card_alert{field="Watchdog.Heartbeat",name="HEARTBEAT",node="gaudi-1",' in page
    assert 'node="gaudi-2"' not in page
    assert PASSWORD not in run.everything + cluster.screen + page
    assert [act for host in cluster.hosts.values() for act in host.acts()] == []


@pytest.mark.parametrize(
    ("variables", "given", "said"),
    [
        ({"gaudi_bmc_address": "127.0.0.1:1"}, {}, "Give gaudi_bmc_user and gaudi_bmc_password"),
        ({}, {"gaudi_bmc_user": "a", "gaudi_bmc_password": "b"}, "No host of the group gaudi has gaudi_bmc_address"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    variables: dict[str, Any], given: dict[str, Any], said: str, cluster: Cluster
) -> None:
    cluster.add("gaudi-1", "gaudi", cards=0, variables=variables)
    run = cluster.play("bmc.yml", **given)
    assert run.returncode != 0 and said in run.messages()[0]
