# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What kernel_holds does: look, decide, put on record, hold and lift, read back."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .._driver import kernel_locks, kernel_packages
from .._driver.kernel_holds import Decision, Node, decide, read_record, record_text
from .._driver.kernel_modules import kernels_with_driver
from .._driver.versions_found import system_of
from .._files import ensure_file, make_folder
from .._refusal import Refusal
from .._release.versions import Release

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "release": {"type": "str", "required": True},
    "hold": {"type": "bool", "default": True},
    "timeout": {"type": "int", "default": 120},
    "record": {"type": "path", "default": "/etc/gaudi3-scale/kernel-holds"},
    "versionlock": {"type": "path", "default": "/etc/dnf/plugins/versionlock.list"},
    "modules": {"type": "path", "default": "/lib/modules"},
    "os_release": {"type": "path", "default": "/etc/os-release"},
}
_ENGLISH = {"LANGUAGE": "C", "LC_ALL": "C"}


def run(module: AnsibleModule) -> dict[str, Any]:
    """Bring holds or locks to what the kernels ask for."""
    module.run_command_environ_update = _ENGLISH
    given = module.params
    try:
        Release.parse(given["release"])
        ours = _record(given["record"])
    except (ValueError, Refusal) as error:
        module.fail_json(msg=str(error))
    tools = [module.get_bin_path(name) for name in ("dpkg-query", "apt-cache", "apt-mark")]
    rpm = module.get_bin_path("rpm")
    # A RHEL may have apt's programs, too, and a Debian rpm's.
    if all(tools) and not system_of(given["os_release"]).startswith("RedHat"):
        return _apt(module, ours, (tools[0], tools[1], tools[2]))
    if rpm and os.path.isfile(given["versionlock"]):
        return _dnf(module, ours, rpm)
    remarks = []
    if rpm and given["hold"]:
        remarks = [
            f"Kernels are not held back, as dnf has no list of locks ({given['versionlock']}): install "
            "python3-dnf-plugin-versionlock."
        ]
        module.warn(remarks[0])
    return {"changed": False, "hold": [], "lift": [], "held": [], "remarks": remarks, "diff": []}


def _dnf(module: AnsibleModule, ours: Sequence[str], rpm: str) -> dict[str, Any]:
    """Bring the lines of dnf's list to the kernels that have the driver."""
    given = module.params
    _status, output, _errors = module.run_command([rpm, "-q", "--queryformat", "%{NAME}\\n", *kernel_locks.PACKAGES])
    kernels = kernels_with_driver(given["modules"]) or [os.uname().release]
    with open(given["versionlock"], encoding="utf-8", errors="surrogateescape") as stream:
        text = stream.read()
    system = system_of(given["os_release"])
    installed = {line for line in output.splitlines() if line in kernel_locks.PACKAGES}
    found = kernel_locks.decide(text, installed, kernels, system, ours, given["hold"])
    # As of apt: a line is on record before it is there, and until it is gone.
    if not module.check_mode and (found.added or found.removed):
        ensure_file(module, given["record"], record_text({*ours, *found.ours}))
    differences = []
    if found.added or found.removed:
        lines = "".join(f"{line}\n" for line in found.lines)
        mode = os.stat(given["versionlock"]).st_mode & 0o777
        differences = [ensure_file(module, given["versionlock"], lines, mode)]
    differences.append(ensure_file(module, given["record"], record_text(found.ours)))
    changed = bool(found.added or found.removed or {*ours} != {*found.ours})
    return {
        "changed": changed,
        "hold": [*found.added],
        "lift": [*found.removed],
        "held": [*found.ours],
        "remarks": [],
        "diff": [each for each in differences if each] if changed else [],
    }


def _apt(module: AnsibleModule, ours: Sequence[str], tools: tuple[str, str, str]) -> dict[str, Any]:
    """Hold the packages that would bring a kernel without the driver."""
    given = module.params
    dpkg_query, apt_cache, apt_mark = tools

    def call(command: Sequence[str]) -> tuple[int, str, str]:
        status, output, errors = module.run_command([*command])
        return int(status), str(output), str(errors)

    found = kernel_packages.bringers(call, dpkg_query, apt_cache, ours)
    node = Node(
        given["release"], system_of(given["os_release"]), kernels_with_driver(given["modules"]), found, frozenset(ours)
    )
    decision = decide(node, given["hold"])
    for remark in decision.remarks:
        module.warn(remark)
    written = _carry_out(module, decision, ours, (dpkg_query, apt_mark))
    before = {each.name for each in found if each.held}
    after = (before | {*decision.hold}) - {*decision.lift}
    return {
        "changed": bool(decision.hold or decision.lift or written),
        "hold": [*decision.hold],
        "lift": [*decision.lift],
        "held": sorted(after),
        "remarks": [*decision.remarks],
        "diff": [
            {
                "before_header": "kernel packages on hold",
                "after_header": "kernel packages on hold",
                "before": "".join(f"{name}\n" for name in sorted(before)),
                "after": "".join(f"{name}\n" for name in sorted(after)),
            },
            *written,
        ],
    }


def _record(path: str) -> tuple[str, ...]:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return read_record(stream.read(), path)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise Refusal(f"{path} cannot be read ({error.strerror}): see that it is a file, or remove it.") from error


def _carry_out(
    module: AnsibleModule, decision: Decision, ours: Sequence[str], tools: tuple[str, str]
) -> list[dict[str, Any]]:
    """Do what was decided; the differences of the record.

    A hold is on record before it is set, and on record until it is lifted: a run that is killed between the two leaves
    none that nobody would lift.
    """
    path = module.params["record"]
    acts = {"hold": decision.hold, "unhold": decision.lift}
    if not module.check_mode and any(acts.values()):
        make_folder(os.path.dirname(path))
        ensure_file(module, path, record_text({*ours, *decision.ours}))
        for word, names in acts.items():
            if names:
                _mark(module, [tools[1], word, *names])
        _read_back(module, decision, tools[0])
    if {*ours} == {*decision.ours}:
        return []
    difference = _record_difference(path, ours, decision)
    if not module.check_mode:
        ensure_file(module, path, record_text(decision.ours))
    return [difference]


def _record_difference(path: str, ours: Sequence[str], decision: Decision) -> dict[str, Any]:
    return {
        "before_header": path,
        "after_header": path,
        "before": record_text(ours) or "",
        "after": record_text(decision.ours) or "",
    }


def _mark(module: AnsibleModule, command: Sequence[str]) -> None:
    """Call apt-mark; another program that has dpkg's database is waited for."""
    deadline = time.monotonic() + module.params["timeout"]
    while True:
        status, output, errors = module.run_command([*command])
        if status == 0:
            return
        said = (errors or output).strip().splitlines()
        if "lock" not in errors or time.monotonic() >= deadline:
            module.fail_json(
                msg=f"apt-mark {command[1]} failed for {', '.join(command[2:])} ({said[-1] if said else status}): run "
                "it by hand on the node to see why."
            )
        time.sleep(1)


def _read_back(module: AnsibleModule, decision: Decision, dpkg_query: str) -> None:
    """Fail where dpkg does not show what apt-mark did."""
    names = [*decision.hold, *decision.lift]
    now = kernel_packages.installed_of(lambda command: module.run_command([*command]), dpkg_query, names)
    wrong = [name for name in names if name in now and now[name].held != (name in decision.hold)]
    if wrong:
        module.fail_json(
            msg=f"apt-mark succeeded, and dpkg does not show it of {', '.join(wrong)}: look at 'dpkg --get-selections'."
        )
