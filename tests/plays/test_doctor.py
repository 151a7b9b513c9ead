"""The examination of every node: a report of each on the controller, and nodes that stay as they were."""

from __future__ import annotations

import json
import shutil

from .cluster import Cluster


def test_every_node_gets_a_report_and_is_left_alone(cluster: Cluster) -> None:
    cluster.gaudi(1)
    cluster.add("gaudi-2", "gaudi", driver=False)
    if shutil.which("ssh"):
        ssh = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1, "ansible_ssh_retries": 0}
        cluster.add("gaudi-3", "gaudi", cards=0, variables=ssh)
    cluster["gaudi-1"].write("/etc/hostname", "storage-7.example.org\n")
    cluster["gaudi-1"].write(
        "/etc/profile.d/habanalabs.sh", "export GC_KERNEL_PATH=/nowhere/storage-7/libtpc_kernels.so\n"
    )
    before = {name: host.files() for name, host in cluster.hosts.items()}
    run = cluster.play(
        "doctor.yml",
        doctor_quick=True,
        doctor_directory=str(cluster.folder / "doctor"),
        trainer_root="/nowhere",
        trainer_python="/nowhere/python3",
        screen=True,
    )
    silent = shutil.which("ssh") is not None
    assert (run.returncode == 0) is not silent, run.messages()
    assert (
        run.messages()[silent:]
        == [
            "gaudi-3 was not examined, as it does not answer: see that it runs and that ssh reaches it, then run again."
        ]
        * silent
    )
    assert {name: host.files() for name, host in cluster.hosts.items()} == before
    assert [act for host in cluster.hosts.values() for act in host.acts()] == []
    assert cluster.become_asked == []
    names = ("gaudi-1", "gaudi-2")
    reports = {name: json.loads((cluster.folder / f"doctor/{name}.json").read_text()) for name in names}
    whole, bare = (reports[name]["sections"] for name in ("gaudi-1", "gaudi-2"))
    assert whole["tools"]["state"] != "not tried" and len(whole["cards"]["data"]["cards"]) == 8
    assert bare["tools"]["why"] == "there is no hl-smi on the path"
    assert bare["modules"]["odd"][0] == "the driver (module habanalabs) is not loaded"
    text = json.dumps(whole)
    assert "<host>/libtpc_kernels.so" in text and "storage-7" not in text
    told = run.result("gaudi-1", "Sum up")["msg"]
    heads = [line for line in told if line.startswith("gaudi-")]
    assert heads[0].startswith("gaudi-1: 8 ") and "driver 1.23.0" in heads[0]
    assert heads[1].startswith("gaudi-2: 8 ") and "driver not loaded" in heads[1]
    # Each finding is a sentence, and says where it is cured.
    own = told[told.index(heads[0]) + 1 : told.index(heads[1])]
    assert "  tools: hl-smi refuses 1 fields: ecc.errors.hbm.sram.critical" in own
    cured = told[told.index(heads[1]) + 1 :]
    phase = cured[cured.index("  cured by the phase drivers:") + 1 :]
    assert "    the driver (module habanalabs) is not loaded" in phase
    if silent:
        assert told[-5:-3] == [
            "gaudi-3: does not answer: no ssh server",
            "  127.0.0.1 is there, and nothing listens on its port 1. Start the ssh server there, or set ansible_port.",
        ]
        assert told[-2:] == ["Next (no ssh server):", "  ssh -v -p 1 127.0.0.1"]
    screen = cluster.screen.splitlines()
    assert max(map(len, screen[:-1])) <= 80 and "{" not in "".join(screen[:-1]), screen


def test_a_consent_without_cards_is_refused_before_anything_is_examined(cluster: Cluster) -> None:
    cluster.gaudi(1, cards=0)
    run = cluster.play("doctor.yml", doctor_consent=["kill-holder"], doctor_directory=str(cluster.folder / "doctor"))
    assert run.returncode != 0
    assert any(
        "give a list of kill-holder, lost-peer, part-of-node, translated-iommu, together with doctor_cards=true" in line
        for line in run.messages()
    )
    assert not (cluster.folder / "doctor").exists()
