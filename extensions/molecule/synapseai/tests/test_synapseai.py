"""What a user finds on a node that was upgraded from 1.22.0 to 1.23.0."""

from __future__ import annotations

import re
from typing import Any

testinfra_hosts = ["ansible://gaudi"]

RELEASE = "1.23.0-695"
SET = (
    "habanalabs-dkms",
    "habanalabs-firmware",
    "habanalabs-firmware-odm",
    "habanalabs-firmware-tools",
    "habanalabs-graph",
    "habanalabs-qual",
    "habanalabs-rdma-core",
    "habanalabs-thunk",
)
MANAGE = "/opt/habanalabs/qual/gaudi3/bin/manage_network_ifs.sh"


def test_the_whole_set_is_at_the_release_and_held(host: Any) -> None:
    installed = host.check_output("dpkg-query -W -f '${Package} ${Version} ${db:Status-Want}\n' 'habanalabs-*'")
    assert sorted(installed.splitlines()) == [f"{name} {RELEASE} hold" for name in SET]


def test_the_pin_offers_no_other_release(host: Any) -> None:
    policy = host.check_output("apt-cache policy habanalabs-graph")
    assert f"Candidate: {RELEASE}" in policy
    assert "1.24.0-1007" in policy
    assert host.file("/etc/apt/preferences.d/habana-artifactory").contains(f"Pin: version {RELEASE}")


def test_the_repository_is_trusted_through_its_own_key_only(host: Any) -> None:
    keyring = host.file("/usr/share/keyrings/habana-artifactory.gpg")
    assert (keyring.mode, keyring.user) == (0o644, "root")
    source = host.file("/etc/apt/sources.list.d/habana-artifactory.list").content_string
    assert re.fullmatch(
        r"deb \[signed-by=/usr/share/keyrings/habana-artifactory\.gpg,[0-9A-F]{40}\] "
        r"http://vault/artifactory/debian jammy main\n",
        source,
    )
    assert host.run("apt-get update -o APT::Update::Error-Mode=any").rc == 0


def test_the_source_file_of_the_vendors_installer_was_moved_aside(host: Any) -> None:
    left = host.check_output("ls /etc/apt/sources.list.d").split()
    (backup,) = (name for name in left if name.startswith("habanalabs_synapseai.list"))
    assert backup.endswith("~")


def test_the_driver_is_loaded_at_each_boot(host: Any) -> None:
    assert host.file("/etc/modules-load.d/gaudi3-scale.conf").contains("^habanalabs$")


def test_old_logs_are_removed_and_others_stay(host: Any) -> None:
    """By systemd's own program, with the file that is there, its days made a second."""
    job = "/var/lib/gaudi3-scale/jobs/kept/habana_logs"
    host.check_output(
        f"mkdir -p {job} && touch /var/log/habana_logs/old.log {job}/old.log && sleep 2 && touch {job}/new.log"
    )
    host.check_output("sed s/30d/1s/ /etc/tmpfiles.d/gaudi3-scale-logs.conf > /tmp/logs.conf")
    host.check_output("systemd-tmpfiles --clean /tmp/logs.conf")
    assert host.check_output(f"ls {job} && ls -d {job} /var/log/habana_logs").split() == [
        "new.log",
        job,
        "/var/log/habana_logs",
    ]
    assert not host.file("/var/log/habana_logs/old.log").exists
    host.check_output("rm -r /var/lib/gaudi3-scale/jobs/kept /tmp/logs.conf")


def test_the_driver_of_the_release_runs_with_all_its_modules(host: Any) -> None:
    assert host.file("/sys/module/habanalabs/version").content_string.startswith("1.23.0-")
    modules = host.check_output("ls /sys/module").split()
    assert [name for name in modules if name.startswith("habanalabs")] == [
        "habanalabs",
        "habanalabs_cn",
        "habanalabs_compat",
        "habanalabs_en",
        "habanalabs_ib",
    ]


def test_every_card_is_operational(host: Any) -> None:
    assert host.check_output("cat /sys/class/accel/accel*/device/status").splitlines() == ["Operational"] * 8


def test_the_external_ports_are_up(host: Any) -> None:
    lines = host.check_output(f"{MANAGE} --status").splitlines()
    assert sum(line.startswith("3 ports up") for line in lines) == 8
    assert not [line for line in lines if "down" in line]


def test_the_ports_come_up_after_a_reload_by_the_unit_of_the_boot(host: Any) -> None:
    unit = host.service("gaudi3-scale-ports.service")
    assert unit.is_enabled
    try:
        host.check_output(f"{MANAGE} --down")
        assert "ports down" in host.check_output(f"{MANAGE} --status")
        host.check_output("systemctl restart gaudi3-scale-ports.service")
        assert "ports down" not in host.check_output(f"{MANAGE} --status")
    finally:
        host.run(f"{MANAGE} --up")
