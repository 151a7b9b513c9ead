#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A service that runs with what lies on disk."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_service
short_description: "Internal to the collection: run a service with the files that lie on disk"
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Starts a unit of systemd, and restarts or reloads it where a file that it reads is younger than its process.
  - A restart that an earlier run did not come to, or that a package's upgrade left out, is made up for. What this run
    changed before needs no handler.
options:
  name:
    description: The unit.
    type: str
    required: true
  state:
    description:
      - V(running) is up to date with its files. V(enabled) is started at each boot, and runs now or not, as it is.
        With V(written) only O(files) and O(folders) are looked after, and the unit is left as it is.
        V(absent) is stopped, is not started at a boot, and has no file in O(unit_folder); a unit that a package brought
        stays, stopped.
    type: str
    choices: [running, enabled, written, absent]
    default: running
  enabled:
    description: Start the unit at each boot.
    type: bool
    default: true
  files:
    description:
      - Files that are written before the service starts, such as its unit, its arguments and its program. They are
        owned by root, and missing folders are made.
    type: list
    elements: dict
    default: []
    suboptions:
      path: {description: "Where the file is.", type: path, required: true}
      content:
        description:
          - All that is in it. Without it something else writes the file, and only its owner and permissions are looked
            after.
        type: str
      mode: {description: "Its mode, as octal digits.", type: str, default: "0644"}
      group: {description: "The group that it belongs to. Empty is any.", type: str, default: ""}
      restart: {description: "Whether the service restarts for another content.", type: bool, default: true}
      reload: {description: "Whether the service is reloaded for another content.", type: bool, default: false}
      secret: {description: "Whether a difference shows no content of it.", type: bool, default: false}
      validate:
        description: A program that checks it before it is written, with V(%s) in place of its path.
        type: str
        default: ""
      complaint: {description: "What is said before the reasons of that program.", type: str, default: ""}
  folders:
    description: Folders that are made before the files, and belong to root and are open to all.
    type: list
    elements: path
    default: []
  restart_files:
    description:
      - Files that the service reads only when it starts, such as its program, its unit and its arguments. Those that
        are missing count for nothing.
    type: list
    elements: path
    default: []
  reload_files:
    description: Files that the service reads again when it is reloaded.
    type: list
    elements: path
    default: []
  claim:
    description:
      - Refuses files that somebody else wrote, before anything is changed, and records what was written, as
        M(gaudi3.scale.gaudi_claim) does.
    type: dict
    suboptions:
      service: {description: "Name of the record.", type: str, required: true}
      files: {description: "Files that the collection writes.", type: list, elements: path, default: []}
      package: {description: "Package whose untouched files of configuration are nobody's.", type: str, default: ""}
      take_over: {description: "Replace what somebody else wrote.", type: bool, default: false}
      variable: {description: "How the variables of the role begin, for messages.", type: str, required: true}
      cluster:
        description: The cluster that a monitoring host watches.
        type: dict
        suboptions:
          authority: {description: "A digest of its authority.", type: str, default: ""}
          nodes: {description: "Addresses of its nodes by name.", type: dict, default: {}}
      arguments_file: {description: "File with the arguments of the service.", type: path, default: ""}
      data: {description: "Folder of the data of the service.", type: path, default: ""}
      records: {description: "Folder of the records.", type: path, default: /etc/gaudi3-scale/written}
      unit_folders:
        description: Folders where systemd looks for a unit before that of the packages.
        type: list
        elements: path
        default: [/etc/systemd/system, /run/systemd/system, /usr/local/lib/systemd/system]
      dpkg_query_executable: {description: "The C(dpkg-query) to use.", type: str, default: dpkg-query}
      rpm_executable: {description: "The C(rpm) to use.", type: str, default: rpm}
  listens:
    description:
      - Where the service listens, with O(state=running). The module fails where a process of another unit holds the
        port, before anything is changed. Afterwards it waits until the unit is active and a process of it listens.
    type: dict
    suboptions:
      address:
        description: The address, as an IP address or a host name.
        type: str
        required: true
      port:
        description: The TCP port.
        type: int
        required: true
      variable:
        description: How the names of the variables for address and port begin, for messages.
        type: str
        required: true
      container:
        description:
          - The command that prints the identifier of the container that listens, where the unit starts one by an
            engine that gives it a control group of its own.
        type: list
        elements: str
        default: []
      timeout:
        description: For how many seconds to wait.
        type: int
        default: 15
      proc_root:
        description: Where the kernel's tables of processes and sockets are.
        type: path
        default: /proc
  pending:
    description:
      - What the tasks before will have changed, for check mode alone, in which they change no file. V(restart) and
        V(reload) predict that.
    type: str
    choices: [none, reload, restart]
    default: none
  unit_folder:
    description: Where the unit's file is removed with O(state=absent).
    type: path
    default: /etc/systemd/system
  systemctl_executable:
    description: The C(systemctl) to use.
    type: path
    default: systemctl
attributes:
  check_mode:
    description: Predicts what would be done. A unit that does not exist yet is predicted to be started.
    support: full
  diff_mode:
    description: Shows the unit that is removed, and O(files) that are written.
    support: full
  platform:
    description: Linux with systemd.
    platforms: linux
    support: full
"""

EXAMPLES = r"""
- name: Run Prometheus with what was written
  gaudi3.scale.gaudi_service:
    name: prometheus.service
    restart_files: [/usr/bin/prometheus, /etc/default/prometheus]
    reload_files: [/etc/prometheus/prometheus.yml]
    listens: {address: 10.0.0.5, port: 9090, variable: prometheus}
    pending: "{{ 'reload' if configuration is changed else 'none' }}"

- name: Write a unit and run it
  gaudi3.scale.gaudi_service:
    name: mine.service
    files:
      - path: /etc/systemd/system/mine.service
        content: "{{ lookup('ansible.builtin.template', 'mine.service.j2') }}"

- name: Remove a service of this collection
  gaudi3.scale.gaudi_service:
    name: gaudi-hpu-exporter.service
    state: absent
"""

RETURN = r"""
done:
  description: The verbs of systemctl that were needed, in their order.
  returned: success
  type: list
  elements: str
  sample: [daemon-reload, restart]
recorded:
  description: Whether the record of O(claim) says what was written. In check mode, whether it says so already.
  returned: success
  type: bool
  sample: true
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies import service


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=service.ARGUMENT_SPEC, supports_check_mode=True)
    module.exit_json(**service.run(module))


if __name__ == "__main__":
    main()
