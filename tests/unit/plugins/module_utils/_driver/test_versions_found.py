"""The versions of a node, from its files and its package database."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._driver.versions_found import Places, Run, held, look
from ansible_collections.gaudi3.scale.plugins.module_utils._release.rules import check

KERNEL, NEXT = "6.8.0-51-generic", "6.8.0-60-generic"
DPKG = "habanalabs-dkms\t1.23.0-695\tinstall\tinstalled\nhabanalabs-qual\t1.22.0-740\tdeinstall\tconfig-files\n"


def write(root: Path, path: str, text: str = "") -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.fixture
def node(tmp_path: Path) -> Places:
    """Two cards, a loaded driver, a newer kernel without one."""
    for number in (0, 1):
        card = f"sys/bus/pci/devices/0000:1{number}:00.0"
        write(tmp_path, f"{card}/vendor", "0x1da3\n")
        write(tmp_path, f"{card}/device", "0x1060\n")
        write(tmp_path, f"{card}/iommu_group/type", "identity\n")
        accel = f"sys/class/accel/accel{number}/device"
        write(tmp_path, f"{accel}/status", "Operational\n")
        write(tmp_path, f"{accel}/preboot_btl_ver", f"Preboot version hl-gaudi3-1.2{number}.0-fw-61.3.2-sec-9\n")
    write(tmp_path, "sys/module/habanalabs/version", "1.23.0-2eae87a\n")
    write(tmp_path, f"lib/modules/{KERNEL}/updates/dkms/habanalabs.ko", "x")
    write(tmp_path, f"boot/vmlinuz-{KERNEL}")
    write(tmp_path, f"boot/vmlinuz-{NEXT}")
    write(tmp_path, "os-release", 'NAME="Ubuntu"\nID=ubuntu\nVERSION_ID="24.04"\nODD="\n')
    return Places(*(str(tmp_path / name) for name in ("sys", "lib/modules", "boot", "os-release")))


def database(dpkg: str = "", rpm: str = "") -> Run:
    def run(command: list[str]) -> tuple[int, str, str]:
        output = {"dpkg-query": dpkg, "rpm": rpm}[command[0]]
        return (0 if output else 1), output, ""

    return run


def test_all_that_a_node_shows(node: Places, tmp_path: Path) -> None:
    site = "venv/lib/python3.12/site-packages"
    write(tmp_path, f"{site}/torch-2.9.0a0+git1.dist-info/METADATA")
    write(tmp_path, f"{site}/habana_torch_plugin-1.23.0.695.dist-info/METADATA")
    pythons = [str(tmp_path / "none/bin/python"), str(tmp_path / "venv/bin/python")]
    assert look(database(DPKG), KERNEL, pythons, node, "an/image:1", "0.16.0").as_facts() == {
        "system": "Ubuntu 24.04",
        "kernel": KERNEL,
        "next_kernel": NEXT,
        "built_for": [KERNEL],
        "generation": "gaudi3",
        "driver": "1.23.0-2eae87a",
        "packages": {"habanalabs-dkms": "1.23.0-695"},
        "torch": "2.9.0a0+git1",
        "plugin": "1.23.0.695",
        "python": "3.12",
        "image": "an/image:1",
        "vllm": "0.16.0",
        "preboot": "Preboot version hl-gaudi3-1.21.0-fw-61.3.2-sec-9",
        "iommu": "identity",
    }


def test_a_kernel_that_comes_without_a_driver_is_found(node: Places) -> None:
    found = look(database(DPKG), KERNEL, [], node)
    assert [each.rule for each in check(found)] == ["next-kernel-driver"]


def test_rpm_is_asked_where_dpkg_has_nothing(node: Places) -> None:
    found = look(database(rpm="habanalabs\t1.23.0-695.el9\nodd line\n"), KERNEL, [], node)
    assert found.packages == {"habanalabs": "1.23.0-695.el9"}


def test_packages_on_hold_are_told(node: Places) -> None:
    held_back = "habanalabs-dkms\t1.23.0-695\thold\tinstalled\nhabanalabs-qual\t1.23.0-695\tinstall\tinstalled\n"
    assert held(database(held_back)) == ["habanalabs-dkms"] and held(database()) == []


def test_a_bare_host_has_nothing_that_could_be_wrong(tmp_path: Path) -> None:
    places = Places(*(str(tmp_path / name) for name in ("a", "b", "c", "d")))
    found = look(database(), KERNEL, [], places)
    assert found.as_facts() == {"kernel": KERNEL}
    assert check(found) == []


def test_a_translated_address_and_other_systems(node: Places, tmp_path: Path) -> None:
    write(tmp_path, "sys/bus/pci/devices/0000:11:00.0/iommu_group/type", "DMA-FQ\n")
    write(tmp_path, "os-release", 'ID="rhel"\nVERSION_ID="9.4"\n')
    found = look(database(DPKG), KERNEL, [], node)
    assert (found.iommu, found.system) == ("DMA-FQ", "RedHat 9.4")
    write(tmp_path, "os-release", "ID=debian\nVERSION_ID=12\n")
    assert look(database(), KERNEL, [], node).system == "Debian 12"


@pytest.mark.parametrize("suffix", ["", "-py3.12"])
def test_a_plugin_that_was_installed_without_a_wheel_is_seen(node: Places, tmp_path: Path, suffix: str) -> None:
    site = "venv/lib/python3.12/site-packages"
    write(tmp_path, f"{site}/habana_torch_plugin-1.23.0.695{suffix}.egg-info/PKG-INFO")
    found = look(database(DPKG), KERNEL, [str(tmp_path / "venv/bin/python")], node)
    assert (found.plugin, found.python) == ("1.23.0.695", "3.12")
