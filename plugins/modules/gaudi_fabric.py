#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The files that tell Gaudi's collective library about the fabric."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_fabric
short_description: "Internal to the collection: write the fabric configuration of a Gaudi host"
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
      - The addresses of this host's external ports. Needed for O(mode=l3) without O(lldp).
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
  lldp:
    description:
      - Take the addresses of O(mode=l3) from what the switches tell of their ports by LLDP, in place of O(nics). Each
        switch port is described with its own address and C(/30), such as C(10.200.10.2/30); the host's port gets the
        other address of that network, and the switch is its gateway.
      - Refused where a port has no neighbour or two, where two ports have the same one, or where a neighbour does not
        tell one such address and a MAC address. Nothing else of a neighbour's text is used.
      - In check mode the addresses are not known before C(lldpd) runs and all ports are up. The file is then predicted
        to be written where it is missing, and to stay where this module wrote it.
    type: bool
    default: false
  lldp_wait:
    description:
      - Seconds to wait until every external port has a neighbour. A switch speaks every 30 seconds by default.
    type: int
    default: 60
  host:
    description:
      - Name of this host in O(cables), and in messages. Where some cables are of it, each of its ports has to be
        plugged in as they say; those of other hosts are ignored.
    type: str
    default: ""
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
extends_documentation_fragment:
  - gaudi3.scale.cables
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

- name: Addresses as the switches tell them
  gaudi3.scale.gaudi_fabric:
    mode: l3
    lldp: true
    host: "{{ inventory_hostname }}"
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
addresses_known:
  description: Whether the contents of C(gaudinet.json) are known. They are not where a dry run could not ask LLDP.
  returned: success
  type: bool
  sample: true
without_effect:
  description: Variables which do nothing on this kind of fabric.
  returned: success
  type: list
  elements: str
  sample: []
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies import fabric


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=fabric.ARGUMENT_SPEC, supports_check_mode=True)
    module.exit_json(**fabric.run(module))


if __name__ == "__main__":
    main()
