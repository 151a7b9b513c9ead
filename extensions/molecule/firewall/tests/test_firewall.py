"""What the role firewall leaves on the hosts, tried with real connections."""

from __future__ import annotations

from typing import Any

import testinfra

testinfra_hosts = ["ansible://gaudi"]

UNIT = "gaudi3-scale-firewall.service"
EXPORTER, RENDEZVOUS, OTHER = 9410, 29400, 5353
"""The port of a job's metrics, the one where a job's processes meet, and one that is no matter of the cluster."""
LISTEN = "import socket,time; s=socket.create_server(('', {port})); time.sleep(20)"


WATCH = """
look() {
    while [ ! -e /run/looked ]; do
        nft list table inet gaudi3_scale > /dev/null 2>&1 && echo there || echo gone
    done
}
rm -f /run/looked; look > /run/looks & watcher=$!
for verb in start reload reload restart stop start restart; do
    systemctl reset-failed nftables; systemctl $verb nftables || exit 1
done
cp /etc/nftables.conf /run/nftables.conf; echo 'no rule' >> /etc/nftables.conf; systemctl reset-failed nftables
systemctl reload nftables; systemctl restart nftables && exit 2
cp /run/nftables.conf /etc/nftables.conf; systemctl reset-failed nftables; systemctl start nftables || exit 3
touch /run/looked; wait $watcher; sort /run/looks | uniq -c; nft list tables
systemctl stop nftables
"""
"""Looks at the table all the time while nftables.service empties all tables, also with a fault in the site's rules."""


def reaches(source: Any, target: Any, port: int) -> bool:
    """Whether a connection from ``source`` to ``port`` of ``target`` is accepted."""
    address = target.ansible.get_variables()["ansible_host"]
    target.run(f'systemd-run --collect --unit probe-{port} python3 -c "{LISTEN.format(port=port)}"')
    target.run(f"timeout 5 sh -c 'until ss -Hltn sport = :{port} | grep -q .; do sleep 0.1; done'")
    try:
        return bool(source.run(f"timeout 2 bash -c '</dev/tcp/{address}/{port}'").rc == 0)
    finally:
        target.run(f"systemctl stop probe-{port}")


def monitor(host: Any) -> Any:
    return testinfra.get_hosts(["ansible://monitoring"], ansible_inventory=host.backend.ansible_inventory)[0]


def test_rules_are_loaded_now_and_at_boot(host: Any) -> None:
    assert host.service(UNIT).is_enabled and host.service(UNIT).is_running
    assert "policy accept" in host.run("nft list table inet gaudi3_scale").stdout


def test_the_table_is_there_at_every_look_whatever_nftables_service_does(host: Any) -> None:
    said = host.run(f"bash -c '{WATCH.replace(chr(39), chr(34))}'")
    assert said.rc == 0, said.stderr
    assert "there" in said.stdout and "gone" not in said.stdout
    assert "table inet filter" in said.stdout, "the rules of the site were not loaded"


def test_a_jobs_metrics_answer_the_monitoring_host(host: Any) -> None:
    assert reaches(monitor(host), host, EXPORTER)


def test_where_processes_meet_is_closed_to_who_does_not_train(host: Any) -> None:
    assert not reaches(monitor(host), host, RENDEZVOUS)


def test_other_ports_stay_as_they_were(host: Any) -> None:
    assert reaches(monitor(host), host, OTHER)
