"""What cannot work is refused in one sentence, and nothing is changed for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ..ansible_run import PlaybookRun
from .cluster import Cluster
from .host import SYSTEMS

#: Hosts, the variables of each, and what they are refused for.
Cases = dict[str, tuple[dict[str, Any], str]]
HPU_INTERVALS = (
    "hpu_exporter_interval is 3 and hpu_exporter_details_interval is 30: give 5 seconds or more for each, since hl-smi "
    "itself takes seconds."
)
PROMETHEUS: Cases = {
    "redhat": (
        {},
        "redhat runs RedHat, and the role prometheus installs from Debian's or Ubuntu's packages only: put a Debian or "
        "Ubuntu host into the group monitoring.",
    ),
    "time": (
        {"prometheus_retention_time": "15"},
        'prometheus_retention_time is "15"; write a number and one of ms, s, m, h, d, w, y, such as 15d.',
    ),
    "size": (
        {"prometheus_retention_size": "20"},
        'prometheus_retention_size is "20"; write a number and one of B, KB, MB, GB, TB, PB, EB, such as 20GB.',
    ),
    "port": ({"prometheus_port": 65536}, "prometheus_port is 65536; give a port from 1 to 65535."),
    "twice": (
        {"prometheus_jobs": [{"name": "node", "groups": [], "port": 1}, {"name": "node", "groups": [], "port": 2}]},
        "prometheus_jobs has two jobs of one name among node, node; name each differently.",
    ),
    "everywhere": (
        {"prometheus_listen_address": "0.0.0.0"},
        'prometheus_listen_address is "0.0.0.0"; give the host\'s address on the cluster network.',
    ),
    "loopback": (
        {"prometheus_listen_address": "localhost"},
        'prometheus_listen_address is "localhost"; give the host\'s address on the cluster network.',
    ),
}
ALERTMANAGER: Cases = {
    "debian-11": (
        {},
        "debian-11 runs Debian 11, whose Alertmanager knows neither TLS nor passwords: put a host with Debian 12, "
        "Ubuntu 22.04 or newer into the group monitoring, name another package in alertmanager_package, or leave "
        "monitoring out with --skip-tags monitoring.",
    ),
    "alert-port": ({"alertmanager_port": 0}, "alertmanager_port is 0; give a port from 1 to 65535."),
    "alert-everywhere": (
        {"alertmanager_listen_address": "::"},
        'alertmanager_listen_address is "::"; give the host\'s address on the cluster network.',
    ),
    "alert-nobody": (
        {"alertmanager_route": {"receiver": "operators"}},
        'alertmanager_route sends to "operators", which is none of alertmanager_receivers (nobody); add it there or '
        "correct the name.",
    ),
    "alert-watchdog": (
        {"alertmanager_watchdog_receiver": "switch"},
        'alertmanager_watchdog_receiver is "switch", which is none of alertmanager_receivers (nobody); add it there or '
        "correct the name.",
    ),
}
GRAFANA: Cases = {
    "grafana-port": ({"grafana_port": -1}, "grafana_port is -1; give a port from 1 to 65535."),
    "grafana-everywhere": (
        {"grafana_listen_address": "0.0.0.0"},
        'grafana_listen_address is "0.0.0.0"; give the host\'s address on the cluster network.',
    ),
    "grafana-key": (
        {"grafana_repository_key_fingerprint": "b53a"},
        'grafana_repository_key_fingerprint is "b53a"; give the 40 hexadecimal digits of the key, in capitals and '
        "without spaces.",
    ),
}
WATCH: Cases = {
    "watch-port": ({"watch_port": 70000}, "watch_port is 70000; give a port from 1 to 65535."),
    "watch-python": (
        {"watch_python": "/opt/none/bin/python3"},
        "watch-python has no /opt/none/bin/python3 that runs, and gaudi3-watch needs one: install Python 3.9 or newer "
        "there and name it in watch_python, or set watch_enabled to false.",
    ),
}
TRAINER: Cases = {
    "name": (
        {"trainer_job_name": "-first"},
        "trainer_job_name is '-first', which cannot be used: take 1 to 63 lower-case letters, digits, '-' and '_', "
        "beginning and ending with a letter or digit.",
    ),
    "nobody": (
        {"trainer_nodes": []},
        "trainer_nodes is empty: put the nodes into the inventory group gaudi, or set trainer_nodes.",
    ),
    "headless": (
        {"trainer_head": ""},
        "There is no head node where the nodes of the job can meet: put the first into group gaudi_head, or set "
        "trainer_head.",
    ),
    "foreign": (
        {"trainer_head": "other", "trainer_nodes": ["foreign", "name"]},
        "The head node other is not one of the nodes of the job (foreign, name): set trainer_head to one of them.",
    ),
    "bare": (
        {"trainer_cards": 0, "trainer_processes_per_node": 1},
        "bare has no cards on its PCI bus: to train on its processors, set trainer_cards to null and "
        "trainer_processes_per_node to a number.",
    ),
    "none": ({"trainer_processes_per_node": 0}, "trainer_processes_per_node is 0, but must be from 1 to 1024."),
    "many": (
        {"trainer_processes_per_node": 9},
        "many has 8 cards, too few for 9 processes: set trainer_processes_per_node to at most 8.",
    ),
    "dataset": (
        {"trainer_dataset": "/data/none"},
        "The dataset /data/none does not exist on dataset: copy it to every node, or set trainer_dataset to a file or "
        "folder that is there.",
    ),
    "model": (
        {"trainer_config": {"model": {"name": "/models/none"}}},
        "model.name of trainer_config is /models/none, which does not exist on model: copy it to every node of the "
        "job, or correct the path.",
    ),
    "scriptless": (
        {"trainer_command": ["train.py", "--steps=5"], "trainer_chdir": "/srv/mine"},
        "/srv/mine/train.py, the script of trainer_command, is not a file on scriptless: copy it to every node of the "
        "job.",
    ),
    "image": (
        {"trainer_runtime": "container", "trainer_container_image": "registry:5000/job:1.22.0-740"},
        "The container image registry:5000/job:1.22.0-740 is of release 1.22.0-740, "
        "but the driver's is 1.23.0-695, and both have to be the same: take the image of 1.23.0-695, or set "
        "synapseai_release to 1.22.0-740.",
    ),
    "digest": (
        {"trainer_runtime": "container", "trainer_container_digest": "sha256:12"},
        "trainer_container_digest is sha256:12: give sha256: and 64 hexadecimal digits, or leave it empty.",
    ),
    "closed": (
        {"trainer_command": ["/opt/private/mine/train.py"]},
        "gaudi3-scale cannot read /opt/private on closed, which the script of trainer_command needs: open it to that "
        "user, or copy the script to a folder that is open to all, such as /srv.",
    ),
}


def failures(run: PlaybookRun) -> dict[str, str]:
    """What each host was refused for; nothing was changed meanwhile."""
    assert run.returncode != 0 and run.changed() == set(), run.output
    said = {}
    for host, _name, result in run.results():
        if result.get("failed"):
            assert host not in said, result
            said[host] = " ".join(str(result["msg"]).split())
    return said


@pytest.fixture(scope="module")
def services(new_cluster: Callable[[], Cluster]) -> PlaybookRun:
    """Roles on hosts of which each has one wrong variable."""
    cluster, roles = new_cluster(), []
    given = (("prometheus", PROMETHEUS), ("alertmanager", ALERTMANAGER), ("grafana", GRAFANA), ("watch", WATCH))
    for role, cases in given:
        for name, (variables, _sentence) in cases.items():
            cluster.add(name, role, cards=0, system=name if name in SYSTEMS else "debian", variables=variables)
        roles.append({"role": f"gaudi3.scale.{role}", "when": f"'{role}' in group_names"})
    facts = {"gather_facts": True, "gather_subset": ["!all", "!min", "platform", "distribution"]}
    path = cluster.folder / "services.yml"
    path.write_text(json.dumps([{"hosts": "all", "roles": roles, **facts}]))
    return cluster.play(str(path), "--check", "--tags", "prometheus_targets,alertmanager,grafana,watch", forks=16)


@pytest.mark.parametrize("host", [*PROMETHEUS, *ALERTMANAGER, *GRAFANA, *WATCH])
def test_a_wrong_variable_of_a_service(services: PlaybookRun, host: str) -> None:
    assert failures(services)[host] == {**PROMETHEUS, **ALERTMANAGER, **GRAFANA, **WATCH}[host][1]


@pytest.fixture(scope="module")
def jobs(new_cluster: Callable[[], Cluster]) -> PlaybookRun:
    """The trainer's role on nodes of which each has one wrong variable."""
    cluster = new_cluster()
    for name, (variables, _sentence) in TRAINER.items():
        cluster.add(name, "gaudi", cards=0, variables={"trainer_cards": 8, "trainer_head": "name", **variables})
    cluster["closed"].write("/opt/private/mine/train.py", "").parent.parent.chmod(0o700)
    return cluster.role("trainer", "--tags", "trainer_preflight", facts=False, forks=16)


@pytest.mark.parametrize("host", TRAINER)
def test_a_job_that_cannot_run(jobs: PlaybookRun, host: str) -> None:
    assert failures(jobs)[host] == TRAINER[host][1]


def test_a_head_is_asked_for_where_no_group_names_one(cluster: Cluster) -> None:
    cluster.add("gaudi-1", "gaudi", cards=0, variables={"trainer_cards": 8})
    run = cluster.role("trainer", "--tags", "trainer_preflight", facts=False)
    assert failures(run) == {"gaudi-1": TRAINER["headless"][1]}


def test_a_driver_that_cannot_be_put_in(cluster: Cluster) -> None:
    cluster.add("unknown", "gaudi", cards=1, variables={"synapseai_release": "9.9.9-1"})
    cluster.add("unsupported", "gaudi", cards=1, system="debian")
    cluster.add("empty", "gaudi", cards=0)
    cluster.add("first", "gaudi", cards=1)
    (device,) = cluster["first"].path("/sys/bus/pci/devices").glob("*/device")
    device.write_text("0x1000\n")
    cluster.add("secure", "gaudi", cards=1, driver=False)
    cluster.add("busy", "gaudi", cards=1, variables={"synapseai_release": "1.22.2-32"})
    cluster["secure"].write("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", "....\1")
    cluster["busy"].write("/proc/4711/comm", "python3\n")
    cluster["busy"].path("/proc/4711/fd").mkdir()
    cluster["busy"].path("/proc/4711/fd/7").symlink_to("/dev/accel/accel0")
    run = cluster.role("synapseai", "--tags", "synapseai_preflight", forks=8)
    said = failures(run)
    assert said["unknown"].startswith("SynapseAI release '9.9.9-1' is not known to this collection; take a known one ")
    assert said["first"].startswith("The cards are first-generation Gaudi, which SynapseAI 1.23.0-695 does not drive: ")
    assert said["unsupported"] == (
        "SynapseAI 1.23.0-695 is not supported on Debian 12, only on Ubuntu 22.04, Ubuntu 24.04, RedHat 9.4, RedHat "
        "9.6; use one of these, or set synapseai_accept_unsupported_os=true to try it at your own risk."
    )
    assert said["empty"] == (
        "No Gaudi card is on the PCI bus (vendor 1da3); take this host out of the Gaudi nodes' group."
    )
    assert said["secure"].startswith("Secure Boot is on and the kernel takes only modules signed with an enrolled key;")
    assert said["busy"].startswith("The running driver 1.23.0-")
    assert (
        " cannot be taken out while /dev/accel is in use by process 4711 (python3); stop what uses it, or set "
        "synapseai_reboot_allowed=true to reboot the node instead."
    ) in said["busy"]
    # What else is wrong is said in the same run.
    assert said["busy"].endswith("set synapseai_allow_downgrade=true to go back.")


def test_an_exporter_that_cannot_read(cluster: Cluster) -> None:
    cluster.add("often", "gaudi", cards=0, variables={"hpu_exporter_interval": 3})
    cluster.add("toolless", "gaudi", cards=0)
    cluster.add("engineless", "gaudi", cards=0, variables={"hpu_exporter_kind": "intel"})
    run = cluster.role("hpu_exporter", "--tags", "hpu_exporter_preflight", facts=False)
    assert failures(run) == {
        "often": HPU_INTERVALS,
        "toolless": "/usr/bin/hl-smi is not on toolless: install it with role gaudi3.scale.synapseai, or give its path "
        "as hpu_exporter_hl_smi.",
        "engineless": "/usr/bin/podman is not on engineless: install podman, or name another engine as "
        "hpu_exporter_container_engine.",
    }


def test_machines_that_cannot_be_asked_for(cluster: Cluster) -> None:
    run = cluster.play(
        "provision.yml", "--check", inventory="localhost,",
        provision_name="Trial_1", provision_cloud="oracle", provision_size="many", provision_state="gone",
        provision_variables={"name": "other"},
    )  # fmt: skip
    assert run.returncode != 0 and run.changed() == set()
    items = run.result("localhost", "Look at what was asked for")["results"]
    # `failed` of an item is gone in ansible-core 2.21.
    said = {item["msg"] for item in items if item.get("evaluated_to") is False}
    assert said == {
        "provision_name is 'Trial_1': give 1 to 24 lower-case letters, digits and dashes, a letter first and no dash "
        "last.",
        "provision_cloud is 'oracle': give one of aws, azure, gcp, ibm, onprem.",
        "provision_size is 'many': give the number of accelerator cards in all, a multiple of what one machine has.",
        "provision_type is missing: give a type of machine, one of docs/clouds/instances.md.",
        "provision_state is 'gone': give present or absent.",
        "provision_variables has name, which has a variable of its own here: give it there.",
    }
