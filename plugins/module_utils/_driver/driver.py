# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The driver of a node at work: what it is, what stands in the way of another, taking out and putting in."""

from __future__ import annotations

import os
import platform
import time
from typing import TYPE_CHECKING

from .._cards import accel, pci
from .._hl_smi.command import HlSmiHung, Runner
from .._release.versions import Release, version_of
from . import kernel_modules
from .kernel_modules import Plan

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

    from .exporters import Exporters

# Where the kernel shows itself, and where its modules are.
SYSFS = "/sys"
PROC = "/proc"
MODULES = "/lib/modules"
BOOT = "/boot"

# Network devices of external ports come some time after their modules and cards.
_PORTS_TIMEOUT = 30
# A call of hl-smi takes seconds.
_CALL_TIMEOUT = 10
_ENGLISH = {"LANGUAGE": "C", "LC_ALL": "C"}

_REBOOT = "set synapseai_reboot_allowed=true to reboot the node instead"


class Driver:
    """The node's driver, as found, and what is to become of it."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        module.run_command_environ_update = _ENGLISH
        self.kernel = platform.release()
        self.release: str = module.params["release"] or ""
        self.cards = pci.cards(SYSFS)
        self.running = pci.modules(SYSFS)
        self.version = pci.driver_version(SYSFS)
        self.installed = kernel_modules.installed_modules(self.kernel, MODULES)
        wanted = module.params["state"] == "loaded"
        self.reboot_instead: bool = wanted and module.params["allow_reboot"]

    def check_request(self) -> None:
        """Fail on a release that is none, and on a host without cards."""
        try:
            Release.parse(self.release)
        except ValueError as error:
            self.fail(str(error))
        if not self.cards:
            self.fail(
                f"No Gaudi card is on the PCI bus (vendor {pci.VENDOR}); take this host out of the Gaudi nodes' group."
            )

    def runs(self, name: str) -> bool:
        """Whether a module is loaded (or built in). /proc/modules is not there on every kernel."""
        return os.path.isdir(os.path.join(SYSFS, "module", name))

    def users(self, exporters: Exporters) -> list[accel.User]:
        """Processes that hold a device open; in check mode without those of exporters, which a real run stops.

        A call of hl-smi ends soon, so control devices are given some time to become free.
        """
        deadline = time.monotonic() + min(self.module.params["timeout"], _CALL_TIMEOUT)
        while True:
            found = [user for user in accel.users(PROC) if not (self.module.check_mode and exporters.has(user))]
            if not all(user.control for user in found) or not found or time.monotonic() >= deadline:
                return found
            time.sleep(0.5)

    def ports_down(self) -> bool:
        """Whether no external port was brought up since the load."""
        return accel.external_ports_down([card.bus_id for card in self.cards], SYSFS)

    def now(self) -> tuple[list[str], str | None]:
        """Modules that run now, and the driver's version."""
        return pci.modules(SYSFS), pci.driver_version(SYSFS)

    def plan(self) -> Plan:
        """What has to go and come."""
        if self.module.params["state"] == "unloaded":
            return Plan(kernel_modules.unload_order(self.running), [])
        return kernel_modules.make_plan(self.running, self.version, self.installed, self.release)

    def refuse_users(self, users: list[accel.User]) -> None:
        """Fail on processes that hold a driver which has to go."""
        if users and not self.reboot_instead:
            instead = f", or {_REBOOT}" if self.release else ""
            self.fail(
                f"The running driver {self.version} cannot be taken out while /dev/accel is in use by process "
                f"{', '.join(map(str, users))}; stop what uses it{instead}."
            )

    def refuse(self, plan: Plan) -> None:
        """Fail on what stands in the way, before anything is touched."""
        if (
            plan.load
            and kernel_modules.secure_boot(os.path.join(SYSFS, "firmware/efi/efivars"))
            and not self.module.params["accept_secure_boot"]
        ):
            self.fail(
                "Secure Boot is on and the kernel takes only modules signed with an enrolled key; enrol the key of "
                "DKMS at the console (mokutil --import, reboot) and set synapseai_accept_secure_boot=true, or switch "
                "Secure Boot off."
            )
        empty = self.empty_modules()
        if plan.load and empty and not self.module.check_mode:
            self.fail(empty)
        if plan.load and not self.installed and not self.module.check_mode:
            others = kernel_modules.kernels_with_driver(MODULES)
            found = f"only for {', '.join(others)}" if others else "for no kernel"
            self.fail(
                f"The driver is not installed for the running kernel {self.kernel} ({found}); install the headers of "
                "this kernel and let DKMS build the driver, or boot a kernel that has it."
            )

    def empty_modules(self) -> str:
        """One sentence on module files without content; empty where there is none."""
        empty = kernel_modules.empty_modules(self.kernel, MODULES)
        if not empty:
            return ""
        return (
            f"The module files of {', '.join(empty)} for kernel {self.kernel} are empty, as DKMS can leave them "
            "while it calls them installed; build them again with 'dkms build --force' and 'dkms install --force' "
            "for the version that 'dkms status' shows."
        )

    def unload(self, plan: Plan) -> bool:
        """Take the plan's modules out; False where the kernel keeps one and a reboot is allowed instead."""
        for name in plan.unload:
            if not self.runs(name):
                continue  # modprobe -r took it out along with the last one that used it
            # modprobe knows installed modules only; after a change of release a running one may have no file.
            command = [self.tool("modprobe"), "-r"] if name in self.installed else [self.tool("rmmod")]
            complaint = self.run([*command, name])
            if complaint and self.reboot_instead:
                return False
            if complaint:
                self.fail(f"Module {name} cannot be unloaded ({complaint}); stop what uses it, or {_REBOOT}.")
        return True

    def load(self, plan: Plan) -> None:
        """Put the plan's modules in."""
        for name in [kernel_modules.RDMA_CORE, *plan.load] if plan.load else []:
            if self.runs(name):
                continue
            complaint = self.run([self.tool("modprobe"), name])
            if complaint:
                advice = "see dmesg"
                if "Key was rejected" in complaint:
                    advice = "enrol its key at the console (mokutil --import), or switch Secure Boot off"
                self.fail(f"Module {name} cannot be loaded ({complaint}); {advice}.")

    def has_ports(self, timeout: int) -> bool:
        """Whether a card has a network device, which virtual machines and PCIe cards may not show."""
        deadline = time.monotonic() + min(timeout, _PORTS_TIMEOUT)
        bus_ids = [card.bus_id for card in self.cards]
        while not accel.external_ports(bus_ids, SYSFS):
            if time.monotonic() >= deadline:
                return False
            time.sleep(1)
        return True

    def bring_ports_up(self, timeout: int) -> bool:
        """Run the vendor's script, as a load leaves the external ports down; False where there is none of them."""
        if not self.has_ports(timeout):
            self.module.warn(
                "No card has a network device, so there is no external port to bring up; set synapseai_ports_up=false "
                "where that is right."
            )
            return False
        script = self.module.params["network_script"]
        if not os.path.exists(script):
            self.fail(f"The external ports cannot be brought up without {script}; install habanalabs-qual.")
        complaint = self.run([script, "--up"])
        if complaint:
            self.fail(f"The external ports cannot be brought up ({complaint}); look at {script} --status.")
        return True

    def wait_for_cards(self, timeout: int) -> list[accel.Device]:
        """The devices, once all work or time is up."""
        deadline = time.monotonic() + timeout
        found = accel.devices(SYSFS)
        while accel.waiting(found, len(self.cards)) and time.monotonic() < deadline:
            time.sleep(1)
            found = accel.devices(SYSFS)
        return found

    def require_working(self, found: list[accel.Device]) -> None:
        """Fail unless the release's driver runs and every card works."""
        version = pci.driver_version(SYSFS)
        if version_of(version) != version_of(self.release):
            self.fail(
                f"The driver that runs is {version}, not {version_of(self.release)} as release {self.release} asks; "
                f"look whether DKMS built it for kernel {self.kernel} (dkms status)."
            )
        trouble = accel.trouble(found, len(self.cards))
        if trouble:
            self.fail(trouble)

    def warn_ahead(self, found: list[accel.Device]) -> None:
        """Warn of what will matter later."""
        expected = self.module.params["expected_preboot"]
        other = [
            f"{device.name} {device.preboot}" for device in found if expected and expected not in (device.preboot or "")
        ]
        if other:
            self.module.warn(
                f"Preboot firmware is not {expected} on {', '.join(other)}; flash it with hl-fw-loader in a service "
                "window."
            )
        empty = self.empty_modules()
        if empty:
            self.module.warn(empty)
        coming = kernel_modules.next_kernel(self.kernel, BOOT)
        if coming and kernel_modules.DRIVER not in kernel_modules.installed_modules(coming, MODULES):
            self.module.warn(
                f"Kernel {coming} comes with the next boot and has no Gaudi driver; install its headers before you "
                "reboot."
            )

    def tool(self, option: str) -> str:
        """The executable that an option names."""
        return str(self.module.get_bin_path(self.module.params[option], required=True))

    def run(self, command: list[str]) -> str:
        """Run a command; what it complained of last, empty where it succeeded. A card can hold it for ever."""
        limit = self.module.params["command_timeout"]
        try:
            status, output, errors = Runner(limit, _ENGLISH)(command)
        except HlSmiHung:
            return f"{os.path.basename(command[0])} did not end within {limit} seconds and was killed"
        except OSError as error:
            return str(error)
        lines = [line for line in (errors or output).strip().splitlines() if line]
        return "" if status == 0 else (lines[-1] if lines else f"exit code {status}")

    def fail(self, message: str) -> None:
        """Give up with one sentence."""
        self.module.fail_json(msg=message, driver_version=pci.driver_version(SYSFS), modules=pci.modules(SYSFS))
