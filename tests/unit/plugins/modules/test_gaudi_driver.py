"""gaudi_driver on a made-up node whose modprobe and kernel folders are files of the test's."""

from __future__ import annotations

import platform
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._driver import driver
from ansible_collections.gaudi3.scale.plugins.modules import gaudi_driver

Run = Callable[..., dict[str, Any]]
OLD = ("habanalabs", "habanalabs_cn", "habanalabs_en", "habanalabs_ib")
NEW = (*OLD, "habanalabs_compat")

# Writes down each call, and does to the folders what the kernel would do.
MODPROBE = """\
#!/bin/sh
echo "$(basename "$0") $*" >> {root}/calls
if [ -e {root}/refuse ]; then cat {root}/refuse >&2; exit 1; fi
for name; do :; done
if [ "$1" = -r ] || [ "$(basename "$0")" = rmmod ]; then rm -r {root}/sys/module/$name; exit; fi
mkdir -p {root}/sys/module/$name
if [ $name = habanalabs_en ] && [ ! -e {root}/portless ]; then
  mkdir -p {root}/sys/bus/pci/devices/0000:19:00.0/net/ens1
  echo down > {root}/sys/bus/pci/devices/0000:19:00.0/net/ens1/operstate
fi
if [ $name = habanalabs ]; then
  cp {root}/loads {root}/sys/module/habanalabs/version
  for card in 0 1; do
    mkdir -p {root}/sys/class/accel/accel$card/device
    cp {root}/status {root}/sys/class/accel/accel$card/device/status
  done
fi
"""
# A unit's processes end with it. That it runs is a file, and so is a unit that does not start again.
SYSTEMCTL = """\
#!/bin/sh
case $1 in
  is-active) [ -e {root}/runs ]; exit ;;
  stop) rm -r {root}/runs; for pid in $(cat {root}/of_unit); do rm -r {root}/proc/$pid; done ;;
  start) touch {root}/runs ;;
esac
echo "systemctl $*" >> {root}/calls
"""
EXPORTER = "gaudi-hpu-exporter.service"
PORTS = """\
#!/bin/sh
echo "ports $*" >> {root}/calls
[ ! -e {root}/ports_fail ] || {{ echo "no ethtool" >&2; exit 1; }}
"""


class Node:
    """Two cards, tools that write down their calls."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for card in ("0000:19:00.0", "0000:1a:00.0"):
            folder = root / "sys/bus/pci/devices" / card
            folder.mkdir(parents=True)
            (folder / "vendor").write_text("0x1da3\n")
            (folder / "device").write_text("0x1060\n")
        (root / "sys/module").mkdir()
        self.script("modprobe", MODPROBE)
        self.script("rmmod", MODPROBE)
        self.script("ports.sh", PORTS)
        self.script("systemctl", SYSTEMCTL)
        self.installed("1.23.0-2eae87a", *NEW)
        (root / "status").write_text("Operational\n")

    def script(self, name: str, text: str) -> None:
        (self.root / name).write_text(text.format(root=self.root))
        (self.root / name).chmod(0o755)

    def installed(self, version: str, *modules: str) -> None:
        folder = self.root / "lib" / platform.release() / "updates/dkms"
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        for name in modules:
            (folder / f"{name}.ko").write_text("module")
        (self.root / "loads").write_text(f"{version}\n")

    def running(self, version: str, *modules: str) -> None:
        for name in modules:
            (self.root / "sys/module" / name).mkdir()
        (self.root / "sys/module/habanalabs/version").write_text(f"{version}\n")
        for card in range(2):
            device = self.root / f"sys/class/accel/accel{card}/device"
            device.mkdir(parents=True)
            (device / "status").write_text("Operational\n")
            (device / "preboot_btl_ver").write_text("Preboot version hl-gaudi3-1.22.0-fw-61.3.2-sec-9\n")

    def used_by(self, pid: int, command: str, device: str = "accel0", unit: str = "") -> None:
        (self.root / f"proc/{pid}/fd").mkdir(parents=True)
        (self.root / f"proc/{pid}/fd/3").symlink_to(f"/dev/accel/{device}")
        (self.root / f"proc/{pid}/comm").write_text(f"{command}\n")
        (self.root / f"proc/{pid}/cgroup").write_text(f"0::/system.slice/{unit}\n")

    def exports(self, *pids: int, unit: str = EXPORTER) -> None:
        """The exporter runs, and these are its processes."""
        (self.root / "runs").touch()
        (self.root / "of_unit").write_text(" ".join(map(str, pids)))
        for pid in pids:
            self.used_by(pid, "hl-smi", "accel_controlD0", unit)

    @property
    def calls(self) -> list[str]:
        file = self.root / "calls"
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    for name, folder in (("SYSFS", "sys"), ("PROC", "proc"), ("MODULES", "lib"), ("BOOT", "boot")):
        monkeypatch.setattr(driver, name, str(tmp_path / folder))
    return Node(tmp_path)


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    given: list[str] = []
    monkeypatch.setattr(AnsibleModule, "warn", lambda _module, warning: given.append(warning))
    return given


@pytest.fixture
def run(node: Node, run_module: Run) -> Run:
    def call(check: bool = False, **options: Any) -> dict[str, Any]:
        root = node.root
        tools = {name: f"{root}/{name}" for name in ("modprobe", "rmmod", "systemctl")}
        tools["network_script"] = f"{root}/ports.sh"
        given = {"release": "1.23.0-695", "timeout": 0, **tools, **options}
        return run_module(gaudi_driver, check=check, **given)

    return call


def test_loads_in_order_with_rdma_core_first_and_ports_last(node: Node, run: Run) -> None:
    result = run()
    assert node.calls == [
        "modprobe ib_uverbs",
        "modprobe habanalabs_compat",
        "modprobe habanalabs",
        "modprobe habanalabs_cn",
        "modprobe habanalabs_en",
        "modprobe habanalabs_ib",
        "ports --up",
    ]
    assert result["changed"] is True
    assert result["driver_version"] == "1.23.0-2eae87a"
    assert result["ports_brought_up"] is True
    assert [card["status"] for card in result["cards"]] == ["Operational", "Operational"]


def test_the_right_driver_is_left_alone(node: Node, run: Run) -> None:
    node.running("1.23.0-2eae87a", *NEW)
    node.used_by(812, "python3")
    result = run()
    assert (result["changed"], result["reboot_required"], node.calls) == (False, False, [])


def test_check_mode_predicts_and_touches_nothing(node: Node, run: Run) -> None:
    result = run(check=True)
    assert node.calls == []
    assert result["changed"] is True
    assert result["loaded"] == ["habanalabs_compat", "habanalabs", "habanalabs_cn", "habanalabs_en", "habanalabs_ib"]
    assert result["diff"]["before"] == "driver: None\nmodules: \n"
    assert result["diff"]["after"].startswith("driver: 1.23.0\nmodules: habanalabs, habanalabs_cn, ")


def test_upgrade_unloads_by_the_old_order_and_loads_by_the_new(node: Node, run: Run) -> None:
    node.running("1.22.0-97ec1a4", *OLD)
    result = run()
    assert node.calls[:6] == [
        "modprobe -r habanalabs",
        "modprobe -r habanalabs_cn",
        "modprobe -r habanalabs_ib",
        "modprobe -r habanalabs_en",
        "modprobe ib_uverbs",
        "modprobe habanalabs_compat",
    ]
    assert (result["previous_version"], result["driver_version"]) == ("1.22.0-97ec1a4", "1.23.0-2eae87a")


def test_going_back_takes_out_a_module_whose_file_is_gone_with_rmmod(node: Node, run: Run) -> None:
    node.running("1.23.0-2eae87a", *NEW)
    node.installed("1.22.0-97ec1a4", *OLD)
    result = run(release="1.22.0-740")
    assert node.calls[3:5] == ["modprobe -r habanalabs", "rmmod habanalabs_compat"]
    assert result["modules"] == ["habanalabs", "habanalabs_cn", "habanalabs_en", "habanalabs_ib"]


@pytest.mark.parametrize("check", [False, True])
def test_a_driver_in_use_is_not_touched_and_its_users_are_named(node: Node, run: Run, check: bool) -> None:
    node.running("1.22.0-97ec1a4", *OLD)
    node.used_by(812, "python3")
    result = run(check=check)
    assert result["failed"] is True
    assert result["msg"] == (
        "The running driver 1.22.0-97ec1a4 cannot be taken out while /dev/accel is in use by process 812 (python3); "
        "stop what uses it, or set synapseai_reboot_allowed=true to reboot the node instead."
    )
    assert node.calls == []


@pytest.mark.parametrize("unit", [EXPORTER, "libpod-abc.scope"], ids=["service", "container"])
def test_the_exporter_is_stopped_for_the_change_and_started_again(node: Node, run: Run, unit: str) -> None:
    node.running("1.22.0-97ec1a4", *OLD)
    node.exports(4711, 4712, unit=unit)
    predicted = run(check=True)
    assert (predicted["changed"], predicted["reboot_required"], node.calls) == (True, False, [])
    result = run()
    assert (result["changed"], result["driver_version"]) == (True, "1.23.0-2eae87a")
    assert (node.calls[0], node.calls[-1]) == (f"systemctl stop {EXPORTER}", f"systemctl start {EXPORTER}")
    assert result["stopped"] == [EXPORTER]
    assert run()["stopped"] == []


def test_the_exporter_runs_again_where_the_driver_could_not_be_taken_out(node: Node, run: Run) -> None:
    node.running("1.22.0-97ec1a4", *OLD)
    node.exports(4711)
    node.used_by(812, "python3")
    assert run()["msg"].startswith(
        "The running driver 1.22.0-97ec1a4 cannot be taken out while /dev/accel is in use by process 812 (python3); "
        "stop"
    )
    assert node.calls == [f"systemctl stop {EXPORTER}", f"systemctl start {EXPORTER}"]
    assert run(allow_reboot=True)["reboot_required"] is True


def test_a_call_of_hl_smi_is_waited_for_and_named_where_it_stays(node: Node, run: Run) -> None:
    node.running("1.22.0-97ec1a4", *OLD)
    node.used_by(4711, "hl-smi", "accel_controlD3")
    assert "in use by process 4711 (hl-smi, control devices only); stop" in run()["msg"]
    end = threading.Timer(0.3, lambda: (node.root / "proc/4711/fd/3").unlink())
    end.start()
    assert run(timeout=20)["changed"] is True
    end.join()


def test_a_driver_in_use_asks_for_a_reboot_where_allowed(node: Node, run: Run) -> None:
    node.running("1.22.0-97ec1a4", *OLD)
    node.used_by(812, "python3")
    result = run(allow_reboot=True)
    assert (result["changed"], result["reboot_required"], result["users"]) == (False, True, ["812 (python3)"])
    assert node.calls == []


def test_a_module_that_the_kernel_keeps_fails_or_asks_for_a_reboot(node: Node, run: Run) -> None:
    node.running("1.22.0-97ec1a4", *OLD)
    (node.root / "refuse").write_text("modprobe: FATAL: Module habanalabs is in use.\n")
    assert run()["msg"] == (
        "Module habanalabs cannot be unloaded (modprobe: FATAL: Module habanalabs is in use.); stop what uses it, or "
        "set synapseai_reboot_allowed=true to reboot the node instead."
    )
    assert run(allow_reboot=True)["reboot_required"] is True


def test_secure_boot_stops_a_load_unless_accepted(node: Node, run: Run) -> None:
    variable = node.root / "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
    variable.parent.mkdir(parents=True)
    variable.write_bytes(b"\x06\0\0\0\x01")
    result = run()
    assert result["msg"].startswith("Secure Boot is on and the kernel takes only modules signed with an enrolled key;")
    assert node.calls == []
    assert run(accept_secure_boot=True)["changed"] is True


def test_a_driver_that_is_not_installed_for_this_kernel_is_told(node: Node, run: Run) -> None:
    node.installed("")
    (node.root / "lib/5.4.0-1/updates").mkdir(parents=True)
    (node.root / "lib/5.4.0-1/updates/habanalabs.ko").write_text("module")
    assert run()["msg"] == (
        f"The driver is not installed for the running kernel {platform.release()} (only for 5.4.0-1); install the "
        "headers of this kernel and let DKMS build the driver, or boot a kernel that has it."
    )
    assert node.calls == []


@pytest.mark.parametrize("names", [("habanalabs_cn",), ("habanalabs", "habanalabs_ib"), NEW])
def test_empty_files_of_modules_are_named_with_the_remedy(node: Node, run: Run, names: tuple[str, ...]) -> None:
    for name in names:
        (node.root / "lib" / platform.release() / f"updates/dkms/{name}.ko").write_text("")
    assert run()["msg"] == (
        f"The module files of {', '.join(sorted(names))} for kernel {platform.release()} are empty, as DKMS can leave "
        "them while it calls them installed; build them again with 'dkms build --force' and 'dkms install --force' for "
        "the version that 'dkms status' shows."
    )
    assert node.calls == []
    # A release that is to be installed yet brings new ones.
    assert run(check=True)["changed"] is True


def test_empty_files_behind_a_running_driver_are_warned_about(node: Node, run: Run, warnings: list[str]) -> None:
    node.running("1.23.0-2eae87a", *NEW)
    (node.root / "lib" / platform.release() / "updates/dkms/habanalabs_en.ko").write_text("")
    assert run()["changed"] is False
    assert len(warnings) == 1 and warnings[0].startswith("The module files of habanalabs_en for kernel ")


def test_another_version_than_the_release_is_told(node: Node, run: Run) -> None:
    node.installed("1.22.0-97ec1a4", *NEW)
    assert run()["msg"] == (
        "The driver that runs is 1.22.0-97ec1a4, not 1.23.0 as release 1.23.0-695 asks; look whether DKMS built it "
        f"for kernel {platform.release()} (dkms status)."
    )


def test_a_card_that_is_not_operational_fails_the_read_back(node: Node, run: Run) -> None:
    (node.root / "status").write_text("In reset\n")
    assert run()["msg"] == (
        "0 of 2 cards are Operational (accel0 In reset, accel1 In reset); see dmesg, then reboot or service the node."
    )


def test_a_rejected_key_is_explained(node: Node, run: Run) -> None:
    (node.root / "refuse").write_text("modprobe: ERROR: could not insert 'ib_uverbs': Key was rejected by service\n")
    assert "enrol its key at the console" in run()["msg"]


def test_ports_that_were_never_brought_up_are_on_the_next_run(node: Node, run: Run) -> None:
    (node.root / "ports_fail").touch()
    assert run()["msg"] == (
        f"The external ports cannot be brought up (no ethtool); look at {node.root}/ports.sh --status."
    )
    (node.root / "ports_fail").unlink()
    (node.root / "calls").unlink()
    result = run()
    assert (result["changed"], result["ports_brought_up"], node.calls) == (True, True, ["ports --up"])


def test_cards_without_port_devices_have_no_ports_to_bring_up(node: Node, run: Run, warnings: list[str]) -> None:
    """As on virtual machines and PCIe cards, where the vendor's script ends with 1."""
    (node.root / "portless").touch()
    (node.root / "ports_fail").touch()
    result = run()
    assert (result["changed"], result.get("failed"), result["ports_brought_up"]) == (True, None, False)
    assert node.calls[-1] == "modprobe habanalabs_ib"
    assert warnings == [
        "No card has a network device, so there is no external port to bring up; set synapseai_ports_up=false where "
        "that is right."
    ]
    # A second run finds the driver loaded and does not repeat the remark.
    assert run()["changed"] is False
    assert len(warnings) == 1


def test_port_devices_may_come_some_time_after_the_modules(node: Node, run: Run) -> None:
    (node.root / "portless").touch()
    late = node.root / "sys/bus/pci/devices/0000:1a:00.0/net/ens2"
    node.script("modprobe", MODPROBE.replace("if [ $name = habanalabs ]", "[ $name != habanalabs_ib ] || "
                "(sleep 1; mkdir -p {root}/sys/bus/pci/devices/0000:1a:00.0/net/ens2) > /dev/null 2>&1 &\n"
                "if [ $name = habanalabs ]"))  # fmt: skip
    assert run(timeout=20)["ports_brought_up"] is True
    assert late.is_dir() and node.calls[-1] == "ports --up"


def test_ports_are_left_alone_where_that_is_asked_for(node: Node, run: Run, warnings: list[str]) -> None:
    assert run(ports_up=False)["ports_brought_up"] is False
    assert (node.calls[-1], warnings) == ("modprobe habanalabs_ib", [])


def test_a_host_without_cards_is_no_gaudi_node(node: Node, run: Run) -> None:
    for card in (node.root / "sys/bus/pci/devices").iterdir():
        (card / "vendor").write_text("0x8086\n")
    assert run()["msg"].startswith("No Gaudi card is on the PCI bus (vendor 1da3);")


def test_unexpected_preboot_firmware_is_warned_about(node: Node, run: Run, warnings: list[str]) -> None:
    node.running("1.23.0-2eae87a", *NEW)
    assert run(expected_preboot="hl-gaudi3-1.22.0-fw-61.3.2-sec-9")["changed"] is False
    assert warnings == []
    assert run(expected_preboot="hl-gaudi3-1.23.0-fw-62.2.1-sec-9")["changed"] is False
    found = "Preboot version hl-gaudi3-1.22.0-fw-61.3.2-sec-9"
    assert warnings == [
        f"Preboot firmware is not hl-gaudi3-1.23.0-fw-62.2.1-sec-9 on accel0 {found}, accel1 {found}; flash it with "
        "hl-fw-loader in a service window."
    ]


def test_a_coming_kernel_without_the_driver_is_warned_about(node: Node, run: Run, warnings: list[str]) -> None:
    node.running("1.23.0-2eae87a", *NEW)
    (node.root / "boot").mkdir()
    (node.root / "boot/vmlinuz-99.1.0").touch()
    run()
    assert warnings == [
        "Kernel 99.1.0 comes with the next boot and has no Gaudi driver; install its headers before you reboot."
    ]
    (node.root / "lib/99.1.0/updates").mkdir(parents=True)
    (node.root / "lib/99.1.0/updates/habanalabs.ko").write_text("module")
    run()
    assert len(warnings) == 1


def test_unloading_takes_all_out_and_names_no_reboot(node: Node, run: Run) -> None:
    node.running("1.23.0-2eae87a", *NEW)
    result = run(state="unloaded", release=None)
    assert result["unloaded"][-1] == "habanalabs_compat"
    assert (result["modules"], result["driver_version"]) == ([], None)
    assert run(state="unloaded", release=None)["changed"] is False


def test_a_missing_network_script_is_told_and_not_passed_over(node: Node, run: Run) -> None:
    (node.root / "ports.sh").unlink()
    result = run()
    assert result["failed"] is True
    assert result["msg"] == (
        f"The external ports cannot be brought up without {node.root}/ports.sh; install habanalabs-qual."
    )


@pytest.mark.parametrize(
    ("tool", "sentence"),
    [
        (
            "modprobe",
            "Module ib_uverbs cannot be loaded (modprobe did not end within 1 seconds and was killed); see dmesg.",
        ),
        (
            "ports.sh",
            "The external ports cannot be brought up (ports.sh did not end within 1 seconds and was killed); look at "
            "{root}/ports.sh --status.",
        ),
    ],
)
def test_a_tool_that_hangs_ends_in_a_sentence(node: Node, run: Run, tool: str, sentence: str) -> None:
    node.script(tool, "#!/bin/sh\nexec sleep 20\n")
    begun = time.monotonic()
    result = run(command_timeout=1)
    assert result["failed"] and result["msg"] == sentence.format(root=node.root)
    assert time.monotonic() - begun < 10
