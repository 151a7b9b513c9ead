"""A node whose answers are made up sets no variable: a setting is refused, and without it facts are data."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from .cluster import Cluster
from .host import CHECKOUT

SENTENCE = (
    "inject_facts_as_vars is true in Ansible's settings, with which a node's answer sets variables of this run: put "
    "'inject_facts_as_vars = False' below [defaults] into your ansible.cfg, or set ANSIBLE_INJECT_FACT_VARS=False."
)
#: What Ansible itself runs with.
DEFAULTS = {"ANSIBLE_INJECT_FACT_VARS": "True"}


def lie(cluster: Cluster, name: str, **facts: object) -> Path:
    """Have every module on a node answer with these facts; the file that is there once the node was asked."""
    host = cluster[name]
    answer = {"changed": False, "ansible_facts": facts, "report": {"of": name}, "summary": "fine"}
    asked, interpreter = host.folder / "asked", host.folder / "bin/liar"
    interpreter.write_text(f"#!/bin/sh\ntouch '{asked}'\ncat <<'EOF'\n{json.dumps(answer)}\nEOF\n")
    interpreter.chmod(0o755)
    cluster.variables[name]["ansible_python_interpreter"] = str(interpreter)
    return asked


def test_a_node_does_not_choose_the_folder_of_the_reports(cluster: Cluster) -> None:
    cluster.gaudi(1)
    asked = lie(cluster, "gaudi-1", doctor_directory="inventory", trainer_user="root")
    refused = cluster.play("doctor.yml", "--limit", "gaudi-1", environment={**DEFAULTS, "PWD": str(cluster.folder)})
    assert (refused.returncode != 0, refused.messages(), asked.exists()) == (True, [SENTENCE], False)
    # A run may leave out the play that asks.
    for left_out in (("--skip-tags", "always"), ("--start-at-task", "Examine the node")):
        late = cluster.play("doctor.yml", *left_out, environment={**DEFAULTS, "PWD": str(cluster.folder)})
        assert late.returncode != 0 and SENTENCE in late.everything and asked.exists(), left_out
        asked.unlink()
    done = cluster.play("doctor.yml", environment={"PWD": str(cluster.folder)})
    assert (done.returncode, asked.exists()) == (0, True), done.messages()
    assert [path.name for path in (cluster.folder / "inventory").iterdir()] == ["hosts.yml"]
    [report] = (cluster.folder / "home/.local/state/gaudi3-scale").glob("*/doctor/gaudi-1.json")
    assert json.loads(report.read_text()) == {"of": "gaudi-1"}


def test_roles_that_take_values_of_other_hosts_refuse_the_settings_when_used_alone(cluster: Cluster) -> None:
    cluster.gaudi(2, cards=0)
    cluster.add("mon", "monitoring", driver=False)
    asked = lie(cluster, "gaudi-2", gaudi_cluster_address="10.0.0.1")
    roles = {"firewall": "gaudi-1", "prometheus": "mon"}
    play = [
        {"hosts": "gaudi-2", "gather_facts": False, "tasks": [{"ansible.builtin.ping": {}}]},
        {
            "hosts": list(roles.values()),
            "vars": {"firewall_enabled": True},
            "roles": [
                {"role": f"gaudi3.scale.{role}", "when": f"inventory_hostname == '{host}'"}
                for role, host in roles.items()
            ],
        },
    ]
    own = cluster.folder / "own.yml"
    own.write_text(json.dumps(play))
    before = {name: cluster[name].files() for name in roles.values()}
    run = cluster.play(str(own), environment=DEFAULTS)
    assert asked.exists() and len(run.messages()) == 2
    assert all(SENTENCE in message for message in run.messages()), run.messages()
    assert {name: cluster[name].files() for name in before} == before


def test_playbooks_beside_the_site_have_no_complaint_and_the_new_inventory_is_safe(cluster: Cluster) -> None:
    """Those that no other test plays; that Ansible says nothing against them is asked of each run."""
    cluster.gaudi(1)
    names = ("verify", "health_timer", "renew_certificates", "new_inventory")
    together = cluster.folder / "together.yml"
    paths = [str(CHECKOUT / f"playbooks/{name}.yml") for name in names]
    together.write_text(json.dumps([{"ansible.builtin.import_playbook": path} for path in paths]))
    free = {"PWD": str(cluster.folder), "ANSIBLE_STRATEGY": "free"}
    run = cluster.play(str(together), "--diff", environment=free, folder="mine", gaudi_metrics_tls="false")
    assert run.returncode == 0, run.messages()
    made = cluster.folder / "mine"
    assert f"export ANSIBLE_CONFIG={made}/ansible.cfg" in run.result("localhost", "Say what to do next")["msg"]
    # The collection is no place where Ansible looks without a setting, so the new settings have it, too.
    example = (CHECKOUT / "examples/inventory/ansible.cfg").read_text()
    found = f"[defaults]\ncollections_path = {CHECKOUT / 'collections'}\n"
    assert (made / "ansible.cfg").read_text() == example.replace("[defaults]\n", found)
    assert os.access(made / "hosts.yml", os.R_OK)
    # An editor finds the schemas without a network, and Ansible does not take them for inventories.
    for name in ("hosts.yml", "group_vars/all.yml"):
        (schema,) = re.findall(r"^# yaml-language-server: \$schema=(.+)$", (made / name).read_text(), re.M)
        assert ((made / name).parent / schema).is_file() and "/.schemas/" in f"/{schema}"
    # /proc takes no folder, not even of root.
    closed = cluster.play("new_inventory.yml", folder="/proc/mine")
    said = closed.messages()[-1]
    assert closed.returncode != 0 and said.startswith("/proc/mine could not be written (")
    assert said.endswith("): give a folder that does not exist yet, in one where you may write, with -e folder=NAME.")


def test_certificates_of_logs_are_renewed_where_logs_are_sent_alone(cluster: Cluster) -> None:
    cluster.gaudi(2)
    cluster.add("mon", "monitoring", driver=False)
    cluster["gaudi-2"].path("/etc/gaudi3-scale/logs").mkdir(parents=True)
    run = cluster.play("renew_certificates.yml", "--check", gaudi_metrics_tls="false", grafana_enabled="false")
    worked_on = {host for host, name, result in run.results() if "logs : " in name and not result.get("skipped")}
    assert (run.messages(), worked_on) == ([], {"gaudi-2"})
    run.result("gaudi-2", "Say when the certificates end: logs")
