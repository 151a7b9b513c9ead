"""What the role tuning leaves on a node."""

from __future__ import annotations

from typing import Any

testinfra_hosts = ["ansible://gaudi"]


def test_settings_are_live_and_set_again_at_boot(host: Any) -> None:
    assert host.sysctl("vm.nr_hugepages") == 15000
    profile = host.file("/etc/sysctl.d/90-gaudi3-scale.conf")
    assert profile.content_string.splitlines()[1:] == ["vm.nr_hugepages = 15000"]
    assert profile.mode == 0o644
    assert profile.user == "root"


def test_boot_applies_the_profile(host: Any) -> None:
    host.run("echo 7 > /proc/sys/vm/nr_hugepages")
    assert host.run("/usr/lib/systemd/systemd-sysctl").rc == 0
    assert host.sysctl("vm.nr_hugepages") == 15000


def test_governor_is_set_at_boot_where_the_kernel_has_one(host: Any) -> None:
    line = host.file("/etc/tmpfiles.d/gaudi3-scale.conf").content_string.splitlines()[1]
    assert line == "w /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor - - - - performance"
    assert host.run("systemd-tmpfiles --create /etc/tmpfiles.d/gaudi3-scale.conf").rc == 0


def test_locked_memory_of_every_login(host: Any) -> None:
    limits = host.file("/etc/security/limits.d/90-gaudi3-scale.conf").content_string
    words = [line.split() for line in limits.splitlines() if not line.startswith("#")]
    assert words == [["*", "-", "memlock", "unlimited"], ["root", "-", "memlock", "unlimited"]]


def test_numa_balancing_is_left_alone_on_kernels_that_need_nothing(host: Any) -> None:
    assert "numa_balancing" not in host.file("/etc/sysctl.d/90-gaudi3-scale.conf").content_string


def test_command_line_is_only_reported(host: Any) -> None:
    assert not host.file("/etc/default/grub.d/90-gaudi3-scale.cfg").exists
