# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What kernel_holds does: look, decide, put on record, hold and lift, read back."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .._apt import dpkg
from .._driver import kernel_locks, kernel_locks_dnf5, kernel_offered, kernel_packages
from .._driver.kernel_holds import Decision, Node, decide, obstacle, read_record, record_text
from .._driver.kernel_modules import kernels_with_driver
from .._driver.versions_found import system_of
from .._files import ensure_file, make_folder
from .._printable import few
from .._refusal import Refusal
from .._release.compat import Matrix
from .._release.versions import Release

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "release": {"type": "str", "required": True},
    "hold": {"type": "bool", "default": True},
    "timeout": {"type": "int", "default": 120},
    "record": {"type": "path", "default": "/etc/gaudi3-scale/kernel-holds"},
    "versionlock": {"type": "path", "default": "/etc/dnf/plugins/versionlock.list"},
    "versionlock_dnf5": {"type": "path", "default": "/etc/dnf/versionlock.toml"},
    "modules": {"type": "path", "default": "/lib/modules"},
    "os_release": {"type": "path", "default": "/etc/os-release"},
}
_NOTHING: dict[str, Any] = {"changed": False, "hold": [], "lift": [], "held": [], "remarks": [], "diff": []}
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
    # A RHEL may have apt's programs, too, and a Debian rpm's.
    if all(tools) and not system_of(given["os_release"]).startswith("RedHat"):
        return _apt(module, ours, (tools[0], tools[1], tools[2]))
    rpm = module.get_bin_path("rpm")
    found = {**_NOTHING}
    try:
        found = _dnf(module, ours, rpm) if rpm else found
    except Refusal as error:
        module.fail_json(msg=str(error))
    return found


def _dnf(module: AnsibleModule, ours: Sequence[str], rpm: str) -> dict[str, Any]:
    """Bring the locks of dnf 4 and of dnf5, whichever are there, to the kernels that have the driver."""
    given = module.params
    dnf4, dnf5 = (module.get_bin_path(name) for name in ("dnf-3", "dnf5"))
    _status, output, _errors = module.run_command([rpm, "-q", "--queryformat", kernel_offered.QUERY,
                                                   *kernel_locks.PACKAGES])  # fmt: skip
    installed = kernel_offered.read_installed(output, kernel_locks.PACKAGES)
    built = kernels_with_driver(given["modules"])
    system = system_of(given["os_release"])
    about = (installed, built or [os.uname().release], system)
    of_dnf5 = [each for each in ours if each.startswith(kernel_locks_dnf5.MARK)]
    of_dnf4 = [each for each in ours if each not in of_dnf5]
    found: dict[str, kernel_locks.Locks] = {}
    if os.path.isfile(given["versionlock"]):
        text = _text(given["versionlock"])
        found[given["versionlock"]] = kernel_locks.decide(text, *about, of_dnf4, given["hold"])
    if dnf5 or of_dnf5:
        path = given["versionlock_dnf5"]
        found[path] = kernel_locks_dnf5.decide(_text(path), *about, of_dnf5, bool(dnf5 and given["hold"]), path)
    remarks = []
    if given["hold"] and given["versionlock"] not in found and (dnf4 or not dnf5):
        remarks.append(
            f"Kernels are not held back, as dnf has no list of locks ({given['versionlock']}): install "
            "python3-dnf-plugin-versionlock."
        )
    names = sorted({name for each in found.values() for name in each.names})
    asked = dnf5 or dnf4 or module.get_bin_path("dnf")
    if names and asked:
        coming = kernel_offered.offered(module.run_command, asked, installed.get(kernel_offered.CORE, []))
        reason = coming and obstacle(Node(given["release"], system, built, []), coming, Matrix())
        remarks += [f"Kernel {coming} is offered and held back ({few(names)}): {reason}"] if reason else []
    for remark in remarks:
        module.warn(remark)
    return {**_lock(module, ours, found), "remarks": remarks}


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as stream:
            return stream.read()
    except FileNotFoundError:
        return ""


def _lock(module: AnsibleModule, ours: Sequence[str], found: Mapping[str, kernel_locks.Locks]) -> dict[str, Any]:
    """Write the lists of locks that are to be others, and the record."""
    record = module.params["record"]
    added = [line for each in found.values() for line in each.added]
    removed = [line for each in found.values() for line in each.removed]
    kept = sorted({line for each in found.values() for line in each.ours})
    # As of apt: a line is on record before it is there, and until it is gone.
    if not module.check_mode and (added or removed):
        ensure_file(module, record, record_text({*ours, *kept}))
    differences = []
    for path, each in found.items():
        if each.added or each.removed:
            lines = "".join(f"{line}\n" for line in each.lines)
            mode = os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o644
            # dnf 4 wants its list, and dnf5 needs none that is empty.
            wanted = lines if each.lines or path == module.params["versionlock"] else None
            differences.append(ensure_file(module, path, wanted, mode))
    if {*ours} != {*kept}:
        differences.append(_record_difference(record, ours, kept))
        ensure_file(module, record, record_text(kept))
    return {
        "changed": bool(differences),
        "hold": added,
        "lift": removed,
        "held": kept,
        "diff": [each for each in differences if each],
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
    difference = _record_difference(path, ours, decision.ours)
    if not module.check_mode:
        ensure_file(module, path, record_text(decision.ours))
    return [difference]


def _record_difference(path: str, ours: Sequence[str], kept: Sequence[str]) -> dict[str, Any]:
    return {
        "before_header": path,
        "after_header": path,
        "before": record_text(ours) or "",
        "after": record_text(kept) or "",
    }


def _mark(module: AnsibleModule, command: Sequence[str]) -> None:
    """Call apt-mark; another program that has dpkg's database is waited for."""
    status, output, errors = dpkg.mark(module.run_command, command, module.params["timeout"])
    if status:
        said = (errors or output).strip().splitlines()
        module.fail_json(
            msg=f"apt-mark {command[1]} failed for {', '.join(command[2:])} ({said[-1] if said else status}): run "
            "it by hand on the node to see why."
        )


def _read_back(module: AnsibleModule, decision: Decision, dpkg_query: str) -> None:
    """Fail where dpkg does not show what apt-mark did."""
    names = [*decision.hold, *decision.lift]
    now = kernel_packages.installed_of(lambda command: module.run_command([*command]), dpkg_query, names)
    wrong = [name for name in names if name in now and now[name].held != (name in decision.hold)]
    if wrong:
        module.fail_json(
            msg=f"apt-mark succeeded, and dpkg does not show it of {', '.join(wrong)}: look at 'dpkg --get-selections'."
        )
