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
  - Writes C(gaudinet.json) for a layer-3 fabric, or removes it for layer 2, and writes the environment file
    that training
    units read.
  - Everything is checked before anything is written, and each file is replaced as a whole. An empty
    C(gaudinet.json),
    which the library stumbles over, never exists.
  - Only environment variables which the library really reads are accepted. An unknown name is an error which
    names the
    nearest known one.
options:
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
      - Applies to O(kind=gaudi).
    type: str
    choices: [l2, l3]
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
without_effect:
  description: Variables which do nothing on this kind of fabric.
  returned: success
  type: list
  elements: str
  sample: []
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils import accel, fabric, gaudinet, hccl_environment, pci
from ansible_collections.gaudi3.scale.plugins.module_utils.files import ensure_file


def argument(value: object) -> str:
    """A variable's value as the library reads it: YAML's true is its 1."""
    return str(int(value)) if isinstance(value, bool) else str(value)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "kind": {"type": "str", "choices": list(fabric.KINDS), "default": "gaudi"},
            "mode": {"type": "str", "choices": ["l2", "l3"], "default": "l2"},
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
    routed = options["kind"] == "gaudi" and options["mode"] == "l3"
    given = {name: argument(value) for name, value in options["environment"].items()}
    environment = dict(hccl_environment.DEFAULTS.get(options["kind"], {}))
    if routed and options["gaudinet_path"] != gaudinet.DEFAULT_PATH:
        environment["HCL_GAUDINET_CONFIG_FILE"] = options["gaudinet_path"]
    environment.update(given)
    config = None
    try:
        hccl_environment.check(environment)
        if routed:
            sysfs = options["sysfs_root"]
            ports = accel.external_ports([card.bus_id for card in pci.cards(sysfs)], sysfs)
            known = {port.mac for port in ports if port.mac}
            config = gaudinet.file_text(gaudinet.checked(options["nics"], known))
    except (hccl_environment.EnvironmentVariableError, gaudinet.GaudinetError) as error:
        module.fail_json(msg=f"{error}.")
    idle = hccl_environment.without_effect(given, options["kind"])
    if idle:
        module.warn(
            f"{', '.join(idle)} only acts on scale-out over host NICs; this host's fabric is {options['kind']!r}."
        )
    diffs = []
    for path, content in (
        (options["gaudinet_path"], config),
        (options["environment_path"], hccl_environment.file_text(environment)),
    ):
        difference = ensure_file(module, path, content)
        if difference:
            diffs.append(difference)
    module.exit_json(
        changed=bool(diffs),
        diff=diffs,
        files=[difference["after_header"] for difference in diffs],
        environment=environment,
        without_effect=idle,
    )


if __name__ == "__main__":
    main()
