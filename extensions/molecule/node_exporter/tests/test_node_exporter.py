"""What the role node_exporter leaves on a node."""

from __future__ import annotations

from typing import Any

testinfra_hosts = ["ansible://gaudi"]

SERVICE = "prometheus-node-exporter"


def page(host: Any) -> list[str]:
    address = host.ansible.get_variables()["ansible_host"]
    answer = host.run(f"curl --silent --fail http://{address}:9100/metrics")
    assert answer.rc == 0
    return [line for line in answer.stdout.splitlines() if not line.startswith("#")]


def test_runs_now_and_at_boot(host: Any) -> None:
    assert host.service(SERVICE).is_running
    assert host.service(SERVICE).is_enabled


def test_listens_on_the_cluster_address_only(host: Any) -> None:
    address = host.ansible.get_variables()["ansible_host"]
    listeners = host.run("ss --no-header --listening --tcp --numeric 'sport = :9100'").stdout.splitlines()
    assert [line.split()[3] for line in listeners] == [f"{address}:9100"]


def test_packaged_service_started_once_with_our_arguments(host: Any) -> None:
    assert host.run(f"journalctl --unit {SERVICE} --output cat").stdout.count("Started ") == 1


def test_page_is_lean_and_has_what_rules_need(host: Any) -> None:
    lines = page(host)
    assert len(lines) < 1000
    names = {line.partition("{")[0].partition(" ")[0] for line in lines}
    assert {
        "node_cpu_seconds_total",
        "node_memory_MemAvailable_bytes",
        "node_filesystem_avail_bytes",
        "node_network_carrier_changes_total",
        "node_network_receive_bytes_total",
        "node_boot_time_seconds",
    } <= names
    assert not any(line.startswith(("go_", "node_schedstat", "node_softnet", "node_cpu_guest")) for line in lines)
    assert not any('device="lo"' in line for line in lines)


def test_collectors_succeed(host: Any) -> None:
    failed = [line for line in page(host) if line.startswith("node_scrape_collector_success") and line.endswith(" 0")]
    hardware = ("edac", "hwmon", "infiniband")  # without such hardware these report no success
    assert [line for line in failed if not any(f'"{name}"' in line for name in hardware)] == []


def test_metrics_of_other_programs_are_served_from_the_folder(host: Any) -> None:
    folder = "/var/lib/prometheus/node-exporter"
    host.run_test(f"printf 'gaudi_molecule_probe 42\\n' > {folder}/probe.prom")
    served = [line for line in page(host) if line.startswith("gaudi_molecule_probe")]
    host.run_test(f"rm {folder}/probe.prom")
    assert served == ["gaudi_molecule_probe 42"]
