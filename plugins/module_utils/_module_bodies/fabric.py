# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What gaudi_fabric does: the files that the collective library reads."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from .._cards import accel, pci
from .._fabric import fabric, gaudinet, hccl_environment, lldp
from .._fabric_lint import cabling
from .._files import ensure_file
from .._printable import printable
from .._refusal import Refusal

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "kind": {"type": "str", "choices": list(fabric.KINDS), "default": "gaudi"},
    "mode": {"type": "str", "choices": ["l2", "l3", "unmanaged"], "default": "l2"},
    "nics": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {key: {"type": "str"} for key in gaudinet.KEYS},
    },
    "lldp": {"type": "bool", "default": False},
    "lldp_wait": {"type": "int", "default": 60},
    "host": {"type": "str", "default": ""},
    "cables": cabling.ARGUMENT_SPEC,
    "gaudinet_path": {"type": "path", "default": gaudinet.DEFAULT_PATH},
    "environment": {"type": "dict", "default": {}},
    "environment_path": {"type": "path", "default": "/etc/gaudi3-scale/fabric.env"},
    "sysfs_root": {"type": "path", "default": "/sys"},
}

#: What a dry run shows of a file that only the run can know.
_NOT_YET = "(the addresses that LLDP tells once lldpd runs and the external ports are up)\n"


def run(module: AnsibleModule) -> dict[str, Any]:
    """Bring the files to their contents."""
    options = module.params
    given = {name: _argument(value) for name, value in options["environment"].items()}
    try:
        environment = _variables(options, given)
        files, replaced = _plan(module, hccl_environment.file_text(environment))
    except Refusal as error:
        module.fail_json(msg=str(error))
    idle = hccl_environment.without_effect(given, options["kind"])
    if idle:
        module.warn(
            f"{', '.join(idle)} only acts on scale-out over host NICs; this host's fabric is {options['kind']!r}."
        )
    kept = {"backup": module.backup_local(options["gaudinet_path"])} if replaced and not module.check_mode else {}
    diffs = [
        difference for path, content in files.items() if (difference := ensure_file(module, path, content)) is not None
    ]
    return {
        "changed": bool(diffs),
        "diff": diffs,
        "files": [difference["after_header"] for difference in diffs],
        "environment": environment,
        "without_effect": idle,
        "addresses_known": not (options["lldp"] and files.get(options["gaudinet_path"], _NOT_YET) == _NOT_YET),
        **kept,
    }


def _argument(value: object) -> str:
    """A variable's value as the library reads it: YAML's true is its 1."""
    return str(int(value)) if isinstance(value, bool) else str(value)


def _variables(options: dict[str, Any], given: dict[str, str]) -> dict[str, str]:
    """The environment file's variables: those of the kind, the place of gaudinet.json, and those given."""
    environment = dict(hccl_environment.DEFAULTS.get(options["kind"], {}))
    path = options["gaudinet_path"]
    used = options["mode"] == "l3" or (options["mode"] == "unmanaged" and os.path.exists(path))
    if options["kind"] == "gaudi" and used and path != gaudinet.DEFAULT_PATH:
        environment["HCL_GAUDINET_CONFIG_FILE"] = path
    environment.update(given)
    hccl_environment.check(environment)
    return environment


def _plan(module: AnsibleModule, environment: str) -> tuple[dict[str, str | None], bool]:
    """The text of each file by its path (None: it does not exist), and whether somebody else's file is replaced."""
    options = module.params
    path, beside = options["gaudinet_path"], {options["environment_path"]: environment}
    record = os.path.join(os.path.dirname(options["environment_path"]), "gaudinet.json.sha256")
    present = gaudinet.look(path, record)
    if options["state"] == "absent":
        ours = {} if present.foreign else {path: None}
        return {**ours, record: None, options["environment_path"]: None}, False
    if options["lldp"] and options["kind"] == "gaudi" and (options["nics"] or options["mode"] != "l3"):
        raise Refusal(
            f"lldp is true with {'nics' if options['nics'] else 'mode=' + options['mode']}: it takes the addresses of "
            "mode=l3 from the switches, so give mode=l3 and no nics, or lldp=false"
        )
    if options["kind"] == "gaudi" and options["mode"] == "l3":
        text = _addresses(module)
        if text is None and present.text is not None and not present.empty and not present.foreign:
            return {**beside}, False
        text = _NOT_YET if text is None else text
        replaced = present.foreign and present.text != text
        return {path: text, record: gaudinet.digest_text(text), **beside}, replaced
    if options["kind"] == "gaudi" and options["mode"] == "unmanaged":
        return {**beside}, False
    if present.foreign:
        if options["kind"] == "gaudi":
            raise Refusal(
                f"{path} holds port addresses that this module did not write, and mode=l2 would remove them: keep them "
                "with mode=unmanaged, give them as nics with mode=l3, or move the file away"
            )
        return {**beside}, False
    return {path: None, record: None, **beside}, False


def _addresses(module: AnsibleModule) -> str | None:
    """The text of gaudinet.json; None where a dry run cannot know it, as LLDP is not there before the run."""
    options = module.params
    sysfs = options["sysfs_root"]
    ports = accel.external_ports([card.bus_id for card in pci.cards(sysfs)], sysfs)
    if not options["lldp"]:
        return gaudinet.file_text(gaudinet.checked(options["nics"], {port.mac for port in ports if port.mac}))
    program = module.get_bin_path("lldpcli", opt_dirs=["/usr/sbin"])
    if module.check_mode and (program is None or not ports or any(port.state != "up" for port in ports)):
        module.warn("The addresses that LLDP tells are known once lldpd runs and all external ports are up.")
        return None
    if program is None:
        raise Refusal("lldpcli is not there: install package lldpd, or give the addresses as nics")
    host = options["host"] or "this host"
    named = [lldp.HostPort(port.name, port.mac or "") for port in ports]
    cables = [cabling.Cable(**{key: str(value) for key, value in each.items()}) for each in options["cables"]]
    end = time.monotonic() + options["lldp_wait"]
    while True:
        code, output, error = module.run_command(
            [program, "-f", "json0", "show", "neighbors", "details"], environ_update={"LC_ALL": "C", "LANGUAGE": "C"}
        )
        if code != 0 and module.check_mode:
            module.warn("lldpd does not answer yet: the addresses that LLDP tells are not known.")
            return None
        if code != 0:
            raise Refusal(f"lldpd does not answer ({printable(error.strip(), 200)}): see 'systemctl status lldpd'")
        if time.monotonic() >= end or not lldp.lacking(named, host, output):
            return gaudinet.file_text(lldp.entries(host, named, output, cables))
        time.sleep(2)
