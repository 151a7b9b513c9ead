# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What gaudi_driver does: look, plan, refuse or act, read back."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from .._driver.driver import Driver
from .._driver.exporters import Exporters
from .._driver.kernel_modules import Plan
from .._release.versions import version_of

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "state": {"type": "str", "choices": ["loaded", "unloaded"], "default": "loaded"},
    "release": {"type": "str"},
    "allow_reboot": {"type": "bool", "default": False},
    "accept_secure_boot": {"type": "bool", "default": False},
    "ports_up": {"type": "bool", "default": True},
    "expected_preboot": {"type": "str", "default": ""},
    "timeout": {"type": "int", "default": 300},
    "command_timeout": {"type": "int", "default": 300},
    "exporters": {"type": "list", "elements": "str", "default": ["gaudi-hpu-exporter.service"]},
    "modprobe": {"type": "path", "default": "modprobe"},
    "rmmod": {"type": "path", "default": "rmmod"},
    "systemctl": {"type": "path", "default": "systemctl"},
    "network_script": {"type": "path", "default": "/opt/habanalabs/qual/gaudi3/bin/manage_network_ifs.sh"},
}
REQUIRED_IF = [("state", "loaded", ["release"])]


def run(module: AnsibleModule) -> dict[str, Any]:
    """Bring the driver to its state."""
    driver = Driver(module)
    if module.params["state"] == "loaded":
        driver.check_request()
    plan = driver.plan()
    driver.refuse(plan)
    exporters = Exporters(module)
    stopped: list[str] = []
    if plan.unload:
        exporters.find()
    try:
        if plan.unload and not module.check_mode:
            stopped = exporters.stop()
        result = _carry_out(driver, plan, exporters)
    finally:
        # Also where something failed meanwhile: without it nobody would see the node's cards.
        if stopped:
            exporters.start()
    return {"stopped": stopped, **result}


def _carry_out(driver: Driver, plan: Plan, exporters: Exporters) -> dict[str, Any]:
    """Take out, put in, read back; what to return."""
    module = driver.module
    wanted = module.params["state"] == "loaded"
    users = driver.users(exporters) if plan.unload else []
    driver.refuse_users(users)
    ports = wanted and module.params["ports_up"]
    ports = ports and (bool(plan.load) or driver.ports_down())
    predicted = module.check_mode and not plan.empty
    held = bool(users) or not (module.check_mode or driver.unload(plan))
    if held:
        plan, ports, predicted = Plan([], []), False, False
    if not module.check_mode:
        driver.load(plan)
    found = driver.wait_for_cards(module.params["timeout"] if plan.load and not predicted else 0)
    if ports and not module.check_mode:
        ports = driver.bring_ports_up(module.params["timeout"])
    if wanted and not held and not predicted:
        driver.require_working(found)
        driver.warn_ahead(found)
    modules, version = driver.now()
    if predicted:
        modules = sorted({*driver.running} - {*plan.unload} | {*plan.load})
        version = version_of(driver.release) if plan.load else None
    return {
        "changed": bool(ports or not plan.empty),
        "driver_version": version,
        "previous_version": driver.version,
        "modules": modules,
        "unloaded": plan.unload,
        "loaded": plan.load,
        "ports_brought_up": bool(ports),
        "reboot_required": held,
        "users": [str(user) for user in users],
        "cards": [asdict(device) for device in found],
        "diff": {
            "before": f"driver: {driver.version}\nmodules: {', '.join(driver.running)}\n",
            "after": f"driver: {version}\nmodules: {', '.join(modules)}\n",
        },
    }
