"""The first playbook of a site: what it says of inventories and hosts, and that nothing comes after a refusal."""

from __future__ import annotations

import shutil
import sys

import pytest

from gaudi3_simulator import prepared

from ..ansible_run import PlaybookRun
from .cluster import NOBODY, Cluster

VAULT = "https://vault.habana.ai/artifactory/debian"


def preflight(cluster: Cluster, *arguments: str, **more: object) -> PlaybookRun:
    """site.yml as far as its preflight and the cheapest phase behind it, which does without PyTorch."""
    return cluster.play("site.yml", "--check", "--tags", "tuning", *arguments, **more)  # type: ignore[arg-type]


def plays(run: PlaybookRun) -> list[str]:
    """The plays that did anything."""
    return [play["play"]["name"] for play in run.report["plays"] if play["tasks"]]


def test_hosts_without_groups(cluster: Cluster) -> None:
    run = preflight(cluster, inventory="gaudi-1,gaudi-2,")
    assert run.returncode != 0 and run.changed() == set()
    assert run.messages() == [
        "The inventory has no host in group gaudi (Ansible read gaudi-1,gaudi-2,): give yours with -i, as in "
        "'ansible-playbook -i mine gaudi3.scale.site', and name the Gaudi nodes in that group."
    ]
    assert not (cluster.folder / "None").exists()


@pytest.mark.parametrize(
    ("heads", "said"),
    [([], "no host"), (["gaudi-1", "gaudi-2"], "gaudi-1 and gaudi-2"), (["mon"], "mon")],
    ids=["none", "two", "foreign"],
)
def test_a_head_that_is_none(cluster: Cluster, heads: list[str], said: str) -> None:
    cluster.gaudi(2, cards=0)
    cluster.add("mon", "monitoring", cards=0)
    cluster.groups["gaudi_head"] = heads
    run = preflight(cluster)
    assert run.returncode != 0 and run.changed() == set()
    assert run.messages() == [
        f"Group gaudi_head has {said}: name exactly one node of group gaudi there, the node where training processes "
        "meet."
    ]


def test_a_user_who_does_not_become_root(cluster: Cluster) -> None:
    """The first package would be refused in apt's words, on every node, after the kernel was tuned."""
    cluster.gaudi(2, cards=1)
    interpreter = cluster["gaudi-2"].interpreter
    interpreter.write_text(interpreter.read_text().replace("\nexec", f"\nexport STAND_IN_UID={NOBODY}\nexec"))
    run = preflight(cluster)
    assert run.returncode != 0 and run.changed() == set()
    assert run.messages() == [
        "On gaudi-2 tasks run as nobody, who may change neither packages nor services: set ansible_become=true for the "
        "groups gaudi and monitoring (or run with --become), or log in as root."
    ]
    assert plays(run)[-1] == "Look at the hosts"


def test_one_node_without_cards_stops_all(cluster: Cluster) -> None:
    """The nodes beside it are good, and still nothing more is done on them; also with a strategy that keeps no step."""
    cluster.gaudi(2, cards=1)
    cluster.add("gaudi-3", "gaudi", cards=0)
    run = preflight(cluster, environment={"ANSIBLE_STRATEGY": "host_pinned"})
    assert run.returncode != 0 and run.changed() == set()
    assert run.messages() == [
        "gaudi-3 has no Gaudi card on its PCI bus: take it out of group gaudi, or look at its hardware with "
        "'lspci -d 1da3:'."
    ]
    assert plays(run)[-1] == "Look at the hosts"
    assert {name.rpartition(" : ")[2] for host, name, _result in run.results() if host == "gaudi-1"} == {
        "Look up the addresses of all hosts once", "Build the trainer on the controller",
        "Ask every host what the phases would change there", "Decide what is done on each host",
    }  # fmt: skip


@pytest.mark.skipif(not shutil.which("ssh"), reason="ssh is missing, over which a host would not answer")
def test_a_node_that_does_not_answer(cluster: Cluster) -> None:
    cluster.gaudi(2, cards=0)
    cluster.variables["gaudi-2"].update(
        ansible_connection="ssh", ansible_host="127.0.0.1", ansible_port=1, ansible_ssh_retries=0
    )
    run = preflight(cluster, screen=True)
    assert run.returncode != 0 and run.changed() == set()
    assert run.messages()[-1] == (
        "1 of 2 hosts do not answer over ssh (gaudi-2): repair them, or leave them out with --limit '!gaudi-2'."
    )
    assert plays(run)[-1] == "Look at the hosts"
    screen = cluster.screen.splitlines()
    ends = screen[next(n for n, line in enumerate(screen) if line.startswith("Stopped after ")) :]
    assert ends[1] == "  preflight: does not answer: no ssh server" and ends[2] == "    on gaudi-2"
    assert "    ssh -v -p 1 127.0.0.1" in ends and "    out with --limit '!gaudi-2'." in ends
    assert ends[-2] == "Next, when that is mended:" and ends[-1].startswith("  ansible-playbook ")
    assert len(screen) <= 24 and "{" not in "".join(screen[:-1]), screen


def test_a_folder_with_names_only(cluster: Cluster) -> None:
    """No addresses, no monitoring group, variables beside the inventory: the nodes are planned under their names."""
    cluster.add("gaudi-1", "gaudi", "gaudi_head", cards=1)
    names = cluster.variables["gaudi-1"]
    cluster.variables["gaudi-1"] = {}
    folder = cluster.inventory().parent
    (folder / "host_vars").mkdir()
    lines = [f"{key}: {value}\n" for key, value in names.items() if key != "ansible_host"]
    (folder / "host_vars/gaudi-1.yml").write_text("".join(lines))
    run = preflight(cluster, inventory=str(folder))
    assert run.returncode == 0, run.messages()
    assert {host for host, _name in run.changed()} == {"gaudi-1"}


def test_a_job_that_lacks_what_this_run_leaves_out(cluster: Cluster) -> None:
    """Each node for a phase of its own; the last one has all from an earlier run."""
    python = "/opt/gaudi3-scale/torch/bin/python"
    cluster.gaudi(2, cards=1)
    cluster.add("gaudi-3", "gaudi", cards=1, driver=False, packages=True)
    for name in ("gaudi-2", "gaudi-3"):
        cluster[name].write(python, "", 0o755)
    before = {name: host.files() for name, host in cluster.hosts.items()}
    run = cluster.play("site.yml", "--skip-tags", "pytorch,drivers")
    assert run.returncode != 0 and run.changed() == set()
    told = {host: result["msg"] for host, _name, result in run.results() if result.get("failed")}
    assert told == {
        "gaudi-1": f"gaudi-1 has no {python} to train with, and this run leaves out the phase pytorch, which would "
        "install it: run that phase first, or leave training out with --skip-tags train.",
        "gaudi-3": "No driver runs the cards of gaudi-3, and this run leaves out the phase drivers, which would load "
        "it: run that phase first, or leave training out with --skip-tags train.",
    }
    assert {name: host.files() for name, host in cluster.hosts.items()} == before


def test_a_run_without_training_is_not_refused_for_its_job(cluster: Cluster) -> None:
    cluster.gaudi(1, cards=1)
    cluster.all |= {"trainer_job_name": "demo", "trainer_dataset": "/data/none"}
    run = preflight(cluster)
    assert run.returncode == 0, run.messages()
    run = cluster.play("site.yml", "--check", "--tags", "preflight", "--skip-tags", "pytorch")
    assert run.returncode != 0 and run.changed() == set()
    assert run.messages() == [
        "The dataset /data/none does not exist on gaudi-1: copy it to every node, or set trainer_dataset to a file or "
        "folder that is there."
    ]


def test_settings_of_a_later_phase_are_refused_at_the_start(cluster: Cluster) -> None:
    cluster.gaudi(1, cards=1)
    cluster.all |= {"hpu_exporter_interval": 1}
    run = preflight(cluster, "--tags", "monitoring")
    assert run.returncode != 0 and run.changed() == set()
    assert plays(run)[-1] == "Look at the hosts"
    (said,) = run.messages()
    assert said.startswith("hpu_exporter_interval is 1 and hpu_exporter_details_interval is "), said


def test_a_package_that_is_too_old_for_a_setting_is_refused_before_it_comes(cluster: Cluster) -> None:
    cluster.gaudi(1, cards=1)
    cluster.add("mon", "monitoring", cards=0, system="debian-11")
    cluster.all |= {"node_exporter_ethtool_interfaces": "^ens"}
    run = preflight(cluster, "--tags", "monitoring")
    assert run.returncode != 0 and run.changed() == set()
    assert run.messages() == [
        'node_exporter_ethtool_interfaces is "^ens", and node_exporter 1.1 has no such filter: leave it empty, or '
        "install 1.3 or newer."
    ]


def test_one_node_whose_facts_fail_stops_all(cluster: Cluster) -> None:
    cluster.gaudi(2, cards=1)
    cluster.variables["gaudi-2"]["ansible_python_interpreter"] = "/nonexistent"
    run = preflight(cluster)
    assert run.returncode != 0 and run.changed() == set(), run.changed()
    assert plays(run)[-1] == "Look at the hosts"
    said = run.messages()[-1]
    assert said.startswith("The facts of gaudi-2 cannot be read (")
    assert said.endswith("): repair that, or leave them out with --limit '!gaudi-2'.")


def test_monitoring_is_planned_though_a_node_lost_its_cards(cluster: Cluster) -> None:
    cluster.gaudi(1, cards=0)
    cluster.add("mon", "monitoring", cards=0)
    run = cluster.play("site.yml", "--check", "--tags", "prometheus_targets")
    assert run.returncode == 0, run.messages()
    assert {host for host, _name in run.changed()} == {"mon"}


def test_what_monitoring_needs_of_its_host_is_refused_at_the_start(cluster: Cluster) -> None:
    """The host's system has no package of Prometheus, and the node is not touched."""
    cluster.gaudi(1, cards=1)
    cluster.add("mon", "monitoring", cards=0, system="redhat")
    run = cluster.play("site.yml", "--check", "--tags", "tuning,monitoring")
    assert run.returncode != 0 and run.changed() == set()
    assert plays(run)[-1] == "Look at the hosts"
    (said,) = run.messages()
    assert said.startswith("mon runs RedHat, and the role prometheus installs from Debian's "), said


def test_a_name_that_is_the_loopback_on_its_own_host(cluster: Cluster) -> None:
    """Debian's installer writes it so. What listens there is scraped by nobody, and the run would be green."""
    cluster.gaudi(2, cards=1)
    for name, address in (("gaudi-1", "10.0.0.1"), ("gaudi-2", "127.0.1.1")):
        del cluster.variables[name]["ansible_host"]
        getent = cluster[name].folder / "bin/getent"
        getent.write_text(f"#!/bin/sh\n[ $1 != ahosts ] || echo '{address}       STREAM '$2\n")
        getent.chmod(0o755)
    run = cluster.play("site.yml", "--check", "--tags", "monitoring")
    assert run.returncode != 0 and run.changed() == set()
    assert run.messages() == [
        "The inventory knows gaudi-2 by name alone, which on the host itself is a loopback address, where no other "
        "host reaches it: set ansible_host or gaudi_cluster_address to the address on the cluster network."
    ]
    assert plays(run)[-1] == "Look at the hosts"


def test_wrong_variables_of_several_roles_are_reported_together(cluster: Cluster) -> None:
    """Also that of a role whose default takes it from a variable that all exporters share.

    Templates, as the first look at a run refuses a switch and a number that are plainly none.
    """
    cluster.gaudi(1, cards=1)
    cluster.all |= {
        "fabric_mode": "l4", "pytorch_timeout": "{{ 'soon' }}", "trainer_runtime": "jail", "tuning_cstates": "off",
        "gaudi_metrics_tls": "{{ 'perhaps' }}",
    }  # fmt: skip
    run = cluster.play("site.yml", "--check")
    assert run.returncode != 0 and run.changed() == set()
    assert plays(run)[-1] == "Look at the hosts"
    (message,) = run.messages()
    title, *faults = message.splitlines()
    assert title == "These variables cannot be used:"
    assert {next(word for word in fault.split() if "_" in word).strip("',:") for fault in faults} == {
        "fabric_mode", "trainer_runtime", "trainer_tls", "tuning_cstates", "pytorch_timeout", "node_exporter_tls",
        "hpu_exporter_tls",
    }  # fmt: skip
    assert "value of fabric_mode must be one of: l2, l3, unmanaged, got: l4" in faults


def test_a_phase_that_runs_alone_checks_its_variables(cluster: Cluster) -> None:
    cluster.gaudi(1, cards=1)
    run = cluster.play("tuning.yml", "--check", tuning_cstates="off", fabric_mode="l4")
    (message,) = run.messages()
    assert message.splitlines()[1:] == [
        "value of tuning_cstates must be one of: reported, disabled, unmanaged, got: off"
    ]
    assert plays(run) == ["Check the variables of the phase"]


def test_faults_of_several_roles_are_told_at_once(cluster: Cluster) -> None:
    """Repaired one after the other, each would cost a run to learn of the next."""
    cluster.add("gaudi-1", "gaudi", "gaudi_head", cards=1, driver=False)
    host = cluster["gaudi-1"]
    host.write("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", "....\1")
    host.write("/etc/habanalabs/gaudinet.json", '{"NIC_NET_CONFIG": []}')
    (sources,) = [path for path in prepared.files() if path.startswith("/etc/apt/sources.list.d/")]
    host.write(sources, prepared.files()[sources].text.replace(prepared.REPOSITORY, VAULT))
    own = ".".join(map(str, sys.version_info[:2]))
    cluster.all.update(pytorch_repository_url="http://127.0.0.1:9/pt", pytorch_python_versions=[own])
    run = cluster.play("site.yml", "--tags", "drivers,fabric,pytorch", screen=True)
    assert run.returncode != 0 and run.changed() == set()
    (message,) = run.messages()
    told = message.splitlines()
    assert len(told) == 4, message
    # What the modules predicted is in the answer, and not on the screen.
    assert run.result("gaudi-1", "Ask every host what the phases would change there")["found"].keys() >= {"driver"}
    shown = " ".join(" ".join(cluster.screen.splitlines()[:-1]).split())
    assert shown.count(" ".join(told[0].split())) == 2 and len(shown) < 4 * len(message) and "{" not in shown
    for line, word in zip(told, ("Secure Boot", sources, "mode=unmanaged", "http://127.0.0.1:9/pt"), strict=True):
        assert word in line, message


def test_a_template_that_fails_is_the_variables_fault_and_not_the_nodes(cluster: Cluster) -> None:
    """It was said that the nodes' facts cannot be read, with the advice to leave all nodes out."""
    cluster.gaudi(2, cards=1)
    cluster.all["trainer_user"] = "{{ nowhere }}"
    cluster.variables["gaudi-2"] |= {"trainer_user": "me", "synapseai_release": "{{ ['1.23.0-695'] }}"}
    run = preflight(cluster, "--tags", "train")
    assert run.returncode != 0 and run.changed() == set() and plays(run)[-1] == "Look at the hosts"
    said = {host: run.result(host, "Refuse what cannot work")["msg"] for host in ("gaudi-1", "gaudi-2")}
    assert said["gaudi-1"].startswith("trainer_user") and said["gaudi-1"].endswith(
        ": correct its template, or define what it names."
    )
    assert said["gaudi-2"].startswith("What the run would change on gaudi-2 cannot be found out (")
