# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What is wrong with a run before its first task: Ansible's settings, the inventory, the variables and the jobs."""

from __future__ import annotations

DOCUMENTATION = r"""
name: first_look
short_description: Say what is wrong with a run before its first task
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Looks at what the controller knows, and asks no host.
  - Ansible's settings, as the lookup P(gaudi3.scale.settings_problem#lookup) does.
  - The inventory. Without a host of the groups that a playbook works on, Ansible does nothing and ends with 0. The same
    holds for a source of the inventory that no plugin can read, and for hosts that C(--limit) leaves out.
  - The names of the variables. One that begins as the variables of this collection do and is like one of them is taken
    for misspelt. A name that is like none of them is warned of once. The variable C(gaudi_accept_variables) lists
    names, and patterns such as C(prometheus_*), that something else reads.
  - The variables C(trainer_config), C(trainer_node_config) and C(trainer_jobs), where training is part of the run. The
    names, types and bounds of all keys are those of the trainer that is in this collection. They are not looked at
    where C(trainer_wheel) gives another trainer.
  - What was found is kept, so that the playbooks that another one imports say nothing else.
options:
  hosts:
    description: Groups of hosts that the playbook works on, with a colon between two.
    type: str
    default: gaudi
    vars:
      - name: phase_hosts
  roles:
    description: Roles of the playbook. With V(trainer) among them jobs are looked at, unless tags leave them out.
    type: list
    elements: str
    default: []
    vars:
      - name: phase_roles
"""

EXAMPLES = r"""
- name: Refuse what cannot be meant
  ansible.builtin.fail:
    msg: "{{ lookup('gaudi3.scale.first_look', hosts='gaudi:monitoring') }}"
  when: lookup('gaudi3.scale.first_look', hosts='gaudi:monitoring') | length > 0
"""

RETURN = r"""
_raw:
  description: What is wrong and what to do, a line for each fault; empty where nothing is.
  type: list
  elements: str
"""

import os
from collections.abc import Iterator, Mapping
from typing import Any, Optional

from ansible import constants, context
from ansible.inventory.manager import IGNORED
from ansible.plugins.lookup import LookupBase
from ansible.utils.display import Display

from ansible_collections.gaudi3.scale.plugins.module_utils._printable import printable
from ansible_collections.gaudi3.scale.plugins.module_utils._settings import settings_problem
from ansible_collections.gaudi3.scale.plugins.module_utils._variables.given import Given, config_sentences, plain
from ansible_collections.gaudi3.scale.plugins.module_utils._variables.inventory import Inventory, inventory_problem
from ansible_collections.gaudi3.scale.plugins.module_utils._variables.names import (
    OF_PLAYBOOKS,
    unread_variables,
    used_in,
)
from ansible_collections.gaudi3.scale.plugins.plugin_utils.origin import origin_of
from ansible_collections.gaudi3.scale.plugins.plugin_utils.roles import DEFAULTS, SPECIFICATIONS

#: Tags with one of which a run has its jobs looked at.
TRAINING = ("all", "train", "trainer", "preflight", "trainer_preflight", "trainer_install", "trainer_job")
#: The sentences of one run, by the arguments of its command.
_FOUND: dict[int, str] = {}
#: Faults that are shown; of more their number.
_SHOWN = 8


class LookupModule(LookupBase):
    """Looks once in a run."""

    def run(self, terms: list[Any], variables: Optional[dict[str, Any]] = None, **kwargs: Any) -> list[str]:
        """Entry point of the lookup."""
        self.set_options(var_options=variables, direct=kwargs)
        run = id(context.CLIARGS)
        if run not in _FOUND:
            groups = [each for each in str(self.get_option("hosts")).split(":") if each]
            _FOUND[run] = self._problem(groups, variables or {})
        return [_FOUND[run]]

    def _problem(self, groups: list[str], variables: Mapping[str, Any]) -> str:
        problem = settings_problem(constants.config.get_config_value)
        if problem:
            return problem
        hosts = [host for host in variables.get("ansible_play_hosts_all") or [] if host != "localhost"]
        given = variables.get("groups") or {}
        sources = [str(each) for each in variables.get("ansible_inventory_sources") or []]
        hostvars = variables["hostvars"]
        inventory = Inventory(
            given, sources, list(unread(hostvars, sources)), str(context.CLIARGS.get("subset") or ""), hosts
        )
        problem = inventory_problem(inventory, groups)
        if problem:
            return problem
        raw = {host: hostvars.raw_get(host) for host in hosts}
        faults = self._names(raw)
        if "trainer" in self.get_option("roles") and _trains(variables):
            nodes = [host for host in hosts if host in given.get("gaudi", ())]
            faults += [sentence for host in nodes for sentence in self._jobs(raw[host], hostvars, host)]
        faults = list(dict.fromkeys(faults))
        more = len(faults) - _SHOWN
        return "\n".join([*faults[:_SHOWN], *([f"There are {more} more of these faults."] if more > 0 else [])])

    def _names(self, raw: Mapping[str, Mapping[str, Any]]) -> list[str]:
        """What is wrong with the names of the hosts' variables."""
        values: dict[str, Any] = {}
        for own in raw.values():
            values = {**own, **values}
        known = {name for options in SPECIFICATIONS.values() for name in options} | set(DEFAULTS) | OF_PLAYBOOKS
        accepted = values.get("gaudi_accept_variables") or []
        if isinstance(accepted, str) or not isinstance(accepted, (list, tuple)):
            shown = printable(accepted, 100)
            return [f"gaudi_accept_variables is {shown}: give a list of names of variables, such as [prometheus_*]."]
        names = [name for name in values if isinstance(name, str)]
        found = unread_variables(names, known, SPECIFICATIONS, [str(each) for each in accepted])
        helpers = used_in(values, {each.name for each in found})
        meant = [each for each in found if each.name not in helpers]
        for each in meant:
            if not each.refused:
                Display().warning(each.sentence(origin_of(values[each.name])))
        return [each.sentence(origin_of(values[each.name])) for each in meant if each.refused]

    def _jobs(self, raw: Mapping[str, Any], hostvars: Mapping[str, Any], host: str) -> list[str]:
        """What is wrong with the jobs of a node."""
        if raw.get("trainer_wheel") or raw.get("trainer_state") == "absent":
            return []
        own: list[str] = []
        for name in ("trainer_config", "trainer_node_config", "trainer_jobs"):
            if name not in raw or (name != "trainer_jobs" and raw.get("trainer_command")):
                continue
            given = Given(name, raw[name], plain(hostvars[host], name), origin_of)
            own += config_sentences(given, SPECIFICATIONS["trainer"]["trainer_jobs"]["options"])
        return own


def _trains(variables: Mapping[str, Any]) -> bool:
    tags, skipped = variables.get("ansible_run_tags") or ["all"], variables.get("ansible_skip_tags") or []
    return bool(set(TRAINING) & set(tags)) and "train" not in skipped


def unread(hostvars: Any, sources: list[str]) -> Iterator[str]:
    """The files of the sources that no inventory plugin read.

    Ansible keeps a list of what it has read; where a release of it has none, nothing counts as unread.
    """
    data = getattr(getattr(hostvars, "_inventory", None), "_inventory", None)
    read = getattr(data, "processed_sources", None)
    if isinstance(read, list):
        done = {str(each) for each in read}
        yield from (path for source in sources for path in files(source) if path not in done)


def files(source: str) -> Iterator[str]:
    """What Ansible tries to read of a source: itself, or the files of a folder."""
    if os.path.isdir(source):
        for name in sorted(os.listdir(source)):
            if not IGNORED.search(os.fsencode(name)):
                yield from files(os.path.join(source, name))
    elif source != "/etc/ansible/hosts" or os.path.exists(source):
        yield source
