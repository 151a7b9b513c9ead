"""What the role hpu_exporter serves on a node, while all is well and while hl-smi fails."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

testinfra_hosts = ["ansible://gaudi"]

UNIT = "gaudi-hpu-exporter"


def get(host: Any, path: str) -> str:
    address = host.ansible.get_variables()["ansible_host"]
    return str(host.run(f"curl --silent --max-time 2 http://{address}:41611/{path}").stdout)


def page(host: Any) -> list[str]:
    return [line for line in get(host, "metrics").splitlines() if not line.startswith("#")]


def named(lines: list[str], name: str) -> list[str]:
    return [line for line in lines if line.startswith(name + "{")]


def wait_for(condition: Callable[[], bool], seconds: float = 30) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(1)
    return False


def test_runs_now_and_at_boot_without_privileges(host: Any) -> None:
    service = host.service(UNIT)
    assert service.is_running
    assert service.is_enabled
    process = host.process.get(comm="python3", ppid=1)
    assert process.euid >= 61184  # systemd's range of users that exist only while their unit runs
    assert re.search(r"^CapBnd:\s+0+$", host.file(f"/proc/{process.pid}/status").content_string, re.M)


def test_listens_on_the_cluster_address_only(host: Any) -> None:
    address = host.ansible.get_variables()["ansible_host"]
    listeners = host.run("ss --no-header --listening --tcp --numeric 'sport = :41611'").stdout.splitlines()
    assert [line.split()[3] for line in listeners] == [f"{address}:41611"]


def test_serves_what_hl_smi_says(host: Any) -> None:
    fields = "index,serial,uuid,driver_version,memory.total,module_id"
    rows = host.run(f"hl-smi -Q {fields} -f csv,noheader,nounits").stdout.splitlines()
    assert len(rows) == 8
    lines = page(host)
    for row in rows:
        index, serial, uuid, driver, memory, module = row.split(", ")
        (total,) = (line for line in named(lines, "habanalabs_memory_total_bytes") if f',id="{index}"' in line)
        for label in (f'Serial="{serial}"', f'UUID="{uuid}"', f'device="{serial}"', f'driver="{driver}"'):
            assert label in total
        assert total.endswith(f" {int(memory) * 1024 * 1024}")
        (info,) = (line for line in named(lines, "gaudi_card_info") if f',id="{index}"' in line)
        assert f'module_id="{module}"' in info


def test_serves_every_port(host: Any) -> None:
    assert wait_for(lambda: len(named(page(host), "habanalabs_nic_port_status")) == 8 * 24)
    ports = named(page(host), "habanalabs_nic_port_status")
    assert sum('port_type="external"' in line for line in ports) == 8 * 3


def test_cards_vanish_and_the_failure_shows_while_hl_smi_cannot_run(host: Any) -> None:
    host.run_test("mv /usr/bin/hl-smi /usr/bin/hl-smi.away")
    try:
        assert wait_for(lambda: named(page(host), "habanalabs_device_config") == [])
        assert 'gaudi_hpu_exporter_read_success{reading="cards"} 0' in page(host)
        assert get(host, "healthz") == "/usr/bin/hl-smi cannot be started (No such file or directory)\n"
        assert host.service(UNIT).is_running
    finally:
        host.run_test("mv /usr/bin/hl-smi.away /usr/bin/hl-smi")
    assert wait_for(lambda: len(named(page(host), "habanalabs_device_config")) == 8)
    assert 'gaudi_hpu_exporter_read_success{reading="cards"} 1' in page(host)


def test_a_dead_port_shows_as_down(host: Any) -> None:
    fault = "gaudi3-simulator-node fault port-down --card 2"
    host.run_test(fault)
    try:
        assert wait_for(
            lambda: len([ln for ln in named(page(host), "habanalabs_nic_port_status") if ln.endswith(" 0")]) == 1
        )
        (down,) = (line for line in named(page(host), "habanalabs_nic_port_status") if line.endswith(" 0"))
        assert 'id="2"' in down
        assert 'port_type="external"' in down
    finally:
        host.run_test(fault + " --clear")


def test_comes_back_after_a_crash(host: Any) -> None:
    host.run_test(f"systemctl kill --signal=KILL {UNIT}")
    assert wait_for(lambda: len(named(page(host), "habanalabs_device_config")) == 8)
