"""In which order modules go and come, and what the driver's devices say."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._cards import accel
from ansible_collections.gaudi3.scale.plugins.module_utils._cards.accel import Device
from ansible_collections.gaudi3.scale.plugins.module_utils._driver import kernel_modules
from ansible_collections.gaudi3.scale.plugins.module_utils._driver.kernel_modules import Plan

OLD = ["habanalabs", "habanalabs_cn", "habanalabs_en", "habanalabs_ib"]
NEW = ["habanalabs", "habanalabs_cn", "habanalabs_compat", "habanalabs_en", "habanalabs_ib"]
OLD_ORDER = ["habanalabs", "habanalabs_cn", "habanalabs_ib", "habanalabs_en"]
NEW_LOAD = ["habanalabs_compat", "habanalabs", "habanalabs_cn", "habanalabs_en", "habanalabs_ib"]
NEW_UNLOAD = ["habanalabs_ib", "habanalabs_en", "habanalabs_cn", "habanalabs", "habanalabs_compat"]


@pytest.mark.parametrize(
    ("running", "version", "installed", "plan"),
    [
        pytest.param(NEW, "1.23.0-2eae87a", NEW, Plan([], []), id="right driver runs"),
        pytest.param([], None, NEW, Plan([], NEW_LOAD), id="nothing runs"),
        pytest.param(OLD, "1.22.0-97ec1a4", NEW, Plan(OLD_ORDER, NEW_LOAD), id="old runs, new installed"),
        pytest.param(NEW, "1.24.0-bf4de52", NEW, Plan(NEW_UNLOAD, NEW_LOAD), id="other new one runs"),
        pytest.param(NEW[:4], "1.23.0-2eae87a", NEW, Plan([], ["habanalabs_ib"]), id="one is missing"),
        pytest.param(["habanalabs_cn"], None, NEW, Plan(["habanalabs_cn"], NEW_LOAD), id="remains of a driver"),
        pytest.param([], None, [], Plan([], ["habanalabs"]), id="nothing installed yet"),
    ],
)
def test_plan_for_a_release_with_compat(
    running: list[str], version: str | None, installed: list[str], plan: Plan
) -> None:
    assert kernel_modules.make_plan(running, version, installed, "1.23.0-695") == plan


def test_going_back_unloads_by_what_runs_and_loads_by_what_is_installed() -> None:
    assert kernel_modules.make_plan(NEW, "1.23.0-2eae87a", OLD, "1.22.0-740") == Plan(NEW_UNLOAD, OLD_ORDER)


def test_another_build_of_the_same_version_needs_no_reload() -> None:
    assert kernel_modules.make_plan(OLD, "1.22.0-97ec1a4", OLD, "1.22.0-999").empty


def test_an_unknown_module_goes_first_and_comes_last() -> None:
    assert kernel_modules.unload_order(["habanalabs", "habanalabs_xy"]) == ["habanalabs_xy", "habanalabs"]
    assert kernel_modules.load_order(["habanalabs", "habanalabs_xy"]) == ["habanalabs", "habanalabs_xy"]


def test_the_kernels_own_habanalabs_is_not_the_vendors(tmp_path: Path) -> None:
    for path in (
        "6.8/kernel/drivers/accel/habanalabs/habanalabs.ko.zst",
        "5.15/updates/dkms/habanalabs_cn.ko.zst",
        "5.15/updates/dkms/habanalabs.ko",
        "5.15/updates/dkms/other.ko",
        "5.14/extra/habanalabs.ko.xz",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("module")
    (tmp_path / "5.15/updates/dkms/habanalabs_ib.ko.zst").touch()
    assert kernel_modules.empty_modules("5.15", str(tmp_path)) == ["habanalabs_ib"]
    assert kernel_modules.installed_modules("5.15", str(tmp_path)) == ["habanalabs", "habanalabs_cn"]
    assert kernel_modules.installed_modules("6.8", str(tmp_path)) == []
    assert kernel_modules.kernels_with_driver(str(tmp_path)) == ["5.14", "5.15"]


def test_the_next_kernel_is_a_newer_one_by_number(tmp_path: Path) -> None:
    for name in ("vmlinuz-5.15.0-91-generic", "vmlinuz-5.15.0-113-generic", "config-6.8.0-1-generic"):
        (tmp_path / name).touch()
    assert kernel_modules.next_kernel("5.15.0-91-generic", str(tmp_path)) == "5.15.0-113-generic"
    assert kernel_modules.next_kernel("5.15.0-113-generic", str(tmp_path)) is None


@pytest.mark.parametrize(("content", "on"), [(b"\x06\0\0\0\x01", True), (b"\x06\0\0\0\0", False), (b"", False)])
def test_secure_boot_is_the_fifth_byte(tmp_path: Path, content: bytes, on: bool) -> None:
    (tmp_path / "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c").write_bytes(content)
    assert kernel_modules.secure_boot(str(tmp_path)) is on
    assert kernel_modules.secure_boot(str(tmp_path / "none")) is False


def test_devices_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number, status in ((10, "In reset"), (2, "Operational")):
        device = tmp_path / f"class/accel/accel{number}/device"
        device.mkdir(parents=True)
        (device / "status").write_text(f"{status}\n")
    (tmp_path / "class/accel/accel2/device/preboot_btl_ver").write_text("hl-gaudi3-1.23.0-fw-62.2.1-sec-9\n")
    (tmp_path / "class/accel/accel_controlD2").mkdir()
    assert accel.devices(str(tmp_path)) == [
        Device("accel2", "Operational", "hl-gaudi3-1.23.0-fw-62.2.1-sec-9"),
        Device("accel10", "In reset", None),
    ]


def test_users_are_those_with_a_device_open(tmp_path: Path) -> None:
    for pid, target in ((812, "/dev/accel/accel3"), (77, "/dev/null"), (9, "/dev/accel/accel_controlD0")):
        (tmp_path / f"{pid}/fd").mkdir(parents=True)
        (tmp_path / f"{pid}/fd/4").symlink_to(target)
        (tmp_path / f"{pid}/comm").write_text("python3\n")
    (tmp_path / "self").mkdir()
    (tmp_path / "812/fd/5").symlink_to("/dev/accel/accel_controlD3")
    (tmp_path / "9/cgroup").write_text("0::/system.slice/gaudi-hpu-exporter.service\n")
    found = accel.users(str(tmp_path))
    assert [str(user) for user in found] == ["9 (python3, control devices only)", "812 (python3)"]
    assert [(user.control, user.unit) for user in found] == [(True, "gaudi-hpu-exporter.service"), (False, "")]


@pytest.mark.parametrize(
    ("devices", "sentence"),
    [
        ([Device("accel0", "Operational", None), Device("accel1", "Operational", None)], ""),
        (
            [Device("accel0", "Operational", None), Device("accel1", "In reset", None)],
            "1 of 2 cards are Operational (accel1 In reset); see dmesg, then reboot or service the node.",
        ),
        (
            [Device("accel0", "operational", None)],
            "0 of 2 cards are Operational (accel0 operational, 1 on the PCI bus without a device); see dmesg, then "
            "reboot or service the node.",
        ),
    ],
)
def test_only_operational_is_good(devices: list[Device], sentence: str) -> None:
    assert accel.trouble(devices, 2) == sentence


def test_waiting_ends_where_time_does_not_help() -> None:
    assert accel.waiting([Device("accel0", "In device creation", None)], 1)
    assert accel.waiting([], 1)
    assert not accel.waiting([Device("accel0", "Disabled", None)], 1)
    assert not accel.waiting([Device("accel0", "Operational", None)], 1)


@pytest.mark.parametrize(
    ("ports", "down"),
    [
        pytest.param([{"operstate": "down"}, {"operstate": "down"}], True, id="fresh load"),
        pytest.param([{"operstate": "down"}, {"operstate": "up"}], False, id="one cable pulled"),
        pytest.param([{"operstate": "down", "flags": "0x1003"}], False, id="brought up, no cable"),
        pytest.param([{"operstate": "down", "flags": "0x1002"}], True, id="not brought up"),
        pytest.param([], False, id="no ports"),
    ],
)
def test_ports_are_down_where_none_was_brought_up(tmp_path: Path, ports: list[dict[str, str]], down: bool) -> None:
    for number, attributes in enumerate(ports):
        port = tmp_path / f"bus/pci/devices/0000:19:00.0/net/ens{number}"
        port.mkdir(parents=True)
        for name, value in attributes.items():
            (port / name).write_text(f"{value}\n")
    assert accel.external_ports_down(["0000:19:00.0"], str(tmp_path)) is down
