"""What role slurm gives a node where Slurm is installed, and what it says where it is not."""

from __future__ import annotations

import json
import os
import subprocess

from .cluster import Cluster
from .host import CHECKOUT, Host

FOLDER = "/usr/local/lib/gaudi-slurm"
DROP_IN = "/etc/systemd/system/slurmd.service.d/gaudi3-scale.conf"


def command(host: Host, name: str, body: str) -> None:
    """A command of the node's."""
    place = host.folder / "bin" / name
    place.write_text(f"#!/bin/sh\n{body}\n")
    place.chmod(0o755)


def node(cluster: Cluster, version: str = "slurm-wlm 22.05.8") -> Host:
    cluster.gaudi(1, cards=8)
    host = cluster["gaudi-1"]
    command(host, "slurmd", f"echo {version}")
    command(host, "munge", "exit 0")
    return host


def test_the_programs_and_the_drop_in_are_written_once_and_slurmd_is_left_as_it_is(cluster: Cluster) -> None:
    host = node(cluster)
    checked = cluster.role("slurm", "--check")
    assert checked.returncode == 0 and not host.path(DROP_IN).exists(), checked.messages()
    first = cluster.role("slurm", slurm_allow_partial_nodes=True)
    assert first.returncode == 0, first.messages()
    assert [act for act in host.acts() if "slurmd" in act] == []
    options = "--cards 8 --gres-conf /etc/slurm/gres.conf --allow-partial --examine examine --hl-smi /usr/bin/hl-smi"
    assert (
        f"timeout -k 5 55 /usr/bin/python3 -s {FOLDER}/gaudi_slurm.py health {options}\n"
        in host.path(f"{FOLDER}/health").read_text()
    )
    start = f"ExecStartPre=/usr/bin/python3 -s {FOLDER}/gaudi_slurm.py gres --cards 8 --gres-conf /etc/slurm/gres.conf"
    assert start in host.path(DROP_IN).read_text().splitlines()
    assert host.path(f"{FOLDER}/prolog").stat().st_mode & 0o777 == 0o755
    again = cluster.role("slurm", slurm_allow_partial_nodes=True)
    assert (again.returncode, again.changed()) == (0, set()), again.messages()

    # The program brings all that it imports, and runs with the node's own Python.
    program = [str(host.interpreter), "-s", str(host.path(f"{FOLDER}/gaudi_slurm.py"))]
    gres = host.path("/etc/slurm/gres.conf")
    gres.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [*program, "gres", f"--gres-conf={gres}", f"--sysfs={host.path('/sys')}"], capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert gres.read_text().count("\nName=gpu Type=gaudi3 MultipleFiles=/dev/accel/accel") == 8
    done = subprocess.run(
        [*program, "task-prolog", f"--gres-conf={gres}", f"--sysfs={host.path('/sys')}"],
        env={**os.environ, "SLURM_JOB_GPUS": "4-5"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "export HABANA_VISIBLE_MODULES=4,5\n" in done.stdout, done.stderr


def test_a_node_without_slurm_or_munge_is_refused_before_a_change(cluster: Cluster) -> None:
    host = node(cluster)
    command(host, "slurmd", "echo 'not found' >&2; exit 127")
    refused = cluster.role("slurm")
    assert refused.returncode != 0
    assert refused.messages() == [
        "slurmd is not installed on gaudi-1: install Slurm 22.05 or newer (Debian 12: apt-get install slurmd munge), "
        "have it set up with slurm_existing: false, or take the host out of the group gaudi."
    ]
    command(host, "slurmd", "echo slurm-wlm 22.05.8")
    command(host, "munge", "exit 1")
    refused = cluster.role("slurm")
    assert refused.messages()[0].startswith("There is no /etc/munge/munge.key on gaudi-1: copy that of the other hosts")
    command(host, "munge", "exit 0")
    command(host, "slurmd", "echo slurm 26.11.0")
    refused = cluster.role("slurm")
    assert refused.messages() == ["gaudi-1: Slurm is 26.11, and 22.05 to 26.05 are known here: install one of these."]
    refused = cluster.role("slurm", slurm_expected_cards=7)
    assert refused.messages() == [
        "slurm_expected_cards is 7: give 8, or how many of a node's cards are there (1, 2 or 4)."
    ]
    assert not host.path(FOLDER).exists()


def test_what_was_written_is_removed(cluster: Cluster) -> None:
    host = node(cluster, "slurm 24.11.5")
    assert cluster.role("slurm").returncode == 0
    play = cluster.folder / "remove.yml"
    play.write_text(
        "- hosts: gaudi\n  gather_facts: false\n  tasks:\n"
        "    - ansible.builtin.include_role: {name: gaudi3.scale.slurm, tasks_from: remove}\n"
    )
    assert cluster.play(str(play)).returncode == 0
    assert not host.path(FOLDER).exists() and not host.path(DROP_IN).exists()


def test_its_variables_are_checked_behind_the_preflight_of_another_playbook(cluster: Cluster) -> None:
    node(cluster)
    both = cluster.folder / "both.yml"
    names = ("preflight", "slurm")
    both.write_text(json.dumps([{"import_playbook": str(CHECKOUT / f"playbooks/{name}.yml")} for name in names]))
    skipped = ("--skip-tags", "monitoring,train,pytorch")
    run = cluster.play(str(both), *skipped, slurm_enforce=["everything"])
    assert run.returncode != 0 and run.changed() == set()
    assert "slurm_enforce" in run.messages()[-1] and "everything" in run.messages()[-1], run.messages()
