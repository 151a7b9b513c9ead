#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The files that tell Gaudi's collective library about the fabric."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_fabric
short_description: Write the fabric configuration of a Gaudi host
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Writes C(gaudinet.json) for a layer-3 fabric, or removes it for layer 2, and writes the environment file that
    training units read.
  - A C(gaudinet.json) that this module did not write is never lost. It is not removed, and what replaces it leaves a
    backup beside it. What the module wrote is known by a digest beside the environment file.
  - Everything is checked before anything is written, and each file is replaced as a whole. An empty C(gaudinet.json),
    which the library stumbles over, never exists.
  - Only environment variables which the library really reads are accepted. An unknown name is an error which names
    the nearest known one.
options:
  state:
    description:
      - V(absent) removes the environment file, and the C(gaudinet.json) that this module wrote.
    type: str
    choices: [present, absent]
    default: present
  kind:
    description:
      - The fabric that carries collectives out of this host, as M(gaudi3.scale.gaudi_fabric_facts) tells it.
      - V(efa) and V(host_nic) add the variables that the vendor documents for direct transfers over host
        NICs, and V(host_tcp) those for transfers through host memory over TCP.
    type: str
    choices: [gaudi, host_nic, host_tcp, efa, none]
    default: gaudi
  mode:
    description:
      - Whether Gaudi's own ports talk Ethernet in one segment (V(l2)) or have addresses of their own (V(l3)).
      - V(unmanaged) leaves C(gaudinet.json) as it is, for a site that writes it by other means.
      - Applies to O(kind=gaudi). On other kinds the file is left as it is.
    type: str
    choices: [l2, l3, unmanaged]
    default: l2
  nics:
    description:
      - The addresses of this host's external ports. Needed for O(mode=l3).
      - Where the driver is loaded, a C(nic_mac) that no port of this host has is an error.
    type: list
    elements: dict
    default: []
    suboptions:
      nic_mac:
        description: MAC address of the port.
        type: str
      nic_ip:
        description: IPv4 address of the port.
        type: str
      subnet_mask:
        description: Mask of its network, such as C(255.255.255.252).
        type: str
      gateway_mac:
        description: MAC address of the gateway, that is of the switch's side.
        type: str
  gaudinet_path:
    description:
      - Where C(gaudinet.json) goes. Elsewhere than by default, C(HCL_GAUDINET_CONFIG_FILE) is set to it.
    type: path
    default: /etc/habanalabs/gaudinet.json
  environment:
    description:
      - Variables for the collective library, which win over those that O(kind) adds.
    type: dict
    default: {}
  environment_path:
    description:
      - Where the environment file goes.
    type: path
    default: /etc/gaudi3-scale/fabric.env
  sysfs_root:
    description:
      - Where sysfs is mounted.
    type: path
    default: /sys
attributes:
  check_mode:
    description: Checks everything, predicts the change and makes none.
    support: full
  diff_mode:
    description: Shows the files before and after.
    support: full
"""

EXAMPLES = r"""
- name: One Ethernet segment
  gaudi3.scale.gaudi_fabric:
    mode: l2
    environment:
      HCCL_SOCKET_IFNAME: eth0

- name: An address for each port
  gaudi3.scale.gaudi_fabric:
    mode: l3
    nics:
      - nic_mac: 02:00:00:00:00:01
        nic_ip: 10.120.0.1
        subnet_mask: 255.255.255.252
        gateway_mac: 06:05:04:03:02:01
"""

RETURN = r"""
files:
  description: The files which were changed.
  returned: success
  type: list
  elements: str
  sample: [/etc/gaudi3-scale/fabric.env]
environment:
  description: The variables in the environment file.
  returned: success
  type: dict
  sample: {HCCL_SOCKET_IFNAME: eth0}
backup:
  description: Where the C(gaudinet.json) that somebody else wrote was kept.
  returned: when one was replaced
  type: str
  sample: /etc/habanalabs/gaudinet.json.4711.2026-11-23@06:10:00~
without_effect:
  description: Variables which do nothing on this kind of fabric.
  returned: success
  type: list
  elements: str
  sample: []
"""

import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._cards import accel, pci
from ansible_collections.gaudi3.scale.plugins.module_utils._fabric import fabric, gaudinet, hccl_environment
from ansible_collections.gaudi3.scale.plugins.module_utils._files import ensure_file
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal


def argument(value: object) -> str:
    """A variable's value as the library reads it: YAML's true is its 1."""
    return str(int(value)) if isinstance(value, bool) else str(value)


def variables(options: dict[str, Any], given: dict[str, str]) -> dict[str, str]:
    """The environment file's variables: those of the kind, the place of gaudinet.json, and those given."""
    environment = dict(hccl_environment.DEFAULTS.get(options["kind"], {}))
    path = options["gaudinet_path"]
    used = options["mode"] == "l3" or (options["mode"] == "unmanaged" and os.path.exists(path))
    if options["kind"] == "gaudi" and used and path != gaudinet.DEFAULT_PATH:
        environment["HCL_GAUDINET_CONFIG_FILE"] = path
    environment.update(given)
    hccl_environment.check(environment)
    return environment


def plan(options: dict[str, Any], environment: str) -> tuple[dict[str, str | None], bool]:
    """The text of each file by its path (None: it does not exist), and whether somebody else's file is replaced."""
    path, beside = options["gaudinet_path"], {options["environment_path"]: environment}
    record = os.path.join(os.path.dirname(options["environment_path"]), "gaudinet.json.sha256")
    present = gaudinet.look(path, record)
    if options["state"] == "absent":
        ours = {} if present.foreign else {path: None}
        return {**ours, record: None, options["environment_path"]: None}, False
    if options["kind"] == "gaudi" and options["mode"] == "l3":
        sysfs = options["sysfs_root"]
        ports = accel.external_ports([card.bus_id for card in pci.cards(sysfs)], sysfs)
        text = gaudinet.file_text(gaudinet.checked(options["nics"], {port.mac for port in ports if port.mac}))
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


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "kind": {"type": "str", "choices": list(fabric.KINDS), "default": "gaudi"},
            "mode": {"type": "str", "choices": ["l2", "l3", "unmanaged"], "default": "l2"},
            "nics": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {key: {"type": "str"} for key in gaudinet.KEYS},
            },
            "gaudinet_path": {"type": "path", "default": gaudinet.DEFAULT_PATH},
            "environment": {"type": "dict", "default": {}},
            "environment_path": {"type": "path", "default": "/etc/gaudi3-scale/fabric.env"},
            "sysfs_root": {"type": "path", "default": "/sys"},
        },
        supports_check_mode=True,
    )
    options = module.params
    given = {name: argument(value) for name, value in options["environment"].items()}
    try:
        environment = variables(options, given)
        files, replaced = plan(options, hccl_environment.file_text(environment))
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
    module.exit_json(
        changed=bool(diffs),
        diff=diffs,
        files=[difference["after_header"] for difference in diffs],
        environment=environment,
        without_effect=idle,
        **kept,
    )


if __name__ == "__main__":
    main()
