"""A monitoring host whose services are planned with the roles' own defaults, and with secrets that are none."""

from __future__ import annotations

from typing import Any

from ansible_collections.gaudi3.scale.plugins.module_utils._credentials import Certificate, Password
from ansible_collections.gaudi3.scale.plugins.module_utils._monitoring.secrets import Secrets, Wanted
from ansible_collections.gaudi3.scale.plugins.module_utils._monitoring.texts import comment
from ansible_collections.gaudi3.scale.plugins.module_utils._plan.monitoring import Given, Service
from ansible_collections.gaudi3.scale.plugins.module_utils._plan.monitoring_host import SERVICES
from ansible_collections.gaudi3.scale.plugins.plugin_utils import site_yaml
from ansible_collections.gaudi3.scale.plugins.plugin_utils.role_tasks import VARIABLES
from ansible_collections.gaudi3.scale.plugins.plugin_utils.role_values import RoleValues
from ansible_collections.gaudi3.scale.plugins.plugin_utils.roles import trusted
from tests.unit.playbooks.jinja import evaluate

FACTS = {"os_family": "Debian", "distribution": "Debian", "distribution_major_version": "12"}
HOSTS = {"gaudi-1": {"ansible_host": "10.0.0.1"}, "mon": {"ansible_host": "10.0.0.9"}}
ENDS = ("2026-06-01T00:00:00+00:00", "2036-04-28T12:00:00+02:00")
CERTIFICATE = Certificate("the certificate\n", "the key\n", "the authority\n", *ENDS)


class Desk:
    """The controller, which notes what secrets were asked for."""

    def __init__(self) -> None:
        self.asked: list[Wanted] = []
        self.made: list[str] = []

    def head(self, mark: str = "#") -> str:
        return comment("managed", mark)

    def template(self, role: str, name: str) -> str:
        return f"# {role}: {name}\n"

    def file(self, role: str, name: str) -> str:
        return f'{{"{role}": "{name}"}}\n'

    def write(self, value: Any) -> str:
        return site_yaml.write(value)

    def read(self, text: str) -> Any:
        return site_yaml.read(text)

    def kept_authority(self, directory: str) -> str:
        return f"of {directory}\n"

    def secrets(self, wanted: Wanted, dry_run: bool) -> Secrets:
        self.asked.append(wanted)
        passwords = {name: Password(f"the password of {name}", f"the hash of {name}") for name in wanted.passwords}
        return Secrets(passwords, CERTIFICATE, self.made)


def given(desk: Desk | None = None, facts: dict[str, Any] | None = None, **variables: Any) -> Given:
    """What is known of host mon, with these variables."""
    known = {**FACTS, **(facts or {})}
    groups = {"gaudi": ["gaudi-1"], "monitoring": ["mon"]}
    site = {
        "inventory_hostname": "mon", "ansible_host": "10.0.0.9", "groups": groups, "hostvars": HOSTS,
        "ansible_facts": known, "omit": "what is left out",
        **{name: trusted(value) for name, value in variables.items()},
    }  # fmt: skip
    values = RoleValues({**VARIABLES, **site}, lambda value, more: evaluate(value, **more))
    return Given("mon", values.__getitem__, known, groups, HOSTS, desk or Desk())


def service(name: str, desk: Desk | None = None, facts: dict[str, Any] | None = None, **variables: Any) -> Service:
    """One service of it."""
    return SERVICES[name](given(desk, facts, **variables))


def files(name: str, **variables: Any) -> dict[str, Any]:
    """All files of a service on a host that has none of it, by their paths."""
    made = service(name, **variables)
    made.learn({})
    return {file.path: file for file in [*made.before(), *made.files(made.secrets(dry_run=True))]}
