# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What the controller does for a monitoring host's services: templates, YAML, secrets, and calls that hide them."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import missing_required_lib
from ansible.plugins.action import ActionBase

from ..module_utils._host.address import cluster_address
from ..module_utils._monitoring.secrets import Secrets, Wanted, keep
from ..module_utils._monitoring.texts import comment
from ..module_utils._plan.monitoring import Given
from ..module_utils._refusal import Refusal
from . import site_yaml
from .acting import as_task
from .role_values import RoleValues
from .roles import ROLES
from .secrets_folder import folder_for

#: Templates whose text is what Ansible says of the files that it manages.
HEAD = ROLES / "monitoring_service" / "templates" / "managed.j2"


class Controller:
    """As the plan of a monitoring host asks for it."""

    def __init__(self, action: ActionBase, task_vars: Mapping[str, Any], values: RoleValues) -> None:
        self._action = action
        self._given = task_vars
        self._values = values

    def head(self, mark: str = "#") -> str:
        """The comment that a managed file begins with."""
        return comment(self._managed, mark)

    @cached_property
    def _managed(self) -> str:
        return self._rendered(HEAD).rstrip("\n")

    def template(self, role: str, name: str) -> str:
        """A template beside the playbook or of the role, rendered."""
        return self._rendered(Path(self._found(role, "templates", name)))

    def file(self, role: str, name: str) -> str:
        """A file beside the playbook or of the role, opened with the vault's password where it has one."""
        real = self._action._loader.get_real_file(self._found(role, "files", name))
        return Path(real).read_text(encoding="utf-8", errors="surrogateescape")

    def _found(self, role: str, folder: str, name: str) -> str:
        """As Ansible's own tasks of the role look for it: in the role first, then beside the playbook."""
        loader = self._action._loader
        places = [str(ROLES / role), *(self._action._task.get_search_path() or ()), loader.get_basedir()]
        found: str = loader.path_dwim_relative_stack(list(dict.fromkeys(places)), folder, name)
        return found

    def _rendered(self, path: Path) -> str:
        return str(self._values.rendered(path))

    def write(self, value: Any) -> str:
        """A value as YAML."""
        return site_yaml.write(value)

    def read(self, text: str) -> Any:
        """YAML of a site; ``ValueError`` for what is none."""
        return site_yaml.read(text)

    def kept_authority(self, directory: str) -> str:
        """The certificate of the authority in a folder of secrets; empty where none is."""
        try:
            return Path(os.path.expanduser(directory), "ca.crt").read_text(encoding="utf-8")
        except (OSError, ValueError):
            return ""

    def secrets(self, wanted: Wanted, dry_run: bool) -> Secrets:
        """Passwords and certificate, from the folder that the site has for them where they are not handed over."""
        missing = wanted.missing
        sources = [str(source) for source in self._given.get("ansible_inventory_sources") or []]
        folder = folder_for(wanted.directory, sources, missing) if missing else ""
        for library in ("cryptography", "bcrypt"):
            try:
                importlib.import_module(library)
            except ImportError as error:
                raise Refusal(missing_required_lib(library, reason="on the controller")) from error
        try:
            return keep(replace(wanted, directory=folder), dry_run)
        except OSError as error:
            raise Refusal(str(error)) from error


class Addresses(Mapping[str, Mapping[str, Any]]):
    """Of all hosts, the variables from which their addresses follow, each evaluated once."""

    def __init__(self, hostvars: Mapping[str, Mapping[str, Any]]) -> None:
        self._hostvars = hostvars
        self._address = cache(self._of)

    def _of(self, host: str) -> Mapping[str, Any]:
        return {"ansible_host": cluster_address(host, self._hostvars[host])}

    def __getitem__(self, host: str) -> Mapping[str, Any]:
        if host not in self._hostvars:
            raise KeyError(host)
        return self._address(host)

    def __iter__(self) -> Iterator[str]:
        return iter(self._hostvars)

    def __len__(self) -> int:
        return len(self._hostvars)

    def __contains__(self, host: object) -> bool:
        return host in self._hostvars


def given_of(action: ActionBase, task_vars: Mapping[str, Any], values: RoleValues, facts: Mapping[str, Any]) -> Given:
    """What is known of the host of a task."""
    return Given(
        str(task_vars.get("inventory_hostname")),
        values.__getitem__,
        facts,
        task_vars.get("groups") or {},
        Addresses(task_vars.get("hostvars") or {}),
        Controller(action, task_vars, values),
    )


def called(action: ActionBase, module: str, options: Mapping[str, Any], task_vars: dict[str, Any]) -> dict[str, Any]:
    """What a module of this collection answers on the host, without the options that it was given."""
    # No option stands in the journal of the host: they hold secrets.
    with as_task(action, no_log=True):
        answer: dict[str, Any] = action._execute_module(
            module_name=f"gaudi3.scale.{module}", module_args=dict(options), task_vars=task_vars
        )
    answer.pop("invocation", None)
    answer.pop("_ansible_no_log", None)
    return answer


def shown(answers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of answers, what may be shown."""
    names = ("failed", "msg", "unreachable", "taken_over", "removed", "left", "restored", "in_use")
    result: dict[str, Any] = {"changed": any(answer.get("changed") for answer in answers)}
    for answer in answers:
        result.update({name: answer[name] for name in names if name in answer})
        for name in ("diff", "done", "warnings"):
            if isinstance(answer.get(name), list):
                result.setdefault(name, []).extend(answer[name])
    return result
