"""The examination of every node: a report of each on the controller, and nodes that stay as they were."""

from __future__ import annotations

import json

from .cluster import Cluster


def test_every_node_gets_a_report_and_is_left_alone(cluster: Cluster) -> None:
    cluster.gaudi(1)
    cluster.add("gaudi-2", "gaudi", driver=False)
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
    )
    assert run.returncode == 0, run.messages()
    assert {name: host.files() for name, host in cluster.hosts.items()} == before
    assert [host.acts() for host in cluster.hosts.values()] == [[], []]
    assert cluster.become_asked == []
    reports = {name: json.loads((cluster.folder / f"doctor/{name}.json").read_text()) for name in cluster.hosts}
    whole, bare = (reports[name]["sections"] for name in ("gaudi-1", "gaudi-2"))
    assert whole["tools"]["state"] != "not tried" and len(whole["cards"]["data"]["cards"]) == 8
    assert bare["tools"]["why"] == "there is no hl-smi on the path"
    assert bare["modules"]["odd"][0] == "the driver (module habanalabs) is not loaded"
    text = json.dumps(whole)
    assert "<host>/libtpc_kernels.so" in text and "storage-7" not in text
    told = run.result("gaudi-1", "Sum up")["msg"]
    assert told[0].startswith("gaudi-1: 8 ") and "driver 1.23.0" in told[0]
    assert told[1].startswith("gaudi-2: 8 ") and "driver not loaded" in told[1]


def test_a_consent_without_cards_is_refused_before_anything_is_examined(cluster: Cluster) -> None:
    cluster.gaudi(1, cards=0)
    run = cluster.play("doctor.yml", doctor_consent=["kill-holder"], doctor_directory=str(cluster.folder / "doctor"))
    assert run.returncode != 0
    assert any(
        "give a list of kill-holder, lost-peer, part-of-node, translated-iommu, together with doctor_cards=true" in line
        for line in run.messages()
    )
    assert not (cluster.folder / "doctor").exists()
