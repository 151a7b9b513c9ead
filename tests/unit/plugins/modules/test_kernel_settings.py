"""kernel_settings on a made-up /proc, /sys and /etc."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.modules import kernel_settings

GOVERNOR = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"


@pytest.fixture
def host(tmp_path: Path) -> Path:
    files = {
        "proc/sys/vm/nr_hugepages": "0\n",
        "proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456\n",
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
        "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "performance\n",
        "sys/devices/system/cpu/cpufreq/boost": "1\n",
    }
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return tmp_path


def snapshot(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in sorted(root.rglob("*")) if path.is_file()}


def test_live_values_and_boot_files(host: Path, run_module: Any) -> None:
    options = {"root": str(host), "sysctl": {"vm.nr_hugepages": 15000}, "sysfs": {GOVERNOR: "performance"}}
    result = run_module(kernel_settings, **options)
    assert result["changed"] is True
    assert result["live"] == [
        {"name": "vm.nr_hugepages", "before": "0", "after": "15000"},
        {"name": GOVERNOR, "before": "powersave", "after": "performance"},
    ]
    assert (host / "proc/sys/vm/nr_hugepages").read_text() == "15000\n"
    assert (host / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").read_text() == "performance\n"
    assert (host / "etc/sysctl.d/90-gaudi3-scale.conf").read_text().splitlines()[1:] == ["vm.nr_hugepages = 15000"]
    assert (host / "etc/tmpfiles.d/gaudi3-scale.conf").read_text().splitlines()[1:] == [
        f"w {GOVERNOR} - - - - performance"
    ]
    again = run_module(kernel_settings, **options)
    assert (again["changed"], again["live"], again["files"]) == (False, [], [])


def test_check_mode_predicts_exactly_that_and_writes_nothing(host: Path, run_module: Any) -> None:
    options = {"root": str(host), "sysctl": {"vm.nr_hugepages": 15000}, "sysfs": {GOVERNOR: "performance"}}
    before = snapshot(host)
    predicted = run_module(kernel_settings, check=True, diff=True, **options)
    assert snapshot(host) == before
    real = run_module(kernel_settings, **options)
    assert {key: predicted[key] for key in ("changed", "live", "absent", "files")} == {
        key: real[key] for key in ("changed", "live", "absent", "files")
    }
    live, sysctl, tmpfiles = predicted["diff"]
    assert live["before"] == f"vm.nr_hugepages = 0\n{GOVERNOR} = powersave\n"
    assert live["after"] == f"vm.nr_hugepages = 15000\n{GOVERNOR} = performance\n"
    assert sysctl["before"] == ""
    assert sysctl["after"].splitlines()[-1] == "vm.nr_hugepages = 15000"
    assert tmpfiles["after_header"] == str(host / "etc/tmpfiles.d/gaudi3-scale.conf")


def test_a_value_changed_by_hand_is_put_right(host: Path, run_module: Any) -> None:
    options = {"root": str(host), "sysctl": {"vm.nr_hugepages": 15000}}
    run_module(kernel_settings, **options)
    (host / "proc/sys/vm/nr_hugepages").write_text("7\n")
    result = run_module(kernel_settings, **options)
    assert result["live"] == [{"name": "vm.nr_hugepages", "before": "7", "after": "15000"}]
    assert result["files"] == []
    assert (host / "proc/sys/vm/nr_hugepages").read_text() == "15000\n"


def test_values_compare_by_meaning(host: Path, run_module: Any) -> None:
    result = run_module(
        kernel_settings,
        root=str(host),
        sysctl={"net.ipv4.tcp_rmem": "4096 131072  6291456"},
        sysfs={"/sys/kernel/mm/transparent_hugepage/enabled": "madvise"},
    )
    assert result["live"] == []
    assert (host / "proc/sys/net/ipv4/tcp_rmem").read_text() == "4096\t131072\t6291456\n"


def test_a_setting_the_kernel_has_not_is_named_and_kept_for_later(host: Path, run_module: Any) -> None:
    missing = "/sys/devices/system/cpu/cpu*/cpufreq/energy"
    options = {"root": str(host), "sysctl": {"vm.absent": 1}, "sysfs": {missing: "low"}}
    result = run_module(kernel_settings, **options)
    assert result["absent"] == ["vm.absent", missing]
    assert result["live"] == []
    assert not (host / "proc/sys/vm/absent").exists()
    assert "vm.absent = 1\n" in (host / "etc/sysctl.d/90-gaudi3-scale.conf").read_text()


def test_an_empty_profile_removes_its_files(host: Path, run_module: Any) -> None:
    run_module(kernel_settings, root=str(host), sysctl={"vm.nr_hugepages": 9}, sysfs={GOVERNOR: "performance"})
    result = run_module(kernel_settings, root=str(host))
    assert result["changed"] is True
    assert not (host / "etc/sysctl.d/90-gaudi3-scale.conf").exists()
    assert not (host / "etc/tmpfiles.d/gaudi3-scale.conf").exists()
    assert (host / "proc/sys/vm/nr_hugepages").read_text() == "9\n"


def test_file_mode_is_put_right(host: Path, run_module: Any) -> None:
    run_module(kernel_settings, root=str(host), sysctl={"vm.nr_hugepages": 9})
    path = host / "etc/sysctl.d/90-gaudi3-scale.conf"
    path.chmod(0o666)
    result = run_module(kernel_settings, root=str(host), sysctl={"vm.nr_hugepages": 9})
    assert result["files"] == [str(path)]
    assert path.stat().st_mode & 0o777 == 0o644


def test_fewer_huge_pages_than_asked_for_is_told(host: Path, run_module: Any, monkeypatch: Any) -> None:
    from ansible_collections.gaudi3.scale.plugins.module_utils._host import kernel_settings as library

    def short(path: str, setting: Any) -> None:
        Path(path).write_text("812\n")

    monkeypatch.setattr(library, "_write", short)
    result = run_module(kernel_settings, root=str(host), sysctl={"vm.nr_hugepages": 15000})
    assert result["failed"] is True
    assert result["msg"] == (
        "vm.nr_hugepages is 812 after 15000 was written: for huge pages this means too little contiguous memory, so "
        "reboot (the value is set at boot) or ask for less."
    )
    assert "vm.nr_hugepages = 15000\n" in (host / "etc/sysctl.d/90-gaudi3-scale.conf").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"sysctl": {"vm.nr_hugepages": "1\n2"}},
            "sysctl 'vm.nr_hugepages' cannot be set to '1\\n2': a setting is one name and one line.",
        ),
        (
            {"sysctl": {"../../etc/shadow": "1"}},
            "sysctl '../../etc/shadow' cannot be set to '1': a setting is one name and one line.",
        ),
        (
            {"sysfs": {"/etc/passwd": "1"}},
            "sysfs path '/etc/passwd' is not below /sys: give a path such as /sys/kernel/mm/...",
        ),
        (
            {"sysfs": {"/sys/../etc/passwd": "1"}},
            "sysfs path '/sys/../etc/passwd' is not below /sys: give a path such as /sys/kernel/mm/...",
        ),
        (
            {"sysctl": {"net.ipv4.tcp_rmem": "plenty"}},
            "net.ipv4.tcp_rmem cannot be 'plenty': the kernel has 4096 131072 6291456 there, so give a number.",
        ),
        (
            {"sysfs": {"/sys/kernel/mm/transparent_hugepage/enabled": "sometimes"}},
            "/sys/kernel/mm/transparent_hugepage/enabled cannot be 'sometimes': the kernel offers always, madvise, "
            "never.",
        ),
        (
            {"sysfs": {GOVERNOR: "fastest"}},
            f"{GOVERNOR} cannot be 'fastest': the kernel offers conservative, ondemand, performance, powersave, "
            "schedutil, userspace.",
        ),
        (
            {"memlock": "all of it"},
            "the locked memory of logins cannot be 'all of it': give unlimited, or a number of KiB.",
        ),
        (
            {"command_line": [{"name": "a", "arguments": ["iommu=pt quiet"]}]},
            "kernel argument 'iommu=pt quiet' cannot be used: write one NAME or NAME=VALUE, without blanks and quotes.",
        ),
    ],
)
def test_bad_settings_change_nothing(host: Path, run_module: Any, options: Any, message: str) -> None:
    before = snapshot(host)
    others = {"sysctl": {"vm.nr_hugepages": 9}, **options}
    for check in (True, False):
        result = run_module(kernel_settings, check=check, root=str(host), **others)
        assert result["failed"] is True
        assert result["msg"] == message
        assert snapshot(host) == before


@pytest.mark.parametrize("value", ["1", "-1", "0x1f", "1,2-3", "1 2 3"])
def test_numbers_of_every_kind_are_taken(host: Path, run_module: Any, value: str) -> None:
    result = run_module(kernel_settings, check=True, root=str(host), sysctl={"net.ipv4.tcp_rmem": value})
    assert [each["after"] for each in result["live"]] == [value]


def test_a_refused_value_leaves_no_boot_file(host: Path, run_module: Any, monkeypatch: Any) -> None:
    from ansible_collections.gaudi3.scale.plugins.module_utils._host import kernel_settings as library

    def refuse(path: str, *arguments: Any, **options: Any) -> Any:
        if arguments and arguments[0] == "w":
            raise OSError(22, "Invalid argument")
        return open(path, *arguments, **options)

    monkeypatch.setattr(library, "open", refuse, raising=False)
    result = run_module(kernel_settings, root=str(host), sysctl={"vm.nr_hugepages": "99999999"})
    assert result["msg"] == (
        "the kernel refuses '99999999' for vm.nr_hugepages (Invalid argument): set a value it takes, or "
        "leave the setting out."
    )
    assert not (host / "etc").exists()


@pytest.mark.parametrize(
    ("online", "live", "expected"),
    [
        ("0-159", "0", "17601"),
        ("0-159", "17601", "17601"),
        ("0-255", "15000", "28161"),
        ("0-127,192-319", "28000", "28161"),
        ("0", "0", "111"),
        ("0-159", "156300", "156300"),
    ],
)
def test_huge_pages_are_the_vendors_number_and_never_fewer_than_there_are(
    host: Path, run_module: Any, online: str, live: str, expected: str
) -> None:
    (host / "sys/devices/system/cpu/online").write_text(online + "\n")
    (host / "proc/sys/vm/nr_hugepages").write_text(live + "\n")
    options = {"root": str(host), "sysctl": {"vm.nr_hugepages": "auto"}}
    result = run_module(kernel_settings, **options)
    assert [setting["name"] for setting in result["live"]] == ([] if live == expected else ["vm.nr_hugepages"])
    assert (host / "proc/sys/vm/nr_hugepages").read_text() == expected + "\n"
    written = (host / "etc/sysctl.d/90-gaudi3-scale.conf").read_text()
    assert written.splitlines()[-1] == f"vm.nr_hugepages = {expected}"
    assert run_module(kernel_settings, **options)["changed"] is False


def test_larger_huge_pages_are_fewer(host: Path, run_module: Any) -> None:
    (host / "sys/devices/system/cpu/online").write_text("0-159\n")
    (host / "proc/meminfo").write_text("MemTotal: 1 kB\nHugepagesize:    1048576 kB\n")
    run_module(kernel_settings, root=str(host), sysctl={"vm.nr_hugepages": "auto"})
    assert (host / "proc/sys/vm/nr_hugepages").read_text() == "35\n"


@pytest.mark.parametrize("value", ["many", "-5", "1.5", ""])
def test_a_number_of_huge_pages_that_is_none_changes_nothing(host: Path, run_module: Any, value: str) -> None:
    result = run_module(kernel_settings, root=str(host), sysctl={"vm.nr_hugepages": value, "kernel.numa_balancing": 0})
    assert result["msg"] == (
        f"vm.nr_hugepages cannot be {value!r}: give a number, or auto for that of the vendor's installer."
    )
    assert not (host / "etc/sysctl.d/90-gaudi3-scale.conf").exists()


def test_fewer_of_the_vendors_huge_pages_are_a_warning(host: Path, run_module: Any, monkeypatch: Any) -> None:
    """Nobody asked for that number, and a node with fragmented memory can be brought up all the same."""
    from ansible_collections.gaudi3.scale.plugins.module_utils._host import kernel_settings as library

    warned: list[str] = []
    monkeypatch.setattr(AnsibleModule, "warn", lambda _module, warning: warned.append(warning))
    monkeypatch.setattr(library, "_write", lambda path, _setting: Path(path).write_text("9000\n"))
    (host / "sys/devices/system/cpu/online").write_text("0-159\n")
    options = {"root": str(host), "sysctl": {"vm.nr_hugepages": "auto"}}
    first, second = run_module(kernel_settings, **options), run_module(kernel_settings, **options)
    assert "failed" not in first and first["changed"] is True and first["live"][0]["after"] == "9000"
    sentence = (
        "vm.nr_hugepages is 9000 after 17601 was written: for huge pages this means too little contiguous memory, so "
        "reboot (the value is set at boot) or ask for less."
    )
    assert second["changed"] is False and warned == [sentence, sentence]


@pytest.fixture
def grub(monkeypatch: pytest.MonkeyPatch) -> None:
    """A boot loader that takes what it is given."""
    monkeypatch.setattr(
        AnsibleModule, "get_bin_path", lambda _module, name, *_a, **_k: name if "grub" in name else None
    )
    monkeypatch.setattr(AnsibleModule, "run_command", lambda *_a, **_k: (0, "", ""))


def test_limits_and_command_line_in_the_same_task(host: Path, run_module: Any, grub: None) -> None:
    (host / "proc/cmdline").write_text("quiet iommu=pt\n")
    lines = [
        {"name": "iommu", "arguments": ["iommu=pt", "intel_iommu=on"], "state": "present"},
        {"name": "idle", "arguments": ["intel_idle.max_cstate=0"]},
    ]
    options = {"root": str(host), "memlock": "unlimited", "command_line": lines}
    predicted = run_module(kernel_settings, check=True, **options)
    result = run_module(kernel_settings, **options)
    assert predicted["diff"] == result["diff"] and result["changed"] is True
    assert result["command_line"] == [
        {"name": "iommu", "missing": ["intel_iommu=on"], "reboot_needed": True},
        {"name": "idle", "missing": ["intel_idle.max_cstate=0"], "reboot_needed": False},
    ]
    limits = host / "etc/security/limits.d/90-gaudi3-scale.conf"
    assert result["files"] == [str(limits)]
    rows = [line.split() for line in limits.read_text().splitlines() if not line.startswith("#")]
    assert rows == [["*", "-", "memlock", "unlimited"], ["root", "-", "memlock", "unlimited"]]
    assert "iommu=pt intel_iommu=on" in (host / "etc/default/grub.d/90-iommu.cfg").read_text()
    assert run_module(kernel_settings, **options)["changed"] is False
    # Without it the file stays as it is.
    assert run_module(kernel_settings, root=str(host))["changed"] is False and limits.exists()


def test_remarks_say_what_the_host_does_not_have(host: Path, run_module: Any, grub: None) -> None:
    (host / "proc/cmdline").write_text("quiet\n")
    lines = [
        {"name": "iommu", "arguments": ["iommu=pt"], "state": "present", "reason": "for the cards"},
        {"name": "idle", "arguments": ["intel_idle.max_cstate=0"], "reason": "which the vendor documents"},
        {"name": "other", "arguments": ["quiet", "splash"]},
    ]
    options = {"root": str(host), "sysctl": {"vm.absent": 1}, "command_line": lines}
    waits = "The kernel was started without iommu=pt: reboot to apply."
    others = [
        "This kernel does not offer vm.absent.",
        "The kernel was started without intel_idle.max_cstate=0, which the vendor documents.",
    ]
    assert run_module(kernel_settings, **options)["remarks"] == [others[0], waits, others[1]]
    assert run_module(kernel_settings, reboots=True, **options)["remarks"] == others
