#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Whose a service's files are."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_claim
short_description: "Internal to the collection: replace no file of a service that somebody else wrote"
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Keeps a record on the host of what the collection wrote for a service. A file that is there, is not in the record as
    it is now, and is not as its package brought it, was written by somebody else.
  - With O(state=claimed) such a file, a unit of the administrator and a listener on the port are refused, or with
    O(take_over) kept as dated backups. It comes before the tasks that write, and O(state=recorded) after them.
options:
  state:
    description:
      - V(absent) removes the recorded files, leaves those that somebody changed since, and puts back what was taken
        over.
    type: str
    choices: [claimed, recorded, absent]
    default: claimed
  service: {description: "Name of the record.", type: str, required: true}
  files: {description: "Files that the collection writes.", type: list, elements: path, default: []}
  package: {description: "Package whose untouched files of configuration are nobody's.", type: str, default: ""}
  take_over: {description: "Replace what somebody else wrote.", type: bool, default: false}
  variable: {description: "How the variables of the role begin, for messages.", type: str, required: true}
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
  unit: {description: "Unit of the service.", type: str, default: ""}
  listens:
    description: Where the service listens, as O(gaudi3.scale.gaudi_service#module:listens).
    type: dict
    suboptions:
      address: {description: "The address.", type: str, required: true}
      port: {description: "The TCP port.", type: int, required: true}
      variable: {description: "How the variables for both begin.", type: str, required: true}
      container: {description: "Command that prints a container's identifier.", type: list, elements: str, default: []}
      timeout: {description: "Not used here.", type: int, default: 15}
      proc_root: {description: "Where the kernel's tables are.", type: path, default: /proc}
  cluster:
    description: The cluster that is watched. A host that watches another one's nodes is refused.
    type: dict
    suboptions:
      authority: {description: "Digest of its authority's certificate.", type: str, default: ""}
      nodes: {description: "Addresses of its nodes, by their names.", type: dict, default: {}}
  keep:
    description: By the path of a file of the site, where a copy of it is kept for the configuration to be merged with.
    type: dict
    default: {}
attributes:
  check_mode:
    description: Refuses the same, and changes nothing.
    support: full
  diff_mode:
    description: Shows nothing, as the files may hold secrets.
    support: none
  platform:
    description: Linux.
    platforms: linux
    support: full
"""

EXAMPLES = r"""
- name: Refuse a configuration that somebody else wrote
  gaudi3.scale.gaudi_claim:
    service: alertmanager
    files: [/etc/prometheus/alertmanager.yml]
    package: prometheus-alertmanager
    variable: alertmanager
"""

RETURN = r"""
taken_over: {description: "What was taken over now.", returned: "O(state=claimed)", type: list, elements: str}
backups: {description: "Where it was kept, by its path.", returned: "not O(state=absent)", type: dict}
arguments: {description: "Arguments of the site.", returned: "O(state=claimed)", type: list, elements: str}
running: {description: "Arguments of the service now.", returned: "O(state=claimed)", type: list, elements: str}
kept: {description: "Texts of the site's files in O(keep).", returned: "O(state=claimed)", type: dict}
in_use: {description: "Whether the site used the service before.", returned: "not O(state=recorded)", type: bool}
removed: {description: "What was removed.", returned: "O(state=absent)", type: list, elements: str}
left: {description: "What somebody changed since.", returned: "O(state=absent)", type: list, elements: str}
restored: {description: "What was put back.", returned: "O(state=absent)", type: list, elements: str}
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies import claim


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=claim.ARGUMENT_SPEC, supports_check_mode=True)
    module.exit_json(**claim.run(module))


if __name__ == "__main__":
    main()
