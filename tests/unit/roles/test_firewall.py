"""The role firewall's ruleset on a real kernel: who reaches which port of a node, and what stays as it was."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._host import firewall, firewall_table
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal

from ..playbooks.jinja import load
from .decided import values

NODE = {"4": "10.9.0.1", "6": "fd09::1"}
MEMBER, MONITOR, ADMIN, STRANGER = "10.9.0.2", "10.9.0.5", "10.9.0.77", "10.9.0.9"
MEMBER6, STRANGER6 = "fd09::2", "fd09::9"
SOURCES = [MEMBER, MONITOR, ADMIN, MEMBER6, STRANGER6, STRANGER]
SSH, OTHER, RENDEZVOUS, COLLECTIVE = 22, 8080, 29400, 45000
METRICS = [9100, 9410, 9420, 41611]
PORTS = sorted([SSH, OTHER, RENDEZVOUS, COLLECTIVE, 9090, *METRICS])
ENTER = ["unshare", "--map-root-user", "--net"]


def text(host: str = "gaudi-1", **choices: Any) -> str:
    """What the role writes on a host of a site of two nodes and a monitoring host."""
    given: dict[str, Any] = {
        "inventory_hostname": host,
        "groups": {"gaudi": ["gaudi-1", "gaudi-2"], "monitoring": ["monitor"]},
        "hostvars": {
            "gaudi-1": {"ansible_host": NODE["4"]},
            "gaudi-2": {"ansible_host": "bmc-2", "gaudi_cluster_address": MEMBER},
            "monitor": {"ansible_host": MONITOR},
        },
        **choices,
    }
    variables = values(**given)
    groups = variables.decide("firewall_groups")
    open_ports = [str(port) for port in variables["firewall_open_ports"]]
    return firewall.ruleset(
        open_ports, [firewall.Group(each["name"], each["ports"], each["sources"]) for each in groups]
    )


def drops(written: str) -> list[str]:
    """The comments of the drops of a ruleset, which have its digest."""
    return sorted(re.findall(r'comment "(\w+ [0-9a-f]{32})"', written))


def sets(written: str) -> dict[str, list[str]]:
    """The elements of each set of a ruleset."""
    parts = written.split("\n    set ")[1:]
    return {
        each.split(" ")[0]: [line.strip(" ,") for line in each.splitlines() if line.endswith(",")] for each in parts
    }


@cache
def _possible() -> str:
    if not (shutil.which("nft", path="/usr/sbin:/sbin:/usr/bin") and shutil.which("ip") and shutil.which("unshare")):
        return "nft, ip or unshare is not installed"
    done = subprocess.run([*ENTER, "nft", "list", "ruleset"], capture_output=True, text=True, check=False)
    return f"no namespace with nftables can be made here ({done.stderr.strip()})" if done.returncode else ""


def live(*rulesets: str) -> Any:
    """The two hosts, after the rulesets were loaded one after the other."""
    if _possible():
        pytest.skip(_possible())
    asked = {
        "node": NODE, "sources": SOURCES, "ports": PORTS, "early": COLLECTIVE, "patience": 1.6, "rulesets": rulesets,
    }  # fmt: skip
    program = Path(__file__).with_name("network_of_two.py")
    done = subprocess.run(
        [*ENTER, sys.executable, str(program)], input=json.dumps(asked), capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_without_it_everybody_reaches_everything() -> None:
    assert live()["reached"] == dict.fromkeys(SOURCES, PORTS)


def test_the_clusters_ports_answer_the_cluster_alone() -> None:
    found = live(text(firewall_extra_cluster_addresses=[MEMBER6]))
    untouched = [SSH, OTHER, 9090]
    cluster = sorted([*untouched, RENDEZVOUS, COLLECTIVE])
    assert found["reached"] == {
        MEMBER: cluster,
        MEMBER6: cluster,
        MONITOR: sorted([*untouched, *METRICS]),
        ADMIN: untouched,
        STRANGER: untouched,
        STRANGER6: untouched,
    }
    assert found["own"] == PORTS, "a node reaches its own ports"
    assert found["early"] == "still up", "a connection of before was cut"


def test_people_reach_prometheus_from_their_network_where_one_is_given() -> None:
    found = live(text("monitor", firewall_admin_networks=["10.9.0.64/26"]))["reached"]
    assert {source for source, ports in found.items() if 9090 in ports} == {ADMIN, MONITOR}
    assert {source for source, ports in found.items() if RENDEZVOUS in ports} == set(SOURCES), "no node of jobs"


def test_another_ruleset_replaces_it_and_other_tables_stay() -> None:
    other = "table inet site { chain input { type filter hook input priority 5; tcp dport 8080 drop\n }\n }\n"
    first, second = text(), text(firewall_metrics_ports=[9100], firewall_open_ports=[22, 45000])
    found = live(other, first, second)
    assert found["reached"][STRANGER] == [
        SSH,
        9090,
        9410,
        9420,
        COLLECTIVE,
    ]  # 8080 is closed by the site, 41611 is in the range
    assert drops(second) == drops(found["tables"]) != drops(first)
    assert "table inet site" in found["tables"]


def test_the_digest_is_that_of_the_ruleset() -> None:
    assert text() == text() and text() != text(firewall_rendezvous_port=29500)
    assert len(drops(text())) == 2 and not set(drops(text())) & set(drops(text(firewall_rendezvous_port=29500)))


#: What somebody may do to the table, and the parts of it that differ then.
TAMPERED = {
    "add element inet gaudi3_scale cluster_v4 { 0.0.0.0/0 }": ["set cluster_v4"],
    "add element inet gaudi3_scale metrics_v6 { ::/0 }": ["set metrics_v6"],
    "add element inet gaudi3_scale open_ports { 29400 }": ["set open_ports"],
    "delete element inet gaudi3_scale cluster_ports { 29400 }": ["set cluster_ports"],
    "flush set inet gaudi3_scale cluster_ports": ["set cluster_ports"],
    "insert rule inet gaudi3_scale input tcp dport 29400 accept": ["rules of chain input"],
    "flush chain inet gaudi3_scale input": ["rules of chain input"],
    "add rule inet gaudi3_scale input accept": ["rules of chain input"],
    "add table inet gaudi3_scale { flags dormant; }": ["table gaudi3_scale"],
    "add chain inet gaudi3_scale other": ["chain other"],
}


def test_whatever_is_changed_in_the_table_is_seen() -> None:
    if _possible():
        pytest.skip(_possible())
    listed = "nft -j list table inet gaudi3_scale"
    loads = [f"nft -f {{}}; {listed}"] * 2
    changes = [f"nft '{change}' && {listed}; nft -f {{}}; {listed}" for change in TAMPERED]
    with tempfile.NamedTemporaryFile("w", suffix=".nft") as file:
        file.write(text())
        file.flush()
        script = "; ".join([*loads, *changes]).replace("{}", file.name, len(loads) + len(changes))
        done = subprocess.run([*ENTER, "sh", "-ec", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    found = [firewall_table.parse(line) for line in done.stdout.splitlines()]
    lines = [each.lines for each in found if each]
    first = lines[0]
    assert len(lines) == len(loads) + 2 * len(TAMPERED) and len(first) > 10
    assert lines[1] == first and lines[3::2] == [first] * len(TAMPERED), "a new load is the same table"
    assert [firewall_table.drift(first, each) for each in lines[2::2]] == list(TAMPERED.values())


BROKEN = ["", "[]", "{}", '{"nftables": [7]}', '{"nftables": []}']


def test_a_listing_is_compared_without_handles_and_counts() -> None:
    def listing(handle: int, packets: int, verdict: str = "drop") -> str:
        rule = [{"counter": {"packets": packets, "bytes": 60 * packets}}, {verdict: None}]
        objects = [{"metainfo": {"version": "1.0.6"}}, {"rule": {"chain": "input", "handle": handle, "expr": rule}}]
        return json.dumps({"nftables": objects})

    one = firewall_table.parse(listing(4, 0))
    assert one and one == firewall_table.parse(listing(9, 3)) != firewall_table.parse(listing(4, 0, "accept"))
    assert firewall_table.drift(["a", "b"], ["b", "a"]) == ["the order"]
    assert [firewall_table.parse(each) for each in BROKEN] == [None] * len(BROKEN)


#: Where a value comes from that opens the ports of the other hosts: group and variable.
SOURCES_OF_HOSTS = list(itertools.product(("gaudi", "monitoring"), ("gaudi_cluster_address", "ansible_host")))
BAD = ["0.0.0.0/0", "10.0.0.0/8", "::/0", "0.0.0.0", "::", "10.0.0.1 0.0.0.0/0", "10.0.0.1\n", "10.0.0.1,10.0.0.2",
       "224.0.0.1", "10.0.0.1-10.0.0.9", "10.0", ["10.0.0.1"], 167772161, {"a": 1}, True]  # fmt: skip


@pytest.mark.parametrize(("group", "variable"), SOURCES_OF_HOSTS)
def test_a_host_is_one_address_and_no_network(group: str, variable: str) -> None:
    name = {"gaudi": "gaudi-2", "monitoring": "monitor"}[group]
    hosts = {each: {"ansible_host": NODE["4"]} for each in ("gaudi-1", "gaudi-2", "monitor")}
    for value in BAD:
        with pytest.raises(Refusal) as error:
            text(hostvars={**hosts, name: {variable: value}})
        assert f"{variable} of {name} is " in str(error.value), value
        assert "which is not the address of one host: set gaudi_cluster_address" in str(error.value)
    for value in ("10.9.0.7", "fd09::7", "[fd09::7]"):
        assert value.strip("[]") in text(hostvars={**hosts, name: {variable: value}})


def test_every_value_of_another_host_is_taken_as_one_address() -> None:
    """A role that read another host's variables itself would have to ask for one address, too."""
    for path in (Path(__file__).parents[3] / "roles/firewall").rglob("*.*"):
        if path.suffix in (".yml", ".j2"):
            assert not re.search(r"hostvars|ansible_facts", path.read_text()), path


def test_hosts_are_at_their_cluster_addresses() -> None:
    found = sets(text(firewall_monitor_addresses=["10.1.0.7/24", "fd00::5", "10.2.0.9"]))
    assert found["cluster_v4"] == [NODE["4"], MEMBER]
    assert found["metrics_v4"] == ["10.1.0.0/24", "10.2.0.9"] and found["metrics_v6"] == ["fd00::5"]


def test_a_node_that_is_being_removed_is_let_in_no_more() -> None:
    assert sets(text(gaudi_remove="gaudi-2,gaudi-3"))["cluster_v4"] == [NODE["4"]]


def test_other_roles_ports_are_followed() -> None:
    ports: dict[str, Any] = {"trainer_rdzv_port": 29500, "node_exporter_port": 9101, "hpu_exporter_port": 9102}
    ports["prometheus_port"] = 9099
    ports |= {"trainer_config": {"metrics": {"port": 9103}}, "firewall_collective_ports": "", "ansible_port": 2222}
    written = text(firewall_admin_networks=["10.8.0.0/16"], **ports)
    assert sets(written)["metrics_ports"] == ["9101", "9102", "9103", "9420"] and sets(written)["cluster_ports"] == [
        "29500"
    ]
    assert sets(written)["open_ports"] == ["22", "2222"] and "admin_ports" not in sets(written)
    monitor = sets(text("monitor", firewall_admin_networks=["10.8.0.0/16"], **ports))
    assert monitor["admin_ports"] == ["3000", "9093", "9099", "9109"] and "cluster_ports" not in monitor


def test_ports_of_jobs_in_a_list_are_followed() -> None:
    own = [{"rdzv_port": 29500, "node_config": {"metrics": {"port": 9412}}}, {"config": {"metrics": {"port": 0}}}, {}]
    written = text(trainer_jobs=own, trainer_config={"metrics": {"port": 0}}, firewall_collective_ports="")
    assert sets(written)["metrics_ports"] == ["9100", "9412", "9420", "41611"]
    assert sets(written)["cluster_ports"] == ["29400", "29500"]


def test_a_name_is_looked_up_and_the_loopback_left_out() -> None:
    known = {"gaudi-1": ["127.0.1.1", "::1"], "gaudi-2": ["10.0.0.2", "fd00::2"]}
    assert firewall.networks(["gaudi-1", "gaudi-2", "10.0.0.2"], known.__getitem__) == (["10.0.0.2"], ["fd00::2"])


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        (
            {"firewall_cluster_addresses": ["10.0.0.300/24"]},
            'The address of "10.0.0.300/24" cannot be known here (that is no network): set gaudi_cluster_address of '
            "that host, or give addresses or networks, such as 10.0.0.11 or 10.0.0.0/24",
        ),
        (
            {"firewall_rendezvous_port": 294000},
            '"294000" is no port: give a number from 1 to 65535, or two with a dash between, such as 32768-60999',
        ),
        (
            {"firewall_collective_ports": "60999-32768"},
            '"60999-32768" is no port: give a number from 1 to 65535, or two with a dash between, such as 32768-60999',
        ),
    ],
)  # fmt: skip
def test_what_is_no_address_or_port_is_refused(choices: dict[str, Any], message: str) -> None:
    with pytest.raises(Refusal) as error:
        text(**choices)
    assert str(error.value) == f"{message}."


def test_it_is_off_until_a_site_wants_it_and_the_example_does() -> None:
    assert load("roles/firewall/defaults/main.yml")["firewall_enabled"] is False
    assert load("examples/inventory/group_vars/all.yml")["firewall_enabled"] is True
