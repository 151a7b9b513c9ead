"""What a site's plays do on the machine that runs them, which is not a host of the site."""

from __future__ import annotations

import json
import pwd
from pathlib import Path
from typing import Any

from .cluster import Cluster, unprivileged


def test_nothing_on_the_controller_is_done_as_root(cluster: Cluster, wheel: str) -> None:
    """Inventories say ansible_become for all hosts; who runs the play may still have no sudo on the own machine."""
    cluster.gaudi(1, cards=0, variables={"ansible_become": False, "trainer_cards": 8})
    cluster.add("mon", "monitoring", cards=0, system="debian", variables={"ansible_become": False})
    cluster.all = {"ansible_become": True, "gaudi_secrets_dir": str(cluster.folder / "secrets"), "trainer_wheel": wheel}
    facts = {"gather_facts": True, "gather_subset": ["!all", "!min", "distribution"]}
    plays = [
        {"hosts": "monitoring", "roles": ["gaudi3.scale.prometheus"], **facts},
        {"hosts": "gaudi", "roles": ["gaudi3.scale.trainer"], "gather_facts": False},
    ]
    path = cluster.folder / "controller.yml"
    path.write_text(json.dumps(plays))
    environment = {} if unprivileged() else {"ANSIBLE_BECOME_ALLOW_SAME_USER": "1"}
    run = cluster.play(str(path), "--check", "--tags", "prometheus_verify,trainer_install", environment=environment)
    assert cluster.become_asked == [] and run.returncode == 0, run.messages()


def test_the_wheel_is_brought_to_a_node_that_has_it_not(cluster: Cluster, wheel: str) -> None:
    """The trainer is installed for real, into a folder of the test, from a wheel that only the controller has."""
    cluster.gaudi(1, cards=0, variables={"trainer_cards": 8})
    root = cluster.folder / "opt"
    given = {
        "trainer_wheel": wheel,
        "trainer_root": str(root),
        "trainer_user": "nobody",
        "pytorch_state": "preinstalled",
    }
    arguments = ("--tags", "trainer_install", "--skip-tags", "trainer_preflight")
    run = cluster.role("trainer", *arguments, facts=False, **given)
    assert run.returncode == 0, run.messages()
    assert run.result("gaudi-1", "Install the trainer")["done"] == ["venv", "trainer"]
    asked = [call for call in cluster["gaudi-1"].calls if call.startswith("setpriv")]
    nobody = pwd.getpwnam("nobody")
    identity = f"--reuid={nobody.pw_uid} --regid={nobody.pw_gid} --init-groups"
    assert asked == [f"setpriv {identity} -- {root}/venv/bin/python -I -c import torch, habana_frameworks.torch"]
    installed = sorted(path.name for path in Path(root).rglob("gaudi3-train*") if path.is_file())
    assert installed == ["gaudi3-train"], list(Path(root).rglob("*"))


def test_a_first_host_without_the_trainer_leaves_it_to_the_others(cluster: Cluster, wheel: str) -> None:
    """It builds for all, though nothing is installed on it: one is drained, the other has a state of its own."""
    cluster.gaudi(2, cards=0, variables={"trainer_cards": 8})
    cluster.variables["gaudi-1"]["trainer_state"] = "stopped"
    cluster.all |= {"trainer_wheel": wheel, "trainer_user": "nobody", "pytorch_state": "preinstalled"}
    root = cluster.folder / "opt"
    cluster.variables["gaudi-2"]["trainer_root"] = str(root)
    for nodes in (["gaudi-2"], ["gaudi-1", "gaudi-2"]):
        given: dict[str, Any] = {"trainer_nodes": nodes, "trainer_head": "gaudi-2"}
        run = cluster.role("trainer", "--tags", "trainer_install", facts=False, **given)
        assert run.returncode == 0, run.messages()
        ran = [(host, name.rpartition(" : ")[2]) for host, name, result in run.results() if not result.get("skipped")]
        assert [host for host, name in ran if name == "Install the trainer"] == ["gaudi-2"], ran
    assert (root / "venv/bin/gaudi3-train").is_file()
