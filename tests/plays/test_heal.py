"""The healing loop through the real playbook: what it would do, what it does, and what it leaves alone."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable
from typing import Any

import pytest

from gaudi3_simulator.node import hl_smi, manage_network_ifs

from ..ansible_run import PlaybookRun
from .cluster import Cluster
from .host import RELEASE, Host, _environment, program
from .test_health import fault, hung

FENCE = "/var/lib/gaudi3-scale/health/fence.json"
HISTORY = "/var/lib/gaudi3-scale/health/history.jsonl"
UNIT = "gaudi-train-demo.service"


def made(cluster: Cluster, number: int, cards: int = 1) -> Cluster:
    """Nodes with a card each, on which a job runs."""
    cluster.gaudi(number, cards=cards)
    for host in cluster.hosts.values():
        program(host, "dmesg", "dmesg", "main")
        program(host, "modinfo", "kmod_tools", "modinfo")
        program(host, "manage_network_ifs.sh", "manage_network_ifs", "main")
        script = (host.folder / "bin/manage_network_ifs.sh").read_text()
        script = script.replace("main(sys.argv[1:])", f'main(sys.argv[1:], release="{RELEASE}")')
        host.write("/opt/habanalabs/qual/gaudi3/bin/manage_network_ifs.sh", script, 0o755)
        host.write(f"/etc/systemd/system/{UNIT}", "[Service]\nExecStart=/bin/true\n")
        host.unit("gaudi-train-demo")
    return cluster


@pytest.fixture(scope="module", name="site")
def a_site(new_cluster: Callable[[], Cluster]) -> Cluster:
    """Three nodes: two have a card that needs a reset."""
    cluster = made(new_cluster(), 3)
    fault(cluster["gaudi-2"], "needs-reset", "--card", "0")
    fault(cluster["gaudi-3"], "needs-reset", "--card", "0")
    return cluster


def heal(cluster: Cluster, *arguments: str, **variables: Any) -> PlaybookRun:
    given = {"health_directory": str(cluster.folder / "health"), "health_expected_cards": 1}
    return cluster.play("heal.yml", *arguments, **{**given, **variables})


def fenced(cluster: Cluster) -> dict[str, str]:
    """Steps of the nodes that are out of service."""
    paths = {name: host.path(FENCE) for name, host in cluster.hosts.items()}
    return {name: json.loads(path.read_text())["step"] for name, path in paths.items() if path.exists()}


def happened(cluster: Cluster, name: str) -> list[tuple[str, str]]:
    """What happened to a node, and with which step."""
    path = cluster[name].path(HISTORY)
    lines = path.read_text().splitlines() if path.exists() else []
    return [(entry["what"], entry["step"]) for entry in map(json.loads, lines)]


def state(cluster: Cluster, folder: str = "health") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((cluster.folder / folder / "fleet.json").read_text())
    return found


def test_in_shadow_mode_it_says_what_it_would_do(site: Cluster) -> None:
    before = {name: host.files() for name, host in site.hosts.items()}
    run = heal(site)
    assert run.returncode == 0, run.messages()
    assert {name: host.files() for name, host in site.hosts.items()} == before
    lines = run.result("gaudi-1", "Sum up")["msg"]
    assert [line.split(" (")[0] for line in lines[:-1]] == [
        "gaudi-2: would reset: accel0: the driver says 'Needs reset' of accel0",
        "gaudi-3: would reset: accel0: the driver says 'Needs reset' of accel0",
    ]


def test_two_faulty_nodes_at_once_are_reset_tested_and_return(site: Cluster) -> None:
    enforced = {"health_mode": "enforce", "health_share": 0.7}
    sentence = hung(site, "gaudi-2", "gaudi-1")
    before = {name: host.files() for name, host in site.hosts.items()}
    predicted = heal(site, "--check", "--diff", **enforced)
    assert predicted.returncode == 0, predicted.messages()
    assert {name: host.files() for name, host in site.hosts.items()} == before
    run = heal(site, **enforced)
    assert run.returncode == 0, run.messages()
    assert predicted.changed() == run.changed()
    assert fenced(site) == {}
    assert {name: host.acts() for name, host in site.hosts.items()} == {
        "gaudi-1": [],
        "gaudi-2": [f"systemctl stop {UNIT}"],
        "gaudi-3": [f"systemctl stop {UNIT}"],
    }
    assert happened(site, "gaudi-2") == [("out", "reset"), ("in service", "")]
    assert happened(site, "gaudi-1") == [], "a suspect on which a job runs is not tested, and its job goes on"
    assert f"gaudi-1 is a suspect: job other: {sentence}" in run.result("gaudi-1", "Sum up")["msg"]
    did = [entry["do"] for entry in state(site)["record"] if entry["node"] == "gaudi-1"]
    assert did == ["suspect", "test", "put off"]
    assert {node["state"] for node in state(site)["nodes"].values()} == {"in service"}
    fault(site["gaudi-1"], "hl-smi-hang")
    again = heal(site, **enforced, health_timeout=3)
    fault(site["gaudi-1"], "hl-smi-hang", "--clear")
    assert (again.returncode, again.changed()) == (0, set()), "a tool that hangs takes no node out"
    assert again.result("gaudi-2", "Examine the node")["history"][-1]["what"] == "in service"


def test_a_second_remediation_goes_to_a_person_and_the_budget_holds_others_back(site: Cluster) -> None:
    fault(site["gaudi-2"], "needs-reset", "--card", "0")
    run = heal(site, health_mode="enforce", health_share=1)
    assert run.returncode == 0, run.messages()
    assert fenced(site) == {"gaudi-2": "isolate"}
    said = "\n".join(run.result("gaudi-1", "Sum up")["msg"])
    assert "gaudi-2: call a person: second remediation within 7 days" in said
    fault(site["gaudi-2"], "needs-reset", "--card", "0", "--clear")
    fault(site["gaudi-1"], "needs-reset", "--card", "0")
    fault(site["gaudi-3"], "device-acquired", "--card", "0")
    pid = json.loads(site["gaudi-3"].path("/var/lib/gaudi3-simulator/state.json").read_text())["faults"][0]["pid"]
    site["gaudi-3"].write(f"/proc/{pid}/comm", "python3\n")
    try:
        # Another controller: it has no record, and the node is no less out of service.
        elsewhere = str(site.folder / "elsewhere")
        back = heal(site, health_mode="enforce", health_released="gaudi-2", health_directory=elsewhere)
    finally:
        fault(site["gaudi-3"], "device-acquired", "--card", "0", "--clear")
    assert back.returncode == 0, back.messages()
    assert fenced(site) == {}, "neither the budget's node nor the user's"
    did = [(entry["node"], entry["do"]) for entry in state(site, "elsewhere")["record"]]
    assert did[:2] == [("gaudi-2", "take over"), ("gaudi-2", "test")]
    assert sorted(did[2:]) == [
        ("gaudi-1", "hold"),
        ("gaudi-1", "suspect"),
        ("gaudi-2", "return"),
        ("gaudi-3", "notify the user"),
    ]


@pytest.fixture(name="pair")
def a_pair(cluster: Cluster) -> Cluster:
    return made(cluster, 2)


#: In place of a reset: the controller dies, or the tool refuses.
_DIES = "kill -9 $STAND_IN_CONTROLLER; exit 1"


def instead_of_a_reset(cluster: Cluster, name: str, script: str) -> None:
    """Have hl-smi of a host do something else when it is asked for a reset."""
    tool = cluster[name].folder / "bin/hl-smi"
    last = tool.read_text().splitlines()[-1]
    tool.write_text(f'#!/bin/sh\ncase " $* " in *" -r "*)\n  {script};;\nesac\n{last}\n')


def test_a_controller_that_dies_goes_on_and_a_step_that_fails_is_followed_by_the_next(pair: Cluster) -> None:
    fault(pair["gaudi-2"], "needs-reset", "--card", "0")
    instead_of_a_reset(pair, "gaudi-2", _DIES)
    assert heal(pair, health_mode="enforce").returncode == -9
    assert state(pair)["nodes"]["gaudi-2"]["state"] == "repairing"
    assert fenced(pair) == {"gaudi-2": "reset"}
    instead_of_a_reset(pair, "gaudi-2", "echo the card does not answer >&2; exit 1")
    run = heal(pair, health_mode="enforce")
    assert run.returncode == 0, run.messages()
    assert happened(pair, "gaudi-2") == [("out", "reset"), ("out", "reload"), ("in service", "")], run.messages()
    assert fenced(pair) == {}
    decided = [entry["do"] for entry in state(pair)["record"] if entry["node"] == "gaudi-2"]
    assert decided == ["reset", "reload", "test", "return"]


def test_what_no_step_heals_stays_out_until_a_person_gives_it_back(cluster: Cluster) -> None:
    """A reboot is the step that Ansible refuses on this machine, so it fails here."""
    pair = made(cluster, 1)
    fault(pair["gaudi-1"], "pcie-width", "--card", "0")
    run = heal(pair, health_mode="enforce")
    assert run.returncode == 0, run.messages()
    assert fenced(pair) == {"gaudi-1": "isolate"}
    assert [entry["do"] for entry in state(pair)["record"]] == ["reboot", "isolate", "call a person"]
    refused = pair.role("trainer", "--tags", "trainer_job", "--skip-tags", "trainer_preflight", facts=False,
                        trainer_job_name="next", trainer_user="nobody", trainer_cards=1)  # fmt: skip
    assert any("This node is out of service (step: isolate): accel0: " in line for line in refused.messages())

    # Tested at the depth that was asked for, and not given back on a look at its state alone.
    fault(pair["gaudi-1"], "pcie-width", "--card", "0", "--clear")
    qual = pair["gaudi-1"].write("/opt/qual/hl_qual", "#!/bin/sh\necho FAILED\nexit 1\n", 0o755)
    given = {
        "health_mode": "enforce",
        "health_released": "gaudi-1",
        "health_depth": "standard",
        "health_hl_qual": str(qual),
    }
    heal(pair, **given)
    assert fenced(pair) == {"gaudi-1": "isolate"}
    assert [entry["do"] for entry in state(pair)["record"][3:]] == ["test", "isolate", "call a person"]
    qual.write_text("#!/bin/sh\necho PASSED\n")
    heal(pair, **given)
    assert fenced(pair) == {}
    assert [entry["do"] for entry in state(pair)["record"][6:]] == ["test", "return"]


def tool(host: Host, main: Callable[..., int], *words: str) -> str:
    """Call one of the vendor's tools on a host, and return what it prints."""
    said = io.StringIO()
    with _environment({"GAUDI3_SIMULATOR_ROOT": str(host.root)}), contextlib.redirect_stdout(said):
        assert main(words, release=RELEASE) == 0
    return said.getvalue()


def test_ports_that_are_down_are_flipped_once_their_node_is_out_of_service(cluster: Cluster) -> None:
    """Somebody reset a card by hand, which leaves its ports down."""
    pair = made(cluster, 2, cards=2)
    for host in pair.hosts.values():
        tool(host, manage_network_ifs.main, "--up")
    bus_id = tool(pair["gaudi-2"], hl_smi.main, "-Q", "bus_id", "-f", "csv,noheader").split()[0]
    tool(pair["gaudi-2"], hl_smi.main, "-r", "-i", bus_id)
    assert "3 ports down" in tool(pair["gaudi-2"], manage_network_ifs.main, "--status")
    enforced = {"health_mode": "enforce", "health_expected_cards": 2}
    predicted = heal(pair, "--check", **enforced)
    run = heal(pair, **enforced)
    assert run.returncode == 0, run.messages()
    assert predicted.changed() == run.changed()
    assert {name: host.acts() for name, host in pair.hosts.items()} == {
        "gaudi-1": [],
        "gaudi-2": [f"systemctl stop {UNIT}"],
    }
    assert happened(pair, "gaudi-2") == [("out", "retry"), ("in service", "")]
    assert "down" not in tool(pair["gaudi-2"], manage_network_ifs.main, "--status")
    assert [entry["do"] for entry in state(pair)["record"]] == ["retry", "test", "return"]


def test_a_node_that_a_job_names_for_a_hang_is_tested_under_load_and_returns(cluster: Cluster) -> None:
    host = made(cluster, 1)["gaudi-1"]
    host.unit("gaudi-train-demo", "stopped")
    sentence = hung(cluster, "gaudi-1", "gaudi-1")
    qual = host.write("/opt/qual/hl_qual", "#!/bin/sh\necho PASSED\n", 0o755)
    enforced = {"health_mode": "enforce", "health_hl_qual": str(qual)}
    predicted = heal(cluster, "--check", **enforced)
    # With ansible-core 2.21 a result has it on demand.
    run = heal(cluster, environment={"ANSIBLE_INJECT_INVOCATION": "True"}, **enforced)
    assert (run.returncode, run.changed()) == (0, predicted.changed()), run.messages()
    assert f"gaudi-1: suspect: job other: {sentence}" in run.result("gaudi-1", "Sum up")["msg"]
    did = [entry["do"] for entry in state(cluster)["record"]]
    assert did == ["suspect", "test", "end the suspicion", "return"]
    assert (fenced(cluster), happened(cluster, "gaudi-1")) == ({}, [("out", "examine"), ("in service", "")])
    tests = [result for _, name, result in run.results() if name.endswith("Test the node again")]
    assert tests[0]["invocation"]["module_args"]["depth"] == "standard"
