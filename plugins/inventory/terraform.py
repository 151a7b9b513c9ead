# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The clusters that Terraform made, as an inventory."""

from __future__ import annotations

DOCUMENTATION = r"""
name: terraform
short_description: The clusters that the collection's Terraform modules made
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Reads the outputs of C(terraform/aws), C(azure), C(gcp), C(ibm) and C(onprem) into the groups that
    C(gaudi3.scale.site) works on, namely C(gaudi), C(gaudi_head) and C(monitoring), and one group per cloud.
  - A state that is empty or half applied stops Ansible with a sentence on what to do. It never gives an empty or a
    partial inventory.
  - Several clusters can stand side by side in O(sources). Where the names of their hosts clash, the source's label is
    put in front. The group C(gaudi_head) then holds the first cluster's head, and each cluster's hosts have
    C(trainer_nodes) and C(trainer_head) of their own.
  - The file's name must end in C(terraform.yml) or C(terraform.yaml).
extends_documentation_fragment:
  - constructed
options:
  plugin:
    description: This plugin's name.
    type: str
    required: true
    choices: [gaudi3.scale.terraform]
  project_path:
    description: Folder where terraform was run, relative to this file.
    type: str
  state_file:
    description: A state file to read instead of asking terraform, relative to this file.
    type: str
  output_file:
    description: What C(terraform output -json) printed, in a file, relative to this file. Whether the state is whole
      cannot be seen from it.
    type: str
  workspace:
    description: Terraform's workspace, where it is not the selected one.
    type: str
  sources:
    description: Several clusters, instead of one by the options above.
    type: list
    elements: dict
    suboptions:
      project_path:
        description: As above.
        type: str
      state_file:
        description: As above.
        type: str
      output_file:
        description: As above.
        type: str
      workspace:
        description: As above.
        type: str
      label:
        description: The cluster's group, and what is put in front of names that clash. Its cloud by default.
        type: str
  executable:
    description: Terraform's executable; a name is looked up on PATH.
    type: str
    default: terraform
    env:
      - name: GAUDI3_TERRAFORM
  timeout:
    description: How long to wait for an answer of terraform, in seconds.
    type: int
    default: 60
  ssh_config:
    description:
      - A configuration of ssh that leads to the machines and says which of their keys are believed, relative to this
        file. ssh takes it in place of C(~/.ssh/config), for jump hosts too. C(provision.yml) writes one.
      - A machine's key is then known under the machine's id, where it has one, and not under its address, which another
        machine may get later.
    type: str
  check_state:
    description:
      - Whether to look through the state of a O(project_path) for machines that were asked for and are not there.
      - Switch it off where you may read the outputs of a remote state and not the state.
    type: bool
    default: true
"""

EXAMPLES = r"""
# inventories/mine/aws.terraform.yml
plugin: gaudi3.scale.terraform
project_path: ../../terraform/aws
---
# Two clouds side by side, and a group of all machines that were bought on the spot market.
plugin: gaudi3.scale.terraform
sources:
  - project_path: ../../terraform/ibm
  - project_path: ../../terraform/aws
    workspace: experiments
    label: spare
groups:
  spot: gaudi_market | default('') == 'spot'
"""

import os
import re
from typing import Any, NoReturn

from ansible.errors import AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin, Constructable
from ansible.utils.unsafe_proxy import wrap_var

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._terraform.cluster import Cluster, cluster_from_outputs
from ansible_collections.gaudi3.scale.plugins.module_utils._terraform.command import Terraform
from ansible_collections.gaudi3.scale.plugins.module_utils._terraform.inventory import build_inventory
from ansible_collections.gaudi3.scale.plugins.module_utils._terraform.state import (
    check_state,
    is_state,
    read_json,
    read_state,
    values_of,
)

PLUGIN_LINE = re.compile(r"""^["']?plugin["']?\s*:\s*["']?gaudi3\.scale\.terraform\b""", re.MULTILINE)
#: As ansible.errors.ExitCode has it from 2.19 on.
PARSER_ERROR = 4
PLACES = ("project_path", "state_file", "output_file")


def beside(path: str, given: str) -> str:
    """A file or folder that a source at a path names."""
    return os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(path)), os.path.expanduser(given)))


class InventoryModule(BaseInventoryPlugin, Constructable):
    """See DOCUMENTATION."""

    NAME = "gaudi3.scale.terraform"

    def verify_file(self, path: str) -> bool:
        """Whether the file is one of this plugin's."""
        return bool(super().verify_file(path)) and path.endswith(("terraform.yml", "terraform.yaml"))

    def parse(self, inventory: Any, loader: Any, path: str, cache: bool = True) -> None:
        """Fill the inventory."""
        super().parse(inventory, loader, path, cache)
        try:
            self._read_config_data(path)
            self._fill(path)
        except (AnsibleParserError, Refusal) as error:
            if not self._names_this_plugin(path):
                raise
            self._stop(path, error)

    def _names_this_plugin(self, path: str) -> bool:
        # Other plugins' sources end in terraform.yml too, and are theirs to read.
        with open(path, encoding="utf-8", errors="replace") as file:
            return PLUGIN_LINE.search(file.read()) is not None

    def _stop(self, path: str, error: Exception) -> NoReturn:
        # Ansible goes on with an empty inventory after a source that fails, unless its configuration says otherwise:
        # a playbook would then do nothing, with success. A cluster that cannot be told is no reason to do nothing.
        self.display.error(f"{path}: {error}")
        raise SystemExit(PARSER_ERROR) from error

    def _fill(self, path: str) -> None:
        own = {place: self.get_option(place) for place in (*PLACES, "workspace")}
        sources = self.get_option("sources") or []
        if sources and any(own.values()):
            raise Refusal("sources is given beside another place: put every cluster under sources.")
        if not sources:
            sources = [own]
        clusters = [self._cluster(path, source) for source in sources]
        built = build_inventory(clusters, [source.get("label") for source in sources], self._ssh_config(path))
        for group in built.groups:
            self.inventory.add_group(group)
        # Whoever writes the state must not run code here: ansible-core before 2.19 takes each value for a template that
        # is not marked, a host's name too.
        for name, variables in built.hosts.items():
            self.inventory.add_host(wrap_var(name))
            for key, value in variables.items():
                self.inventory.set_variable(name, key, wrap_var(value))
        for group, hosts in built.groups.items():
            for name in hosts:
                self.inventory.add_host(name, group=group)
        for group, variables in built.group_vars.items():
            for key, value in variables.items():
                self.inventory.set_variable(group, key, wrap_var(value))
        strict = self.get_option("strict")
        for name in built.hosts:
            variables = self.inventory.get_host(name).get_vars()
            self._set_composite_vars(self.get_option("compose"), variables, name, strict=strict)
            self._add_host_to_composed_groups(self.get_option("groups"), variables, name, strict=strict)
            self._add_host_to_keyed_groups(self.get_option("keyed_groups"), variables, name, strict=strict)

    def _ssh_config(self, path: str) -> str | None:
        given = self.get_option("ssh_config")
        if not given:
            return None
        where = beside(path, given)
        if not os.path.isfile(where):
            raise Refusal(f"ssh_config is {where}, which is not there: run provision.yml again, or leave it out.")
        return where

    def _cluster(self, path: str, source: dict[str, Any]) -> Cluster:
        given = [place for place in PLACES if source.get(place)]
        if len(given) != 1:
            raise Refusal(
                f"{' and '.join(given) or 'No place'} is given, and one is needed: give project_path, state_file or "
                "output_file."
            )
        where = beside(path, source[given[0]])
        if given == ["project_path"]:
            return self._from_project(where, source.get("workspace"))
        return self._from_file(where)

    def _from_project(self, folder: str, workspace: Any) -> Cluster:
        again = f"'terraform apply' in {folder}"
        terraform = Terraform(folder, self.get_option("executable"), workspace, self.get_option("timeout"))
        if self.get_option("check_state"):
            state = terraform.state()
            if state is None:
                raise Refusal(f"{folder} has no state: make the machines first, with {again}.")
            check_state(state, folder, again)
        return cluster_from_outputs(terraform.outputs(), folder, again)

    def _from_file(self, file: str) -> Cluster:
        again = "'terraform apply'"
        try:
            with open(file, encoding="utf-8") as handle:
                read = read_json(handle.read(), file)
        except (OSError, UnicodeDecodeError):
            raise Refusal(
                f"{file} cannot be read: give a state file, or what 'terraform output -json' printed."
            ) from None
        if is_state(read):
            state = read_state(read)
            check_state(state, file, again)
            return cluster_from_outputs(state.outputs, file, again)
        return cluster_from_outputs(values_of(read), file, again)
