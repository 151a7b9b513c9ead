"""The driver's packages on RHEL, with stand-ins for dnf and rpm: what is asked of them, and what is put back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from ..ansible_run import PlaybookRun
from .cluster import Cluster
from .host import CHECKOUT, RELEASE

#: On the controller, since a host's Python finds no module of a test's: answers what the host's folder says.
_DNF = """
import json, pathlib
from ansible.plugins.action import ActionBase
class ActionModule(ActionBase):
    _requires_connection = False
    _supports_check_mode = True
    def run(self, tmp=None, task_vars=None):
        known = pathlib.Path(task_vars["ansible_remote_tmp"]).parent / "dnf.json"
        return {"failed": True, **json.loads(known.read_text())} if known.exists() else {"changed": True}
"""
_OTHER = """
from ansible.plugins.action import ActionBase
class ActionModule(ActionBase):
    _requires_connection = False
    _supports_check_mode = True
    def run(self, tmp=None, task_vars=None):
        return {"changed": False}
"""
_POLICIES = """#!/bin/sh
[ "$1" = --show ] && { cat "$STAND_IN_HOST/policy"; exit; }
echo "$2" > "$STAND_IN_HOST/policy"
echo "$2" >> "$STAND_IN_HOST/policies"
"""
POLICY = "DEFAULT:NO-SHA224"


def renamed(tasks: list[dict[str, Any]], until: str = "") -> list[dict[str, Any]]:
    """The tasks with the stand-ins' names; those after the one that is named ``until`` are never reached."""
    stand_ins = {"ansible.builtin.dnf": "dnf_here", "ansible.builtin.rpm_key": "other_here"}
    stand_ins["gaudi3.scale.synapseai_rpm_key"] = "other_here"
    made: list[dict[str, Any]] = []
    for task in tasks:
        task = {stand_ins.get(key, key): value for key, value in task.items()}
        if until and "block" in task and "always" in task:
            task.pop("always")
        for key in ("block", "always"):
            if key in task:
                task[key] = renamed(task[key], until)
        made.append(task)
        if until and task["name"] == until:
            break
    return made


def rhel(cluster: Cluster) -> None:
    cluster.gaudi(1, cards=0, system="redhat")
    host = cluster["gaudi-1"]
    for path in ("/etc/yum.repos.d", "/etc/pki/rpm-gpg"):
        host.path(path).mkdir(parents=True)
    (host.folder / "policy").write_text(f"{POLICY}\n")
    for name, text in (("update-crypto-policies", _POLICIES), ("rpm", "#!/bin/sh\necho 1.0.0-1.el9\n")):
        (host.folder / "bin" / name).write_text(text)
        (host.folder / "bin" / name).chmod(0o755)
    for folder in ("action_plugins", "library"):
        (cluster.folder / folder).mkdir()
        for name, text in (("dnf_here", _DNF), ("other_here", _OTHER)):
            (cluster.folder / folder / f"{name}.py").write_text(text)


def install(cluster: Cluster, *arguments: str, until: str = "", **variables: Any) -> PlaybookRun:
    source = CHECKOUT / "roles/synapseai"
    tasks = renamed(yaml.safe_load((source / "tasks/install-dnf.yml").read_text()), until)
    (cluster.folder / "install.yml").write_text(yaml.safe_dump(tasks))
    play = {
        "hosts": "gaudi",
        "gather_subset": ["!all", "!min", "distribution"],
        "vars_files": [str(source / "defaults/main.yml"), str(source / "vars/main.yml")],
        "tasks": [{"ansible.builtin.include_tasks": str(cluster.folder / "install.yml")}],
    }
    (cluster.folder / "play.yml").write_text(json.dumps([play]))
    given = {"synapseai_prerequisites": [], "synapseai_release": RELEASE, **variables}
    return cluster.play(str(cluster.folder / "play.yml"), *arguments, **given)


def policies(folder: Path) -> list[str]:
    path = folder / "policies"
    return path.read_text().split() if path.exists() else []


def test_the_crypto_policy_is_put_back_after_an_interruption(cluster: Cluster) -> None:
    rhel(cluster)
    host = cluster["gaudi-1"]
    broken = install(cluster, until="Accept SHA-1 signatures for now", synapseai_rpm_accept_sha1=True)
    assert broken.returncode == 0 and policies(host.folder) == [f"{POLICY}:SHA1"], broken.messages()
    # The next run, which may be one that does not accept SHA-1 any more.
    after = install(cluster)
    assert after.returncode == 0 and policies(host.folder) == [f"{POLICY}:SHA1", POLICY], after.messages()
    # A whole run changes it and puts it back, also where dnf fails.
    host.give(dnf={"msg": "no", "failures": []})
    whole = install(cluster, synapseai_rpm_accept_sha1=True)
    assert whole.messages() == ["no"]
    assert policies(host.folder)[2:] == [f"{POLICY}:SHA1", POLICY]
    assert not host.path("/etc/gaudi3-scale/crypto-policy").exists()


def test_a_dry_run_forgives_what_the_repository_would_bring_alone(cluster: Cluster) -> None:
    rhel(cluster)
    host = cluster["gaudi-1"]
    missing = {"msg": "Failed to install some of the specified packages"}
    host.give(dnf={**missing, "failures": [f"No package habanalabs-{RELEASE}.el9 available."]})
    assert install(cluster, "--check").returncode == 0
    host.give(dnf={**missing, "failures": ["No package kernel-devel-5.14 available."]})
    assert install(cluster, "--check").messages() == [missing["msg"]]
