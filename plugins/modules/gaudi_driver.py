#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Ansible module: the Gaudi driver of one release, running."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_driver
short_description: Load, replace or unload the Gaudi kernel driver
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Brings the driver's kernel modules to the wanted state in the order that they need, brings the external network
    ports up after every load, and reads back that the right version runs and every card is C(Operational).
  - Modules are found under C(/sys/module). The order of unloading follows the modules that run, the order of loading
    those that are installed; both differ by whether C(habanalabs_compat) is among them.
  - A driver that is in use is left alone, and the processes that hold it are named; of those that hold control devices
    alone, as C(hl-smi) does for a moment, it is waited for the end.
  - Nothing is flashed and nothing is rebooted.
options:
  state:
    description: Whether the driver is to run or not.
    type: str
    choices: [loaded, unloaded]
    default: loaded
  release:
    description:
      - The release whose driver has to run, such as V(1.23.0-695). Only C(x.y.z) is compared, since the driver reports
        no build.
      - Required with O(state=loaded).
    type: str
  allow_reboot:
    description:
      - What to do where a driver has to go that is in use. With V(false) the task fails; with V(true) it leaves the
        driver alone and returns RV(reboot_required=true), since the next boot loads the installed driver.
    type: bool
    default: false
  accept_secure_boot:
    description:
      - With Secure Boot the kernel takes only modules signed with an enrolled key, and enrolment needs a console. So a
        load is refused with Secure Boot on, unless this says that the key is enrolled.
    type: bool
    default: false
  ports_up:
    description:
      - Whether to bring the external ports up after a load, and where none of them is up.
      - Where no card has a network device, as on some virtual machines and PCIe cards, the ports are skipped with a
        warning.
    type: bool
    default: true
  expected_preboot:
    description:
      - Preboot (SPI) firmware that every card should have, such as V(hl-gaudi3-1.23.0-fw-62.2.1-sec-9). Cards with
        another are warned about. Empty means no expectation.
    type: str
    default: ""
  timeout:
    description: Seconds that cards may take to become C(Operational) after a load.
    type: int
    default: 300
  command_timeout:
    description:
      - Seconds that one call of O(modprobe), O(rmmod) or O(network_script) may take. A card that hangs can hold it in
        the kernel for ever; after this time the module fails.
    type: int
    default: 300
  exporters:
    description:
      - Units that read the cards. Those that run are stopped before a driver is taken out, and started again
        afterwards, also where something failed.
    type: list
    elements: str
    default: [gaudi-hpu-exporter.service]
  modprobe:
    description: The C(modprobe) to call, a name found in C(PATH) or a full path.
    type: path
    default: modprobe
  rmmod:
    description: The C(rmmod) to call for a running module whose file is gone.
    type: path
    default: rmmod
  systemctl:
    description: The C(systemctl) to call for O(exporters).
    type: path
    default: systemctl
  network_script:
    description: The vendor's script that brings external ports up.
    type: path
    default: /opt/habanalabs/qual/gaudi3/bin/manage_network_ifs.sh
attributes:
  check_mode:
    support: full
    description: Refuses what a real run would refuse beforehand; a module that is not installed yet is taken to be
      installed by then.
  diff_mode:
    description: Shows the driver's version and the loaded modules before and after.
    support: full
seealso:
  - module: gaudi3.scale.synapseai_packages
"""

EXAMPLES = r"""
- name: Run the driver of the installed release
  gaudi3.scale.gaudi_driver:
    release: 1.23.0-695

- name: Take the driver out, for example before flashing firmware by hand
  gaudi3.scale.gaudi_driver:
    state: unloaded
"""

RETURN = r"""
driver_version:
  description: Version of the running driver, null where none runs.
  returned: always
  type: str
  sample: 1.23.0-2eae87a
previous_version:
  description: Version of the driver that ran before.
  returned: always
  type: str
  sample: 1.22.0-97ec1a4
modules:
  description: The driver's modules that run now.
  returned: always
  type: list
  elements: str
  sample: [habanalabs, habanalabs_cn, habanalabs_en, habanalabs_ib]
unloaded:
  description: Modules taken out, in order (in check mode, that would be).
  returned: always
  type: list
  elements: str
  sample: []
loaded:
  description: Modules put in, in order (in check mode, that would be).
  returned: always
  type: list
  elements: str
  sample: [habanalabs, habanalabs_cn, habanalabs_ib, habanalabs_en]
ports_brought_up:
  description: Whether external ports were brought up (in check mode, would be).
  returned: always
  type: bool
  sample: true
reboot_required:
  description: Whether only a reboot can bring the release's driver, because the present one is in use.
  returned: always
  type: bool
  sample: false
stopped:
  description: Units of O(exporters) that were stopped and started again.
  returned: success
  type: list
  elements: str
  sample: [gaudi-hpu-exporter.service]
users:
  description: Processes that hold a device open, where a driver has to go.
  returned: always
  type: list
  elements: str
  sample: ["4711 (python3)"]
cards:
  description: Cards as the driver shows them.
  returned: always
  type: list
  elements: dict
  contains:
    name:
      description: Name of the device.
      type: str
      sample: accel0
    status:
      description: The driver's word on it.
      type: str
      sample: Operational
    preboot:
      description: Preboot (SPI) firmware, null where the driver does not tell.
      type: str
      sample: hl-gaudi3-1.23.0-fw-62.2.1-sec-9
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies import driver


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=driver.ARGUMENT_SPEC, required_if=driver.REQUIRED_IF, supports_check_mode=True)
    module.exit_json(**driver.run(module))


if __name__ == "__main__":
    main()
