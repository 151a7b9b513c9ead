"""Depth deep of health.yml: collectives between nodes name slow nodes and slow ways, with forks for two hosts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..ansible_run import PlaybookRun
from .cluster import Cluster
from .host import RELEASE, STAND_INS, program


def made(cluster: Cluster, number: int, **faults: Any) -> Cluster:
    """Nodes with two cards each, the vendor's tools, and these faults of nodes and links."""
    cluster.gaudi(number, cards=2)
    meeting = cluster.folder / "meeting"
    meeting.mkdir(mode=0o777)
    meeting.joinpath("faults.json").write_text(json.dumps({"nodes": [], "links": [], **faults}))
    for name, host in cluster.hosts.items():
        program(host, "dmesg", "dmesg", "main")
        program(host, "modinfo", "kmod_tools", "modinfo")
        program(host, "manage_network_ifs.sh", "manage_network_ifs", "main", more=f', release="{RELEASE}"')
        host.write("/opt/qual/hl_qual", "#!/bin/sh\necho PASSED\n", 0o755)
        folder = host.write("/opt/hccl_demo/run_hccl_demo.py", (STAND_INS / "run_hccl_demo.py").read_text()).parent
        folder.joinpath("stand-in.json").write_text(json.dumps({"name": name, "folder": str(meeting)}))
        cluster.variables[name]["health_hccl_demo"] = str(folder)
        cluster.variables[name]["health_hl_qual"] = str(host.path("/opt/qual/hl_qual"))
        # Who runs the plays is nobody, and has no home where the modules' process has one.
        cluster.variables[name]["ansible_async_dir"] = str(host.folder / "async")
        cluster.variables[name]["gaudi_network_script"] = str(host.folder / "bin/manage_network_ifs.sh")
    return cluster


def deep(cluster: Cluster, *arguments: str, **variables: Any) -> PlaybookRun:
    given = {
        "health_depth": "deep",
        "health_directory": str(cluster.folder / "health"),
        "health_expected_cards": 2,
        "health_pair_floors": {"all2all": 10, "send_recv": 10},
        "health_pair_delay": 1,
    }
    return cluster.play("health.yml", *arguments, forks=2, **{**given, **variables})


def told(result: dict[str, Any]) -> list[str]:
    """The lines that a task shows."""
    return list(result["msg"]) if isinstance(result.get("msg"), list) else []


def passports(cluster: Cluster) -> dict[str, str]:
    """The depths of the passports that nodes have."""
    found = Path(cluster.folder, "health").glob("*.passport.json")
    return {path.name.partition(".")[0]: json.loads(path.read_text())["passport"]["depth"] for path in found}


def test_a_slow_way_between_two_nodes_is_named_and_neither_is_blamed(cluster: Cluster) -> None:
    site = made(cluster, 3, links=[["gaudi-1", "gaudi-3"]])
    predicted = deep(site, "--check", "--diff")
    assert predicted.returncode == 0, predicted.messages() or predicted.output
    planned = predicted.result("gaudi-1", "give healthy nodes their passports")["nodes"]
    assert {name for name, node in planned.items() if node["issued"]} == {"gaudi-1", "gaudi-2", "gaudi-3"}
    assert passports(site) == {}
    run = deep(site, health_mode="enforce")
    assert run.returncode == 0, run.messages() or run.output
    assert predicted.changed() == run.changed()
    lines = [line for _host, _name, result in run.results() for line in told(result)]
    rounds = [line for line in lines if line.startswith("Round ")]
    assert rounds[0] == "Round 1 of at most 13" and len(rounds) < 13
    assert lines[1:4] == ["gaudi-1 gaudi-2: passed (300 GB/s)", "Round 2 of at most 13",
                          "gaudi-3 gaudi-1: 2 GB/s is below the floor of 10"]  # fmt: skip
    for one, other in (("gaudi-1", "gaudi-3"), ("gaudi-3", "gaudi-1")):
        assert any(
            line.startswith(
                f"{one}: link to {other}: collectives with {other} fail or are slow, those with others are not"
            )
            for line in lines
        )
    assert passports(site) == {"gaudi-2": "deep"}
    assert {name for _host, name in run.changed()} == {
        "Make the folder of reports and passports", "Write the reports, and give healthy nodes their passports",
    }  # fmt: skip
