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
  - The tags of C(--tags) and C(--skip-tags), where all playbooks of the run are the collection's. With one that nothing
    has, Ansible leaves out what was meant, or does what should be left out.
  - The names of the variables. One that begins as the variables of this collection do and is like one of them is taken
    for misspelt. A name that is like none of them is warned of once. The variable C(gaudi_accept_variables) lists
    names, and patterns such as C(prometheus_*), that something else reads.
  - The switches and whole numbers of all roles. Ansible takes any word for false, and a play may ask a switch before a
    role looks at the types of its variables.
  - The variables C(trainer_config), C(trainer_node_config) and C(trainer_jobs), where training is part of the run. The
    names, types and bounds of all keys are those of the trainer that is in this collection. They are not looked at
    where C(trainer_wheel) gives another trainer.
  - A value that comes out of a vault or of a template, and one that is a secret by its name or its form, is not shown.
    The sentence says its type.
  - The variable C(gaudi_serial), which has to be the same for all nodes, and variables that choose the hosts of a play,
    which only the command line can give.
  - The folder C(gaudi_secrets_dir), which must not lie in the inventory, where training is part of the run.
  - Of a whole site, also whether it has one head node, and whether the controller's Python has the packages that roles
    need there.
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
  site:
    description: Whether the playbook is that of a whole site.
    type: bool
    default: false
    vars:
      - name: phase_site
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
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Optional

from ansible import constants, context
from ansible.inventory.manager import IGNORED
from ansible.plugins.lookup import LookupBase
from ansible.utils.display import Display
from ansible.utils.vars import load_extra_vars

from ansible_collections.gaudi3.scale.plugins.module_utils._plan.run import JOBS, NO_JOBS, Run
from ansible_collections.gaudi3.scale.plugins.module_utils._printable import few, printable
from ansible_collections.gaudi3.scale.plugins.module_utils._secrets_dir import misplaced
from ansible_collections.gaudi3.scale.plugins.module_utils._settings import settings_problem
from ansible_collections.gaudi3.scale.plugins.module_utils._variables.controller import (
    OF_ONE_RUN,
    head_problem,
    one_run_problem,
    packages_needed,
    packages_problem,
    serial_problem,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._variables.dictionaries import DICTIONARIES
from ansible_collections.gaudi3.scale.plugins.module_utils._variables.given import (
    Given,
    config_sentences,
    has_template,
    may_be_secret,
    plain,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._variables.hooks import differing_problem, hooks_problem
from ansible_collections.gaudi3.scale.plugins.module_utils._variables.inventory import (
    DEFAULT_SOURCE,
    Inventory,
    inventory_problem,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._variables.names import (
    OF_PLAYBOOKS,
    unread_variables,
    used_in,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._variables.shapes import kind_of
from ansible_collections.gaudi3.scale.plugins.module_utils._variables.simple_types import simple_faults
from ansible_collections.gaudi3.scale.plugins.module_utils._variables.tags import tags_problem
from ansible_collections.gaudi3.scale.plugins.plugin_utils.origin import is_encrypted, origin_of
from ansible_collections.gaudi3.scale.plugins.plugin_utils.roles import DEFAULTS, SPECIFICATIONS

#: Tags with one of which the variables of a run's jobs are looked at.
TRAINING = (*JOBS, "trainer_install")
#: What was found in this run, which is looked at once: of the run itself, and of its jobs.
_FOUND: dict[str, str] = {}
#: The list of names that something else reads.
ACCEPTED = "gaudi_accept_variables"
#: The collection's folder.
_ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir)
#: With one of these the folder of gaudi_secrets_dir may not be used.
HANDED_OVER = (
    "gaudi_secrets", "trainer_job_secret", "prometheus_secrets_dir", "alertmanager_secrets_dir", "grafana_secrets_dir",
    "watch_secrets_dir",
)  # fmt: skip
#: Faults that are shown; of more their number.
_SHOWN = 8


class LookupModule(LookupBase):
    """Looks once in a run."""

    def run(self, terms: list[Any], variables: Optional[dict[str, Any]] = None, **kwargs: Any) -> list[str]:
        """Entry point of the lookup."""
        self.set_options(var_options=variables, direct=kwargs)
        given = variables or {}
        groups = [each for each in str(self.get_option("hosts")).split(":") if each]
        jobs = "trainer" in self.get_option("roles") and _trains(given)
        problem = _once("run", lambda: self._problem(groups, given, jobs))
        # Of several playbooks, a later one may be the first that trains.
        if jobs and not problem:
            problem = _once("jobs", lambda: _lines(self._job_faults(_own(given), given)))
        if self.get_option("site") and not problem:
            problem = _once("site", lambda: _site_problem(given))
        return [problem]

    def _problem(self, groups: list[str], variables: Mapping[str, Any], jobs: bool) -> str:
        problem = settings_problem(constants.config.get_config_value) or tags_problem(context.CLIARGS, _ROOT)
        if problem:
            return problem
        hosts = _hosts(variables)
        sources = _sources(variables)
        limit = str(context.CLIARGS.get("subset") or "")
        unparsed = list(unread(variables["hostvars"], sources))
        inventory = Inventory(variables.get("groups") or {}, sources, unparsed, limit, hosts)
        problem = inventory_problem(inventory, groups)
        if problem:
            return problem
        own = _own(variables)
        found = self._job_faults(own, variables) if jobs else []
        if jobs:
            _FOUND["jobs"] = _lines(found)
        options = {name: each for roles in SPECIFICATIONS.values() for name, each in roles.items()}
        odd = [said for each in own.values() for said in simple_faults(each.raw, options, origin_of, is_encrypted)]
        of_runs = _of_one_run(own, load_extra_vars(self._loader))
        parts = [_serial(own, variables), *of_runs, *self._names(own), *odd, *_dictionaries(own), *found]
        return _lines([*_hooks(own, self._loader.load_from_file), *parts])

    def _job_faults(self, own: Mapping[str, Variables], variables: Mapping[str, Any]) -> list[str]:
        gaudi = set((variables.get("groups") or {}).get("gaudi", ()))
        # Nodes share what a group gives them.
        seen: dict[tuple[str, int], list[str]] = {}
        found = [said for host in own if host in gaudi for said in self._jobs(own[host], seen)]
        return [*found, *_misplaced(own, _sources(variables))]

    def _names(self, own: Mapping[str, Variables]) -> list[str]:
        """What is wrong with the names of the hosts' variables."""
        values: dict[str, Any] = {}
        lists: dict[int, tuple[Any, Any]] = {}
        for host in own.values():
            for name in host.raw.keys() - values.keys():
                values[name] = host.raw[name]
            raw = host.raw.get(ACCEPTED)
            if raw is not None and id(raw) not in lists:
                lists[id(raw)] = raw, host.value(ACCEPTED)
        accepted: list[str] = []
        for raw, value in lists.values():
            if value is not ... and not isinstance(value, list):
                hidden = may_be_secret(ACCEPTED, raw, value, is_encrypted)
                said = kind_of(value) if hidden else printable(value, 100)
                return [f"{ACCEPTED} is {said}: give a list of names of variables, such as [prometheus_*]."]
            accepted += [str(name) for name in ([] if value is ... else value)]
        known = {name for options in SPECIFICATIONS.values() for name in options} | set(DEFAULTS) | OF_PLAYBOOKS
        names = [name for name in values if isinstance(name, str)]
        found = unread_variables(names, known, SPECIFICATIONS, accepted)
        helpers = used_in(values, {each.name for each in found})
        meant = [each for each in found if each.name not in helpers]
        for each in meant:
            if not each.refused:
                Display().warning(each.sentence(origin_of(values[each.name])))
        return [each.sentence(origin_of(values[each.name])) for each in meant if each.refused]

    def _jobs(self, own: Variables, seen: dict[tuple[str, int], list[str]]) -> list[str]:
        """What is wrong with the jobs of a node."""
        raw, found = own.raw, list[str]()
        if raw.get("trainer_wheel") or raw.get("trainer_state") == "absent":
            return []
        for name in ("trainer_config", "trainer_node_config", "trainer_jobs"):
            if name not in raw or (name != "trainer_jobs" and raw.get("trainer_command")):
                continue
            found += _sentences(name, own, seen)
        return found


def _serial(own: Mapping[str, Variables], variables: Mapping[str, Any]) -> str:
    """Why the drivers of a number of nodes cannot be changed at a time, which the first node says for all."""
    nodes = list((variables.get("groups") or {}).get("gaudi", ()))
    # It may be one that the run leaves out.
    first = {node: _variables_of(variables["hostvars"], node) for node in nodes[:1] if node not in own}
    known = {**first, **{node: own[node] for node in nodes if node in own}}
    given = {node: each.value("gaudi_serial") for node, each in known.items() if "gaudi_serial" in each.raw}
    return serial_problem(given, list(known))


def _of_one_run(own: Mapping[str, Variables], given: Mapping[str, Any]) -> Iterator[str]:
    """What the inventory has that only the command line, of which are those ``given``, can say."""
    for name in OF_ONE_RUN:
        raw = next((host.raw[name] for host in own.values() if name in host.raw), None)
        if raw is not None and name not in given:
            yield one_run_problem(name, origin_of(raw))


def _dictionaries(own: Mapping[str, Variables]) -> Iterator[str]:
    """What is wrong with the keys and values of variables that are mappings."""
    seen: dict[tuple[str, int], list[str]] = {}
    for host in own.values():
        for name in sorted(DICTIONARIES.intersection(host.raw)):
            yield from _sentences(name, host, seen)


def _sentences(name: str, own: Variables, seen: dict[tuple[str, int], list[str]]) -> list[str]:
    """Every fault of a variable; ``seen`` has those of the values that were looked at, which hosts of a group share."""
    key = name, id(own.raw[name])
    if key not in seen or has_template(own.raw[name]):
        given = Given(name, own.raw[name], own.value(name), origin_of, is_encrypted)
        seen[key] = config_sentences(given, SPECIFICATIONS["trainer"]["trainer_jobs"]["options"])
    return seen[key]


def _hooks(own: Mapping[str, Variables], read: Callable[[str], Any]) -> list[str]:
    """Why a site's own steps would not be done."""
    folders = {
        name: host.value("gaudi_hooks_dir") if "gaudi_hooks_dir" in host.raw else "" for name, host in own.items()
    }
    unknown = [name for name, folder in folders.items() if folder is ...]
    if unknown:
        where = origin_of(own[unknown[0]].raw["gaudi_hooks_dir"])
        return [
            f"gaudi_hooks_dir{f' ({where})' if where else ''} cannot be evaluated on {few(unknown, 3)} before hosts "
            "are asked: correct its template, or define what it names."
        ]
    problem = differing_problem(folders)
    return [problem or hooks_problem(next(iter(folders.values()), ""), read)]


def _site_problem(variables: Mapping[str, Any]) -> str:
    groups = variables.get("groups") or {}
    nodes = list(groups.get("gaudi", ()))
    problem = head_problem(list(groups.get("gaudi_head", ())), nodes)
    if problem or not nodes:
        return problem
    first = variables["hostvars"][nodes[0]]
    values = {name: plain(first, name) for name in ("trainer_wheel", "trainer_state", "trainer_build_python")}
    job = {name: value for name, value in values.items() if value is not ...}
    run = Run.of(variables.get("ansible_run_tags") or (), variables.get("ansible_skip_tags") or ())
    if not run.has("train", "preflight", "trainer", "trainer_install"):
        job["trainer_state"] = "absent"  # nothing is built
    python = str(variables.get("ansible_playbook_python") or sys.executable)
    return packages_problem(packages_needed(bool(groups.get("monitoring")), job, python), lacking)


def lacking(python: str, names: Sequence[str]) -> list[str]:
    """The packages that a Python of the controller cannot find; all of them where it does not start."""
    if python == sys.executable:
        return [name for name in names if find_spec(name) is None]
    program = "import sys; from importlib.util import find_spec; print(*[n for n in sys.argv[1:] if not find_spec(n)])"
    try:
        command = [os.path.expanduser(python), "-c", program, *names]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    except (OSError, subprocess.CalledProcessError):
        return list(names)


@dataclass(frozen=True)
class Variables:
    """The variables of a host."""

    raw: Mapping[str, Any]
    """As they were given."""
    values: Mapping[str, Any]
    """What they stand for."""

    def value(self, name: str) -> Any:
        """What a variable stands for, for ``Given``."""
        return plain(self.values, name)


def _sources(variables: Mapping[str, Any]) -> list[str]:
    return [str(each) for each in variables.get("ansible_inventory_sources") or []]


def _own(variables: Mapping[str, Any]) -> dict[str, Variables]:
    """The variables of each host of the run. To put them together is most of the work, and is done once."""
    return {host: _variables_of(variables["hostvars"], host) for host in _hosts(variables)}


def _variables_of(hostvars: Any, host: str) -> Variables:
    found = hostvars[host]
    return Variables(found._vars, found)


def _misplaced(own: Mapping[str, Variables], sources: list[str]) -> Iterator[str]:
    """Why the folder of secrets may not be where it is, for hosts that nothing hands secrets over to."""
    for host in own.values():
        if "gaudi_secrets_dir" in host.raw and not any(name in host.raw for name in HANDED_OVER):
            directory = host.value("gaudi_secrets_dir")
            fault = misplaced(os.path.expanduser(directory), sources, os.environ) if isinstance(directory, str) else ""
            yield from [fault] if directory and fault else []


def _once(name: str, look: Callable[[], str]) -> str:
    if name not in _FOUND:
        _FOUND[name] = look()
    return _FOUND[name]


def _lines(faults: list[str]) -> str:
    faults = list(dict.fromkeys(filter(None, faults)))
    more = len(faults) - _SHOWN
    return "\n".join([*faults[:_SHOWN], *([f"There are {more} more of these faults."] if more > 0 else [])])


def _hosts(variables: Mapping[str, Any]) -> list[str]:
    """The hosts of the run. localhost may be among them only so that the first play has one."""
    own = {host for hosts in (variables.get("groups") or {}).values() for host in hosts}
    return [host for host in variables.get("ansible_play_hosts_all") or [] if host in own]


def _trains(variables: Mapping[str, Any]) -> bool:
    tags, skipped = variables.get("ansible_run_tags") or ["all"], variables.get("ansible_skip_tags") or []
    return bool(set(TRAINING) & set(tags)) and not set(NO_JOBS) & set(skipped)


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
    elif source != DEFAULT_SOURCE or os.path.exists(source):
        yield source
