"""The role firewall on hosts whose nft and systemd are stand-ins: what it writes, repairs and refuses."""

from __future__ import annotations

from .cluster import Cluster

FILE = "/etc/gaudi3-scale/firewall.nft"
UNIT = "gaudi3-scale-firewall.service"
CLOSE = "Close the ports to others"


def site(cluster: Cluster, nft: bool = True) -> Cluster:
    """A Gaudi node that is its own monitoring host, another that no play works on, and nftables."""
    host = cluster.add("gaudi-1", "gaudi", "gaudi_head", "monitoring", cards=0)
    cluster.variables["gaudi-2"] = {"ansible_host": "192.0.2.2", "gaudi_cluster_address": "10.0.0.2"}
    cluster.groups["gaudi"].append("gaudi-2")
    if nft:
        host.give(packages={"nftables": "1.0.6-2+deb12u2"})
        host.path("/usr/sbin").mkdir(parents=True)
        host.path("/usr/sbin/nft").symlink_to(host.folder / "bin/nft")
    return cluster


def rules(text: str) -> dict[str, list[str]]:
    """The elements of each set."""
    sets = text.split("\n    set ")[1:]
    return {each.split(" ")[0]: [line.strip(" ,") for line in each.splitlines() if line.endswith(",")] for each in sets}


def test_it_comes_and_a_table_that_was_emptied_comes_back(cluster: Cluster) -> None:
    host = site(cluster)["gaudi-1"]
    host.write("/lib/systemd/system/nftables.service", "[Service]\nExecStart=/usr/sbin/nft -f /etc/nftables.conf\n")
    acts = ["nft -f -", "systemctl daemon-reload", *(f"systemctl {verb} {UNIT}" for verb in ("enable", "start"))]
    alone = ("--limit", "gaudi-1")
    first = cluster.play("firewall.yml", *alone, firewall_enabled=True)
    assert first.returncode == 0 and host.acts() == acts, first.messages()
    assert {name: found for name, found in rules(host.path(FILE).read_text()).items() if found} == {
        "open_ports": ["22"],
        "metrics_ports": ["9100", "9410", "9420", "41611"], "metrics_v4": ["10.0.0.1"],
        "cluster_ports": ["29400", "32768-60999"], "cluster_v4": ["10.0.0.1", "10.0.0.2"],
    }  # fmt: skip
    assert f"ExecStart=/usr/sbin/nft -f {FILE}" in host.path(f"/etc/systemd/system/{UNIT}").read_text()
    drop_in = host.path("/etc/systemd/system/nftables.service.d/00-gaudi3-scale.conf").read_text()
    assert 'nft \'include "/etc/nftables.conf"; include "/etc/gaudi3-scale/firewall.nf[t]"\'' in drop_in
    (host.folder / "nft").unlink()  # as 'nft flush ruleset' does
    repaired = cluster.play("firewall.yml", *alone, firewall_enabled=True)
    assert [name for _host, name in repaired.changed()] == [f"gaudi3.scale.firewall : {CLOSE}"]
    assert host.acts() == ["nft -f -"]


def test_a_network_of_one_node_opens_no_other(cluster: Cluster) -> None:
    host = site(cluster)["gaudi-1"]
    before = host.files()
    cluster.all |= {"firewall_enabled": True}
    cluster.variables["gaudi-2"]["gaudi_cluster_address"] = "0.0.0.0/0"
    run = cluster.play("site.yml", "--tags", "firewall", "--limit", "gaudi-1,localhost")
    assert run.returncode != 0 and (host.files(), host.acts()) == (before, [])
    assert 'gaudi_cluster_address of gaudi-2 is "0.0.0.0/0", which is not the address of one host' in str(
        run.messages()
    )


def test_it_is_refused_before_anything_changes(cluster: Cluster) -> None:
    host = site(cluster, nft=False)["gaudi-1"]
    before = host.files()
    cluster.all |= {"firewall_enabled": True, "firewall_cluster_addresses": ["10.0.0.1", "10.0.0.299/32"]}
    run = cluster.play("site.yml", "--tags", "firewall", "--limit", "gaudi-1,localhost")
    assert run.messages() == [
        'The address of "10.0.0.299/32" cannot be known here (that is no network): set gaudi_cluster_address of that '
        "host, or give addresses or networks, such as 10.0.0.11 or 10.0.0.0/24."
    ]
    assert (host.files(), host.acts()) == (before, [])
